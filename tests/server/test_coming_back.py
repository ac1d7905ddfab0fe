"""A client's own secret takes its place over, on both servers and between two processes, while calls are running."""

import json
from typing import Any

import anyio
import anyio.to_thread

from tests.server.conftest import MakePeer
from tests.server.harness import Peer, Running, Two, eventually, heard
from tests.server.raw import joined, receive_until, send_text
from tests.server.test_scenarios import join, request_for


async def come_back(peer: Peer, role: str, name: str, office: str, secret: str = "a secret of some length") -> Any:
    request = {"role": role, "name": name, "office_id": office, "resume": secret}
    answer = await peer.call("server:join_office", request)
    if isinstance(two := getattr(peer, "server", None), Two):
        await two.agree()
    return answer


async def until_refused(peer: Peer, office: str) -> None:
    """What a session has on its way is waited for, so it must not send new requests for ever."""
    with anyio.fail_after(20):
        while True:
            listing = await peer.call("server:list_room", {"agent": "a", "req_id": "8", "office_id": office})
            if "error" in listing:
                break
            await anyio.sleep(0.05)
    assert listing["error"]["code"] == 4103


async def test_a_newer_session_takes_the_place_over_and_the_running_call_is_answered_on_the_old_one(
    server: Running, office: str, make_peer: MakePeer
) -> None:
    seen: list[str] = []
    go_on = anyio.Event()

    async def wait(data: Any) -> Any:
        seen.append("old")
        await go_on.wait()
        return {"by": "old"}

    def at_once(data: Any) -> Any:
        return {"by": "new"}

    agent = await make_peer(server)
    old = await make_peer(server, setup=lambda peer: peer.answer("client:get_tools", wait))
    new = await make_peer(server, setup=lambda peer: peer.answer("client:get_tools", at_once))
    stranger = await make_peer(server)
    await join(agent, "agent", "a", office)
    assert tuple(await come_back(old, "computer", "c", office)) == (True, None)
    async with anyio.create_task_group() as tasks:
        answers: list[Any] = []

        async def call() -> None:
            answers.append(await agent.call("client:get_tools", request_for("client:get_tools")))

        tasks.start_soon(call)
        await eventually(lambda: seen)
        assert (await come_back(stranger, "computer", "c", office, "not the right secret"))[1].startswith("4105")
        assert tuple(await come_back(new, "computer", "c", office)) == (True, None)
        assert await agent.call("client:get_tools", request_for("client:get_tools")) == {"by": "new"}
        assert old.connected and not answers
        go_on.set()
    assert answers == [{"by": "old"}]
    await eventually(lambda: not old.connected)
    assert new.connected
    assert heard(agent, "notify:leave_office") == []
    assert len(heard(agent, "notify:enter_office")) == 1


async def test_an_agent_that_comes_back_hears_its_answer_where_it_asked(
    server: Running, office: str, make_peer: MakePeer
) -> None:
    go_on = anyio.Event()
    asked = anyio.Event()

    async def wait(data: Any) -> Any:
        asked.set()
        await go_on.wait()
        return {"tools": []}

    old, new = await make_peer(server), await make_peer(server)
    computer = await make_peer(server, setup=lambda peer: peer.answer("client:get_tools", wait))
    await come_back(old, "agent", "a", office)
    await join(computer, "computer", "c", office)
    async with anyio.create_task_group() as tasks:
        answers: list[Any] = []

        async def call() -> None:
            answers.append(await old.call("client:get_tools", request_for("client:get_tools")))

        tasks.start_soon(call)
        await asked.wait()
        assert tuple(await come_back(new, "agent", "a", office)) == (True, None)
        listing = await new.call("server:list_room", {"agent": "a", "req_id": "7", "office_id": office})
        assert {(each["role"], each["name"]) for each in listing["sessions"]} == {("agent", "a"), ("computer", "c")}
        await until_refused(old, office)
        assert not answers
        go_on.set()
    assert answers == [{"tools": []}]
    await eventually(lambda: not old.connected)
    assert heard(computer, "notify:tool_call_cancel") == []


async def test_an_old_session_that_is_silent_is_closed_and_its_calls_fail_soon(
    open_async_server: Running, office: str, make_peer: MakePeer
) -> None:
    """The client lost its network: nothing says so to the server."""
    agent, new = await make_peer(open_async_server), await make_peer(open_async_server)
    await join(agent, "agent", "a", office)
    silent = await anyio.to_thread.run_sync(joined, open_async_server.url)
    with silent:
        request = {"role": "computer", "name": "c", "office_id": office, "resume": "a secret of some length"}
        send_text(silent, f'42/smcp,1["server:join_office",{json.dumps(request)}]')
        await anyio.to_thread.run_sync(receive_until, silent, b"43/smcp,1")
        async with anyio.create_task_group() as tasks:
            answers: list[Any] = []

            async def call() -> None:
                answers.append(await agent.call("client:get_tools", request_for("client:get_tools")))

            tasks.start_soon(call)
            await anyio.to_thread.run_sync(receive_until, silent, b"client:get_tools")
            assert tuple(await come_back(new, "computer", "c", office)) == (True, None)
            with anyio.fail_after(20):  # well before the 25 s that the server waits for an answer
                await eventually(lambda: answers)
    assert answers[0]["error"]["code"] == 404
