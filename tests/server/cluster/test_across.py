"""What one process does with the limits and the endings of calls whose other end is at another process."""

import asyncio
import urllib.request
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from a2c_smcp.server import Limits, OpenAuthentication
from a2c_smcp.server.cluster.options import ClusterOptions
from tests.nats_server import NatsServer
from tests.server.cluster.processes import patience
from tests.server.conftest import MakePeer
from tests.server.harness import Peer, Two, async_server, eventually, heard, two_servers
from tests.server.test_scenarios import code, join, request_for, stamped

LIMITS = Limits(relay_timeout=30.0, tool_call_grace=1.0, max_message=4_000_000, pending_relays=8)


@pytest.fixture(scope="module")
def two(nats: NatsServer) -> Iterator[Two]:
    with patience(), two_servers(LIMITS, nats.url, "across") as running:
        yield running


class Computer:
    """Notes what it is asked, and answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.go = asyncio.Event()
        self.answer: Any = {}

    async def __call__(self, data: dict[str, Any]) -> Any:
        self.asked.append(data)
        await self.go.wait()
        return self.answer

    def listen(self, peer: Peer) -> None:
        peer.answer("client:tool_call", self)
        peer.answer("client:get_tools", self)


@pytest.fixture
async def computer() -> AsyncIterator[Computer]:
    computer = Computer()
    yield computer
    computer.go.set()


async def pair(two: Two, make_peer: MakePeer, office: str, computer: Computer) -> tuple[Peer, Peer]:
    agent = await make_peer(two)
    peer = await make_peer(two, setup=computer.listen)
    await join(agent, "agent", "a", office)
    await join(peer, "computer", "c", office)
    return agent, peer


def metric(url: str, name: str) -> float:
    """The sum of the lines of a metric."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as reply:
        lines = reply.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


ASKED = 'a2c_messages_across_total{direction="sent",kind="ask"}'


async def test_a_call_inside_one_process_costs_no_message_and_one_across_is_counted(
    two: Two, make_peer: MakePeer, office: str, computer: Computer
) -> None:
    computer.go.set()
    agent, _ = await pair(two, make_peer, office, computer)
    before, timed = metric(two.url, ASKED), metric(two.url, "a2c_across_seconds_count")
    assert await agent.call("client:tool_call", request_for("client:tool_call")) == {}
    assert metric(two.url, ASKED) == before + 1
    assert metric(two.url, "a2c_across_seconds_count") == timed + 1
    here = await make_peer(two.other)
    assert tuple(await join(here, "agent", "a", office + "-2")) == (True, None)
    await join(await make_peer(two.other, setup=computer.listen), "computer", "c", office + "-2")
    before = metric(two.other.url, "a2c_messages_across_total")
    assert await here.call("client:tool_call", request_for("client:tool_call")) == {}
    assert metric(two.other.url, "a2c_messages_across_total") == before


async def test_what_is_large_crosses_and_what_is_too_large_is_413(
    two: Two, make_peer: MakePeer, office: str, computer: Computer
) -> None:
    computer.go.set()
    agent, peer = await pair(two, make_peer, office, computer)
    computer.answer = {"text": "答" * 1_000_000}
    call = request_for("client:tool_call", params={"text": "问" * 1_000_000}, timeout=30)
    assert await agent.call("client:tool_call", call) == computer.answer
    assert computer.asked == [stamped(call)]
    # A request that fits where it arrives, and not where it is to go: the number of its ack is longer there.
    body = len('42/smcp,1["client:tool_call",]') + len(
        '{"agent":"a","req_id":"2","computer":"c","tool_name":"t","params":{"text":""},"timeout":30}'
    )
    text = "x" * (4_000_000 - body - 1)
    too_large = request_for("client:tool_call", req_id="2", params={"text": text}, timeout=30)
    assert code(await agent.call("client:tool_call", too_large)) == 413
    assert peer.connected and agent.connected


async def test_the_pending_calls_of_one_agent_are_limited_wherever_they_go(
    two: Two, make_peer: MakePeer, office: str, computer: Computer
) -> None:
    agent, _ = await pair(two, make_peer, office, computer)
    calls = [
        asyncio.create_task(agent.call("client:tool_call", request_for("client:tool_call", req_id=str(n), timeout=30)))
        for n in range(8)
    ]
    await eventually(lambda: len(computer.asked) == 8)
    assert code(await agent.call("client:tool_call", request_for("client:tool_call", req_id="one more"))) == 429
    computer.go.set()
    assert await asyncio.gather(*calls) == [{}] * 8
    await eventually(lambda: two.namespace.pending_relays == 0)


async def test_a_cancel_follows_its_call_however_large_that_is(
    two: Two, make_peer: MakePeer, office: str, computer: Computer
) -> None:
    agent, peer = await pair(two, make_peer, office, computer)
    call = request_for("client:tool_call", params={"text": "x" * 3_000_000})
    await agent.emit("client:tool_call", call)
    await agent.emit("server:tool_call_cancel", {"agent": "a", "req_id": "1"})
    await eventually(lambda: heard(peer, "notify:tool_call_cancel"))
    assert [asked["req_id"] for asked in computer.asked] == ["1"]


