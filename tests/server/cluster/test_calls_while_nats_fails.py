"""NATS restarted, and one of three NATS servers killed, while calls cross between two processes all the time."""

import asyncio
import contextlib
import json
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import socketio.exceptions

from a2c_smcp.server import OpenAuthentication
from a2c_smcp.server.cluster.options import ClusterOptions
from tests.nats_server import NatsServer, running_cluster, running_nats
from tests.server.conftest import MakePeer
from tests.server.harness import Peer, Running, async_server, eventually
from tests.server.test_scenarios import join, request_for

#: What a call may be answered with while NATS is away: it names NATS, or its process cannot be reached.
_EXCUSES = {404, 500}


@dataclass
class Load:
    """Calls, one after the other in each of a few tasks, each with an id of its own."""

    agent: Peer
    ran: Counter[str] = field(default_factory=Counter)
    right: int = 0
    excused: Counter[int] = field(default_factory=Counter)
    wrong: list[Any] = field(default_factory=list)
    stopping: bool = False

    def listen(self, peer: Peer) -> None:
        peer.answer("client:tool_call", self._run)

    def _run(self, data: dict[str, Any]) -> Any:
        self.ran[data["req_id"]] += 1
        return {"for": data["req_id"]}

    async def _call(self, worker: int) -> None:
        number = 0
        while not self.stopping:
            number += 1
            req_id = f"{worker}-{number}"
            reply = await self.agent.call(
                "client:tool_call", request_for("client:tool_call", req_id=req_id, timeout=20)
            )
            if reply == {"for": req_id}:
                self.right += 1
            elif reply.get("error", {}).get("code") in _EXCUSES:
                self.excused[reply["error"]["code"]] += 1
                await asyncio.sleep(0.05)
            else:
                self.wrong.append(reply)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            for worker in range(8):
                tasks.create_task(self._call(worker))
            try:
                yield
            finally:
                self.stopping = True

    async def goes_on(self) -> None:
        """Wait until calls are answered rightly again."""
        before = self.right
        await eventually(lambda: self.right > before + 20)

    def check(self) -> None:
        assert self.wrong == []
        assert set(self.ran.values()) == {1}, "no call ran twice"


async def begin(servers: tuple[Running, Running], make_peer: MakePeer) -> tuple[Load, Peer, Peer]:
    await eventually(lambda: all(len(each.namespace.registry.processes) == 2 for each in servers))
    agent = await make_peer(servers[0])
    load = Load(agent)
    computer = await make_peer(servers[1], setup=load.listen)
    await eventually_joins(agent, "agent", "a", "o")
    await eventually_joins(computer, "computer", "c", "o")
    return load, agent, computer


async def test_a_restart_of_nats_under_load_makes_no_wrong_answer_and_nothing_runs_twice(
    tmp_path: Path, make_peer: MakePeer
) -> None:
    with running_nats(tmp_path) as nats:
        cluster = ClusterOptions((nats.url,), lease=60)
        with (
            async_server(OpenAuthentication(), cluster=cluster) as one,
            async_server(OpenAuthentication(), cluster=cluster) as other,
        ):
            load, agent, computer = await begin((one, other), make_peer)
            async with load.running():
                await load.goes_on()
                await asyncio.to_thread(nats.restart)
                await load.goes_on()
                await asyncio.to_thread(nats.kill)
                await eventually(lambda: load.excused[500])
                await asyncio.to_thread(nats.start)
                await load.goes_on()
            load.check()
            assert agent.connected and computer.connected
            await eventually(lambda: one.namespace.pending_relays == other.namespace.pending_relays == 0)


async def test_one_of_three_nats_servers_the_leader_too_and_then_another_can_be_killed_under_load(
    tmp_path: Path, make_peer: MakePeer
) -> None:
    with running_cluster(tmp_path) as servers:
        urls = [server.url for server in servers]
        with (
            async_server(OpenAuthentication(), cluster=ClusterOptions((urls[0], urls[1], urls[2]), lease=60)) as one,
            async_server(OpenAuthentication(), cluster=ClusterOptions((urls[1], urls[2], urls[0]), lease=60)) as other,
        ):
            load, agent, computer = await begin((one, other), make_peer)
            held = {one.namespace.registry.process, other.namespace.registry.process}
            async with load.running():
                await load.goes_on()
                leader = await eventually(lambda: _leader(servers))
                await asyncio.to_thread(leader.kill)
                await load.goes_on()
                newcomer = await eventually_enters(make_peer, one)
                await eventually_joins(newcomer, "computer", "d", "o")
                await load.goes_on()
                names = {one.namespace.registry.process, other.namespace.registry.process}
                assert names == held, "no process was fenced"
                # A process that has noticed the loss would not let it in.
                late = await eventually_enters(make_peer, other)
                # One of two is no majority: nobody can join, and those who are there go on.
                await asyncio.to_thread(next(each for each in servers if each.popen is not None).kill)
                done, reason = await join(late, "computer", "e", "o")
                assert done is False and reason.startswith("500 ") and "NATS" in reason
                await load.goes_on()
            load.check()
            assert agent.connected and computer.connected


async def eventually_enters(make_peer: MakePeer, server: Running) -> Peer:
    """A process lets nobody in while it has not yet heard of a new leader."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(socketio.exceptions.ConnectionError):
                return await make_peer(server)
            await asyncio.sleep(0.2)


async def eventually_joins(peer: Peer, role: str, name: str, office: str) -> None:
    """Joins may be answered with 500 while the NATS servers elect a leader, or have much to do."""
    async with asyncio.timeout(60):
        while not (reply := await join(peer, role, name, office))[0]:
            assert reply[1].startswith("500 "), reply
            await asyncio.sleep(0.2)


def _leader(servers: list[NatsServer]) -> NatsServer | None:
    """The server that leads the bucket of the memberships, unless they are just electing another."""
    url = f"http://127.0.0.1:{servers[0].monitor_port}/jsz?accounts=true&streams=true"
    with urllib.request.urlopen(url, timeout=10) as reply:
        accounts = json.load(reply).get("account_details") or []
    streams = [stream for account in accounts for stream in account.get("stream_detail") or []]
    leaders = {stream["cluster"].get("leader") for stream in streams if stream["name"].startswith("KV_")}
    return next((server for server in servers if server.name in leaders), None)
