"""Computers come, move and go through three processes while NATS is stopped, killed and robbed of its watches. In the
end all that anybody knows must agree: the sessions, every replica, the bucket.
"""

import asyncio
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from a2c_smcp.errors import InternalError, NameTakenError
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.offices import Grant, Member
from tests.nats_server import NatsServer, running_nats
from tests.server.cluster.processes import Process, registries, registry, request
from tests.server.harness import eventually


class Roamer:
    """A computer that never rests. One whose connection is closed comes back in another session."""

    def __init__(self, process: Process, number: int, seed: int) -> None:
        self.registry = process.registry
        self.number = number
        self.choice = random.Random(f"{seed}/{number}")
        self.sessions = 0
        self.outcomes: Counter[str] = Counter()

    async def roam(self, over: asyncio.Event) -> None:
        sid = await self.connected(None)
        while not over.is_set():
            if sid in self.registry._cut or self.choice.random() < 0.1:
                sid = await self.connected(sid)
            try:
                await self.act(sid)
            except NameTakenError:
                self.outcomes["taken"] += 1
            except InternalError:
                self.outcomes["refused"] += 1
                await asyncio.sleep(0.05)
            await asyncio.sleep(self.choice.random() * 0.01)

    async def connected(self, before: str | None) -> str:
        if before is not None:
            await self.registry.disconnect(before)
        self.sessions += 1
        sid = f"{self.number}-{self.sessions}"
        self.registry.connect(sid, Grant())
        return sid

    async def act(self, sid: str) -> None:
        member = (self.registry.session(sid)).member
        if member is not None and self.choice.random() < 0.15:
            await self.registry.leave(sid, {"office_id": member.office_id})
        else:
            name, office_id = f"c{self.choice.randrange(12)}", f"o{self.choice.randrange(3)}"
            await self.registry.join(sid, request("computer", name, office_id))
            self.outcomes["joined"] += 1


async def trouble(nats: NatsServer, process: Process) -> None:
    """What a bad day brings, well within a lease each time."""
    client = process.connection.client
    for deed in ("kill", "stop", "watches", "kill", "stop"):
        await asyncio.sleep(1)
        match deed:
            case "stop":
                nats.send(signal.SIGSTOP)
                await asyncio.sleep(
                    2.6
                )  # longer than an answer may take: what was asked for happens, and nobody is told
                nats.send(signal.SIGCONT)
            case "kill":
                await asyncio.to_thread(nats.kill)
                await asyncio.sleep(0.5)
                await asyncio.to_thread(nats.start)
            case _:
                await eventually(lambda: client.is_connected)
                await process.forget_watches()


def sessions_of(processes: list[Process]) -> set[Member]:
    sessions = [session for each in processes for session in each.registry._sessions.values()]
    return {session.member for session in sessions if session.member is not None}


def agree(processes: list[Process]) -> bool:
    members = sessions_of(processes)
    replicas = [each.registry.replica for each in processes]
    claims = [{claim.member for claim in replica._claims.values()} for replica in replicas]
    return all(set(replica.directory) == members for replica in replicas) and all(each == members for each in claims)


@pytest.mark.timeout(240)
async def test_all_agree_in_the_end_on_who_is_where(tmp_path: Path) -> None:
    with running_nats(tmp_path) as nats:
        async with registries(ClusterOptions((nats.url,), lease=60), 3) as processes:
            over = asyncio.Event()
            roamers = [Roamer(processes[number % 3], number, seed=1) for number in range(24)]
            roaming = [asyncio.create_task(roamer.roam(over)) for roamer in roamers]
            await trouble(nats, processes[0])
            over.set()
            await asyncio.gather(*roaming)
            await eventually(lambda: all(each.registry.unavailable() is None for each in processes))
            await eventually(lambda: agree(processes))
            assert all(each.heard.ended_as == [] for each in processes)
            outcomes = sum((roamer.outcomes for roamer in roamers), Counter[str]())
            assert outcomes["joined"] > 100 and outcomes["refused"] > 10
            async with registry(ClusterOptions((nats.url,))) as late:
                assert set(late.registry.replica.directory) == sessions_of(processes)