async def test_a_computer_that_moves_to_another_office_is_404_at_once_and_out_of_reach(
    two: Two, make_peer: MakePeer, office: str, computer: Computer
) -> None:
    agent, peer = await pair(two, make_peer, office, computer)
    calling = asyncio.create_task(agent.call("client:tool_call", request_for("client:tool_call", timeout=30)))
    await eventually(lambda: computer.asked)
    assert tuple(await join(peer, "computer", "c", office + "-elsewhere")) == (True, None)
    assert code(await calling) == 404
    assert code(await agent.call("client:tool_call", request_for("client:tool_call"))) == 404
    await eventually(lambda: heard(agent, "notify:leave_office"))
    await eventually(lambda: two.namespace.pending_relays == 0)


async def test_an_agent_that_leaves_has_its_calls_cancelled_at_that_computer_alone(
    two: Two, make_peer: MakePeer, office: str, computer: Computer
) -> None:
    agent, peer = await pair(two, make_peer, office, computer)
    bystander = await make_peer(two)
    await join(bystander, "computer", "b", office)
    calling = asyncio.create_task(agent.call("client:tool_call", request_for("client:tool_call", timeout=30)))
    asking = asyncio.create_task(agent.call("client:get_tools", request_for("client:get_tools", req_id="2")))
    await eventually(lambda: len(computer.asked) == 2)
    assert tuple(await agent.call("server:leave_office", {"office_id": office})) == (True, None)
    assert code(await calling) == code(await asking) == 4103
    await eventually(lambda: heard(peer, "notify:tool_call_cancel"))
    assert heard(peer, "notify:tool_call_cancel") == [{"agent": "a", "req_id": "1"}]
    await eventually(lambda: heard(bystander, "notify:leave_office"))
    assert heard(bystander, "notify:tool_call_cancel") == []
    await eventually(lambda: two.namespace.pending_relays == 0)


async def test_what_a_computer_announces_comes_after_its_enter(
    two: Two, make_peer: MakePeer, office: str, computer: Computer
) -> None:
    agent = await make_peer(two)
    await join(agent, "agent", "a", office)
    peers = [await make_peer(two) for _ in range(10)]
    for n, peer in enumerate(peers):
        await peer.emit("server:join_office", {"role": "computer", "name": f"c{n}", "office_id": office})
        await join(peer, "computer", f"c{n}", office)
        assert await peer.call("server:update_tool_list", {}) == {}
    await eventually(lambda: len(heard(agent, "notify:update_tool_list")) == 10)
    order = [(event, data["computer"]) for event, data in agent.received]
    for n in range(10):
        assert order.index(("notify:enter_office", f"c{n}")) < order.index(("notify:update_tool_list", f"c{n}"))


async def test_what_one_session_says_is_left_out_where_too_much_of_it_waits(
    two: Two, make_peer: MakePeer, office: str, computer: Computer, caplog: pytest.LogCaptureFixture
) -> None:
    agent, peer = await pair(two, make_peer, office, computer)
    listing = await agent.call("server:list_room", {"agent": "a", "req_id": "1", "office_id": office})
    [sid] = [session["sid"] for session in listing["sessions"] if session["role"] == "agent"]
    waiting = two.other.namespace.rooms._waiting_of
    waiting[sid] = 5000
    assert await agent.call("server:tool_call_cancel", {"agent": "a", "req_id": "left out"}) == {}
    await eventually(lambda: "left out notify:tool_call_cancel" in caplog.text)
    del waiting[sid]
    assert await agent.call("server:tool_call_cancel", {"agent": "a", "req_id": "heard"}) == {}
    await eventually(lambda: heard(peer, "notify:tool_call_cancel"))
    assert heard(peer, "notify:tool_call_cancel") == [{"agent": "a", "req_id": "heard"}]


@pytest.mark.usefixtures("patient")
async def test_a_process_that_stops_in_good_order_fails_what_it_ran_at_once(
    nats: NatsServer, prefix: str, make_peer: MakePeer, office: str, computer: Computer
) -> None:
    cluster = ClusterOptions((nats.url,), prefix=prefix)
    with async_server(OpenAuthentication(), LIMITS, cluster=cluster) as stays:
        with async_server(OpenAuthentication(), LIMITS, cluster=cluster) as goes:
            await eventually(lambda: all(len(each.namespace.registry.processes) == 2 for each in (stays, goes)))
            agent, peer = await make_peer(stays), await make_peer(goes, setup=computer.listen)
            await join(agent, "agent", "a", office)
            await join(peer, "computer", "c", office)
            # Until the agent's process has seen the computer in its copy of the membership, a call is 404.
            await eventually(lambda: heard(agent, "notify:enter_office"))
            calling = asyncio.create_task(agent.call("client:tool_call", request_for("client:tool_call", timeout=30)))
            await eventually(lambda: computer.asked)
        assert code(await calling) == 404
        await eventually(lambda: heard(agent, "notify:leave_office"))
