"""A server process that is killed, and one that is stopped for longer than its lease: real processes.

The bounds are those of a lease of 15 s, shortened: who waits is told after a few seconds, and names are free when the
lease is over.
"""

import asyncio
import signal
from collections import Counter
from functools import partial
from typing import Any

from a2c_smcp.server import OpenAuthentication
from a2c_smcp.server.cluster.options import ClusterOptions
from tests.nats_server import NatsServer
from tests.server.conftest import MakePeer
from tests.server.harness import DEADLINE, Peer, async_server, eventually, heard
from tests.server.test_cli import running
from tests.server.test_draining import status_of
from tests.server.test_scenarios import code, join, request_for

LEASE = 12


class Runs:
    """What computers were asked to run; they never answer."""

    def __init__(self) -> None:
        self.started: Counter[str] = Counter()
        self.never = asyncio.Event()

    def listen(self, peer: Peer) -> None:
        peer.answer("client:tool_call", self._run)

    async def _run(self, data: dict[str, Any]) -> None:
        self.started[data["req_id"]] += 1
        await self.never.wait()


def calling(agent: Peer, computer: str, req_id: str) -> "asyncio.Task[Any]":
    request = request_for("client:tool_call", computer, req_id=req_id, timeout=60)
    return asyncio.create_task(agent.call("client:tool_call", request, timeout=60))


def arguments(nats: NatsServer, prefix: str) -> list[str]:
    return ["--nats", nats.url, "--nats-prefix", prefix, "--nats-lease", str(LEASE), "--log-level", "error"]


async def test_a_killed_process_with_50_members_and_20_pending_calls(
    nats: NatsServer, prefix: str, make_peer: MakePeer, office: str
) -> None:
    runs, second = Runs(), office + "-2"
    cluster = ClusterOptions((nats.url,), prefix=prefix, lease=LEASE, renewal=0.5)
    with (
        async_server(OpenAuthentication(), cluster=cluster) as stays,
        running(*arguments(nats, prefix)) as killed,
    ):
        await eventually(lambda: len(stays.namespace.registry.processes) == 2)
        agent = await make_peer(stays)
        await join(agent, "agent", "a", office)
        gone = [await make_peer(stays, url=killed.url, setup=runs.listen) for _ in range(49)]
        for n, peer in enumerate(gone):
            assert tuple(await join(peer, "computer", f"c{n}", office)) == (True, None)
        # An agent of the other process, with computers here: what it has run is cancelled.
        other_agent = await make_peer(stays, url=killed.url)
        await join(other_agent, "agent", "a", second)
        here = [await make_peer(stays, setup=runs.listen) for _ in range(10)]
        for n, peer in enumerate(here):
            await join(peer, "computer", f"h{n}", second)
        # Until an agent's process has seen a computer in its copy of the membership, a call is 404.
        await eventually(lambda: len(heard(agent, "notify:enter_office")) == 49)
        await eventually(lambda: len(heard(other_agent, "notify:enter_office")) == 10)
        calls = [calling(agent, f"c{n}", f"there-{n}") for n in range(10)]
        lost = [calling(other_agent, f"h{n}", f"here-{n}") for n in range(10)]
        await eventually(lambda: len(runs.started) == 20)

        killed.popen.kill()
        loop = asyncio.get_running_loop()
        died = loop.time()
        replies = await asyncio.gather(*calls)
        assert {code(reply) for reply in replies} == {404}
        assert loop.time() - died < 20, "well before the calls' own timeout of 60 s"
        await eventually(lambda: len(heard(agent, "notify:leave_office")) == 49)
        assert {data["computer"] for data in heard(agent, "notify:leave_office")} == {f"c{n}" for n in range(49)}
        assert code(await calling(agent, "c0", "too late")) == 404
        for n in (0, 48):
            assert tuple(await join(await make_peer(stays), "computer", f"c{n}", office)) == (True, None)
        for n, peer in enumerate(here):
            await eventually(partial(heard, peer, "notify:tool_call_cancel"))
            assert heard(peer, "notify:tool_call_cancel") == [{"agent": "a", "req_id": f"here-{n}"}]
        await eventually(lambda: heard(here[0], "notify:leave_office") == [{"office_id": second, "agent": "a"}])
        assert tuple(await join(await make_peer(stays), "agent", "a", second)) == (True, None)
        assert set(runs.started.values()) == {1}
        await eventually(lambda: stays.namespace.pending_relays == 0)
        for call in lost:
            call.cancel()


async def test_a_process_that_was_stopped_for_longer_than_its_lease_does_nothing_in_its_old_name(
    nats: NatsServer, prefix: str, make_peer: MakePeer, office: str
) -> None:
    runs, successor = Runs(), Runs()
    cluster = ClusterOptions((nats.url,), prefix=prefix, lease=LEASE, renewal=0.5)
    with (
        async_server(OpenAuthentication(), cluster=cluster) as stays,
        running(*arguments(nats, prefix)) as stopped,
    ):
        await eventually(lambda: len(stays.namespace.registry.processes) == 2)
        agent = await make_peer(stays)
        computer = await make_peer(stays, url=stopped.url, setup=runs.listen)
        other_agent = await make_peer(stays, url=stopped.url)
        here = await make_peer(stays, setup=runs.listen)
        await join(agent, "agent", "a", office)
        await join(computer, "computer", "c", office)
        await join(other_agent, "agent", "a", office + "-2")
        await join(here, "computer", "h", office + "-2")
        await eventually(lambda: heard(agent, "notify:enter_office") and heard(other_agent, "notify:enter_office"))
        before = calling(agent, "c", "before")
        await eventually(lambda: runs.started["before"])

        stopped.popen.send_signal(signal.SIGSTOP)
        during = calling(agent, "c", "during")
        # What waits in its connection from a client is not acted on, either, when it wakes.
        await other_agent.emit("client:tool_call", request_for("client:tool_call", "h", req_id="from the dead"))
        await computer.emit("server:update_config", {"computer": "c"})
        assert code(await before) == code(await during) == 404
        await eventually(lambda: heard(agent, "notify:leave_office"))
        taker = await make_peer(stays, setup=successor.listen)
        assert tuple(await join(taker, "computer", "c", office)) == (True, None)

        stopped.popen.send_signal(signal.SIGCONT)
        await eventually(lambda: not computer.connected and not other_agent.connected)
        after = calling(agent, "c", "after")
        await eventually(lambda: successor.started["after"])
        after.cancel()
        await eventually(lambda: len(stays.namespace.registry.processes) == 2)
        await eventually(lambda: status_of(f"{stopped.url}/readyz") == 200)
        back = await make_peer(stays, url=stopped.url)
        async with asyncio.timeout(DEADLINE):
            # The others may know of its new lease before it does; until then a join is 500.
            while tuple(await join(back, "computer", "back", office)) != (True, None):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert dict(runs.started) == {"before": 1}, "nothing that was given up was begun"
        assert heard(agent, "notify:update_config") == []
