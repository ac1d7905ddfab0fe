"""The core scenarios over real sockets: both servers, both clients, both transports, the same replies."""

from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest

from a2c_smcp.smcp import EVENTS, STAMP_FIELD
from tests.server.conftest import MakePeer
from tests.server.harness import BothNamespaces, Peer, Running, Two, eventually, heard

pytestmark = [
    pytest.mark.parametrize("kind", ["async", "sync"]),
    pytest.mark.parametrize("transport", ["websocket", "polling"]),
]

#: Every relay is a row of the same table. One has a form of error of its own, and one has an object in its request.
RELAYS = ["client:tool_call", "client:get_tools", "client:read_resource", "client:answer_question"]
#: Where only a ping tells that a client has gone, this takes an interval, a timeout, and as long until it is looked at.
GONE = 60.0


def request_for(event: str, computer: str = "c", **more: Any) -> dict[str, Any]:
    base = {"agent": "a", "req_id": "1", "computer": computer}
    if event == "client:tool_call":
        base |= {"tool_name": "t", "params": {}, "timeout": 5}  # type: ignore[dict-item]
    if event == "client:read_resource":
        base |= {"uri": "dpe://h/d"}
    if event == "client:answer_question":
        base |= {"question_id": "q", "action": "accept", "content": {"sure": True}}  # type: ignore[dict-item]
    return {**base, **more}


def stamped(request: dict[str, Any], name: str = "a") -> dict[str, Any]:
    """A request as it comes to its computer, from an agent without a key."""
    return {**request, STAMP_FIELD: {"name": name, "bound": False}}


async def join(peer: Peer, role: str, name: str, office: str) -> Any:
    answer = await peer.call("server:join_office", {"role": role, "name": name, "office_id": office})
    if isinstance(two := getattr(peer, "server", None), Two):
        await two.agree()
    return answer


def code(reply: Any) -> int:
    value = reply["error"]["code"]
    assert isinstance(value, int)
    return value


async def test_join_is_acked_with_two_arguments_and_heard_by_the_others(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer
) -> None:
    agent = await make_peer(server, kind, transport)
    computer = await make_peer(server, kind, transport)
    assert tuple(await join(agent, "agent", "a", office)) == (True, None)
    assert tuple(await join(computer, "computer", "c", office)) == (True, None)
    await eventually(lambda: heard(agent, "notify:enter_office"))
    assert heard(agent, "notify:enter_office") == [{"office_id": office, "computer": "c"}]
    assert heard(computer, "notify:enter_office") == []


async def test_second_agent_is_refused_and_not_in_the_room(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer
) -> None:
    first, second, computer = [await make_peer(server, kind, transport) for _ in range(3)]
    await join(first, "agent", "a", office)
    done, reason = await join(second, "agent", "b", office)
    assert done is False
    assert reason.startswith("4101 Room Full: ")
    await join(computer, "computer", "c", office)
    await eventually(lambda: heard(first, "notify:enter_office"))
    assert second.received == []
    listing = await first.call("server:list_room", {"agent": "a", "req_id": "7", "office_id": office})
    assert {(s["role"], s["name"]) for s in listing["sessions"]} == {("agent", "a"), ("computer", "c")}
    assert listing["req_id"] == "7"


async def test_leaving_is_heard_and_frees_the_name(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer
) -> None:
    agent, computer, other = [await make_peer(server, kind, transport) for _ in range(3)]
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    assert (await join(other, "computer", "c", office))[1].startswith("4105 Name Taken")
    assert tuple(await computer.call("server:leave_office", {"office_id": office})) == (True, None)
    await eventually(lambda: heard(agent, "notify:leave_office"))
    assert heard(agent, "notify:leave_office") == [{"office_id": office, "computer": "c"}]
    assert tuple(await join(other, "computer", "c", office)) == (True, None)
    assert (await computer.call("server:leave_office", {"office_id": office}))[1].startswith("4103 Not In Room")


async def test_a_disconnect_is_heard_and_frees_the_name(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer
) -> None:
    agent, computer, other = [await make_peer(server, kind, transport) for _ in range(3)]
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    await computer.disconnect()
    await eventually(lambda: heard(agent, "notify:leave_office"), GONE)
    assert tuple(await join(other, "computer", "c", office)) == (True, None)


@pytest.mark.parametrize("event", RELAYS)
async def test_a_relay_brings_the_request_there_and_the_answer_back_as_they_are(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer, event: str
) -> None:
    seen: list[Any] = []

    def answer(data: Any) -> Any:
        seen.append(data)
        return {"answer": [1, None, "三", 2**70], "req_id": data["req_id"]}

    agent = await make_peer(server, kind, transport)
    computer = await make_peer(server, kind, transport, setup=lambda peer: peer.answer(event, answer))
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    request = request_for(event, unknown={"kept": True})
    assert await agent.call(event, request) == {"answer": [1, None, "三", 2**70], "req_id": "1"}
    assert seen == [stamped(request)]
    assert list(seen[0])[-1] == STAMP_FIELD
    await eventually(lambda: server.namespace.pending_relays == 0)


@pytest.mark.parametrize("event", RELAYS)
async def test_an_error_of_a_computer_is_passed_on_and_logged_with_its_req_id(
    server: Running,
    kind: str,
    transport: str,
    office: str,
    make_peer: MakePeer,
    event: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = {"error": {"code": 4201, "message": "Document not found:\n" + "d" * 300, "details": {"doc_ref": "d"}}}
    agent = await make_peer(server, kind, transport)
    computer = await make_peer(server, kind, transport, setup=lambda peer: peer.answer(event, lambda _: error))
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    assert await agent.call(event, request_for(event, req_id="the-lost-one")) == error
    [line] = [record.getMessage() for record in caplog.records if "the-lost-one" in record.getMessage()]
    assert event in line and "4201 Document not found" in line and "\n" not in line and len(line) < 300


@pytest.mark.parametrize(
    "event", ["server:update_config", "server:update_tool_list", "server:update_desktop", "server:update_resources"]
)
async def test_updates_are_acked_and_broadcast(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer, event: str
) -> None:
    agent, computer = [await make_peer(server, kind, transport) for _ in range(2)]
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    assert await computer.call(event, {"computer": "c"}) == {}
    notification = EVENTS[event].notification
    assert notification is not None
    await eventually(lambda: heard(agent, notification))
    assert heard(agent, notification) == [{"computer": "c"}]
    assert heard(computer, notification) == []


async def test_cancel_is_broadcast_to_the_computers(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer
) -> None:
    agent, computer = [await make_peer(server, kind, transport) for _ in range(2)]
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    assert await agent.call("server:tool_call_cancel", {"agent": "me", "req_id": "9"}) == {}
    await eventually(lambda: heard(computer, "notify:tool_call_cancel"))
    assert heard(computer, "notify:tool_call_cancel") == [{"agent": "me", "req_id": "9"}]


async def test_nobody_reaches_across_offices(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer
) -> None:
    agent, stranger = [await make_peer(server, kind, transport) for _ in range(2)]
    await join(agent, "agent", "a", office)
    await join(stranger, "computer", "c", office + "-elsewhere")
    reply = await agent.call("client:tool_call", request_for("client:tool_call"))
    assert code(reply) == 404
    assert reply["isError"] is True
    assert reply["content"][0]["text"] == reply["error"]["message"]
    assert code(await agent.call("client:get_tools", request_for("client:get_tools"))) == 404


async def test_a_computer_that_goes_fails_the_call_at_once(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer
) -> None:
    called = anyio.Event()

    async def never(_: Any) -> Any:
        called.set()
        await anyio.sleep(90)

    agent = await make_peer(server, kind, transport)
    computer = await make_peer(server, "async", transport, setup=lambda peer: peer.answer("client:tool_call", never))
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    replies: list[Any] = []

    async def call() -> None:
        # Long before its own deadline.
        replies.append(await agent.call("client:tool_call", request_for("client:tool_call", timeout=90)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await called.wait()
        await computer.disconnect()
    assert code(replies[0]) == 404
    await eventually(lambda: server.namespace.pending_relays == 0)


async def test_when_the_agent_goes_its_call_is_cancelled_at_that_computer_alone(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer
) -> None:
    called = anyio.Event()

    async def never(_: Any) -> Any:
        called.set()
        await anyio.sleep(90)

    agent = await make_peer(server, kind, transport)
    bystander = await make_peer(server, kind, transport)
    computer = await make_peer(server, "async", transport, setup=lambda peer: peer.answer("client:tool_call", never))
    await join(agent, "agent", "a", office)
    await join(bystander, "computer", "b", office)
    await join(computer, "computer", "c", office)
    await agent.emit("client:tool_call", request_for("client:tool_call", timeout=90))
    with anyio.fail_after(20):
        await called.wait()
    await agent.disconnect()
    await eventually(lambda: heard(computer, "notify:tool_call_cancel"), GONE)
    assert heard(computer, "notify:tool_call_cancel") == [{"agent": "a", "req_id": "1"}]
    await eventually(lambda: heard(bystander, "notify:leave_office"))
    assert heard(bystander, "notify:tool_call_cancel") == []
    await eventually(lambda: server.namespace.pending_relays == 0)


async def test_a_computer_that_does_not_answer_is_408(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: Any) -> Any:
        await anyio.sleep(90)

    shared = server.namespace
    for namespace in shared.both if isinstance(shared, BothNamespaces) else (shared,):
        monkeypatch.setattr(namespace, "limits", replace(namespace.limits, relay_timeout=2.0, tool_call_grace=0.5))

    def setup(peer: Peer) -> None:
        peer.answer("client:get_tools", never)
        peer.answer("client:tool_call", never)

    agent = await make_peer(server, kind, transport)
    computer = await make_peer(server, "async", transport, setup=setup)
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    replies = {}

    async def ask(event: str, **more: Any) -> None:
        replies[event] = await agent.call(event, request_for(event, **more))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "client:get_tools")
        tasks.start_soon(partial(ask, "client:tool_call", timeout=1, approval_timeout=1))
    assert code(replies["client:get_tools"]) == 408
    assert "within 2.5 s" in replies["client:tool_call"]["error"]["message"], "both times, and the grace"
    # The process of the computer may be the later one to give up.
    await eventually(lambda: server.namespace.pending_relays == 0)


async def test_every_bad_request_is_answered_with_its_code(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer
) -> None:
    agent, computer = [await make_peer(server, kind, transport) for _ in range(2)]
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    call = request_for("client:tool_call")
    for peer, event, args, expected in (
        (agent, "client:tool_call", [{**call, "timeout": "soon"}], 400),
        (agent, "client:tool_call", [{**call, "params": []}], 400),
        (agent, "client:get_finder", [request_for("client:get_finder", keywords=[1])], 400),
        (agent, "client:get_finder", [request_for("client:get_finder", limit=True)], 400),
        (agent, "client:get_tools", [{"agent": 1}], 400),
        (agent, "client:get_tools", [{}], 400),
        (agent, "client:get_tools", [], 400),
        (agent, "client:get_tools", [{}, {}], 400),
        (agent, "client:get_tools", ["text"], 400),
        (agent, "client:dance", [{}], 400),
        (agent, "connect", [{}], 400),
        (agent, "disconnect", [{}], 400),
        (agent, "notify:enter_office", [{}], 403),
        (agent, "server:update_config", [{}], 403),
        (computer, "server:update_config", [{"computer": "other"}], 403),
        (computer, "client:get_tools", [request_for("client:get_tools")], 403),
        (computer, "server:list_room", [{"agent": "a", "req_id": "1", "office_id": office}], 403),
        (agent, "server:list_room", [{"agent": "a", "req_id": "1", "office_id": "other"}], 4104),
        (agent, "client:get_tools", [request_for("client:get_tools", "nobody")], 404),
        (agent, "client:tool_call", [{**call, "req_id": "x" * 1001}], 400),
        (agent, "server:tool_call_cancel", [{"agent": "a", "req_id": "x" * 1001}], 400),
        (agent, "server:tool_call_cancel", [{"agent": "x" * 1001, "req_id": "1"}], 400),
    ):
        assert code(await peer.call(event, *args)) == expected, event
    for event, data, expected in (
        ("server:join_office", {"role": "visitor", "name": "n", "office_id": office}, 400),
        ("server:join_office", {"role": "agent", "name": "", "office_id": office}, 400),
        ("server:join_office", {"role": "agent", "name": "x" * 65, "office_id": office}, 400),
        ("server:join_office", {"role": "computer", "name": "a", "office_id": office}, 403),
        ("server:join_office", {"role": "agent", "name": "a", "office_id": office + "2"}, 4106),
        ("server:leave_office", {"office_id": "other"}, 4104),
        ("server:leave_office", None, 400),
        ("server:leave_office", {"office_id": "x" * 129}, 400),
    ):
        done, reason = await agent.call(event, data)
        assert done is False
        assert reason.startswith(f"{expected} "), reason
    assert heard(computer, "notify:tool_call_cancel") == []
    # and everyone keeps working
    assert (
        len((await agent.call("server:list_room", {"agent": "a", "req_id": "1", "office_id": office}))["sessions"]) == 2
    )


async def test_sixty_four_calls_at_once_are_all_answered(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer
) -> None:
    if server.is_mounted and transport == "polling":
        pytest.skip("python-socketio takes 16 packets of a POST")
    agent = await make_peer(server, kind, transport)
    computer = await make_peer(
        server, kind, transport, setup=lambda peer: peer.answer("client:tool_call", lambda data: {"n": data["req_id"]})
    )
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    replies: dict[int, Any] = {}

    async def call(n: int) -> None:
        replies[n] = await agent.call("client:tool_call", request_for("client:tool_call", req_id=str(n)), timeout=20)

    async with anyio.create_task_group() as tasks:
        for n in range(64):
            tasks.start_soon(call, n)
    assert replies == {n: {"n": str(n)} for n in range(64)}
    await eventually(lambda: server.namespace.pending_relays == 0)


async def test_a_burst_of_200_notifications_arrives(
    server: Running, kind: str, transport: str, office: str, make_peer: MakePeer
) -> None:
    if server.is_mounted and transport == "polling":
        pytest.skip("python-socketio takes 16 packets of a POST")
    agent, computer = [await make_peer(server, kind, transport) for _ in range(2)]
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    for n in range(200):
        await agent.emit("server:tool_call_cancel", {"agent": "a", "req_id": str(n)})
    await eventually(lambda: len(heard(computer, "notify:tool_call_cancel")) == 200, 20)
    ids = [data["req_id"] for data in heard(computer, "notify:tool_call_cancel")]
    assert sorted(ids, key=int) == [str(n) for n in range(200)]
