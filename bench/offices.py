"""What one large office costs: the joiner's wait, the CPU of a broadcast, the memory of a member."""

import asyncio
import statistics
import time
from contextlib import AsyncExitStack, ExitStack
from typing import Any

from bench.process import Process, server
from bench.swarm import Swarm

OFFICE = "bench"


async def _quiet(host: Process, seconds: float = 0.3) -> None:
    """Wait until the server has nothing left to do."""
    before = host.cpu_seconds()
    while True:
        await asyncio.sleep(seconds)
        now = host.cpu_seconds()
        if now - before < 0.02:
            return
        before = now


class Office:
    """One server, and an office on it that fills, talks and empties."""

    def __init__(self, host: Process, swarm: Swarm, members: int) -> None:
        self._host = host
        self._swarm = swarm
        self._size = members
        self._base = host.rss_bytes()
        self._cpu = 0.0
        self._rounds = 0
        self.figures: dict[str, float] = {}

    async def fill(self) -> None:
        sampled = max(3, min(10, self._size // 10))
        early = range(9, 9 + sampled)
        late = range(self._size - sampled, self._size)
        waits: dict[int, float] = {}
        await self._swarm.grow(self._size)
        for n, member in enumerate(self._swarm.members):
            if n in early or n in late:
                await _quiet(self._host, 0.15)
            started = time.perf_counter()
            await member.join(f"c{n}", OFFICE)
            waits[n] = time.perf_counter() - started
        await _quiet(self._host)
        self.figures["ack of the 10th join, ms"] = statistics.median(waits[n] for n in early) * 1e3
        self.figures["ack of the last join, ms"] = statistics.median(waits[n] for n in late) * 1e3
        self.figures["memory per member, KiB"] = self._kib(self._host.rss_bytes() - self._base)

    async def broadcast(self, rounds: int) -> None:
        members = self._swarm.members
        heard = [member.notifications for member in members]
        before = self._host.cpu_seconds()
        # Each round another sender: repeats of one computer's announcement that wait for a slow reader are sent once.
        for n in range(rounds):
            await members[n].call("server:update_config", {"computer": f"c{n}"})
        await self._swarm.settled(
            lambda: all(
                member.notifications - had >= rounds
                for member, had in zip(members[rounds:], heard[rounds:], strict=True)
            )
        )
        await _quiet(self._host)
        self._cpu += self._host.cpu_seconds() - before
        self._rounds += rounds
        each = self._cpu / self._rounds * 1e3
        self.figures["broadcast, server CPU, ms"] = each
        self.figures["broadcast, server CPU per receiver, ms"] = each / (self._size - 1)

    async def empty(self) -> None:
        await self._swarm.leave()
        await _quiet(self._host, 0.5)
        left = self._host.rss_bytes()
        # An allocator keeps what it was given back; whether anything leaked shows when as many come again.
        await self._swarm.grow(self._size)
        for n, member in enumerate(self._swarm.members):
            await member.join(f"c{n}", OFFICE)
        await self._swarm.leave()
        await _quiet(self._host, 0.5)
        self.figures["memory kept per member that went, KiB"] = self._kib(left - self._base)
        self.figures["growth when as many come and go again, KiB"] = self._kib(self._host.rss_bytes() - left)

    def _kib(self, total: int) -> float:
        return total / self._size / 1024


def run(contestants: list[str], members: int) -> dict[str, dict[str, Any]]:
    """One office of so many members, for each contestant. Their broadcasts take turns: a slow moment is everybody's."""
    with ExitStack() as exits:
        hosts = {name: exits.enter_context(server(name)) for name in contestants}
        return asyncio.run(_measure(hosts, members))


async def _measure(hosts: dict[str, Process], members: int) -> dict[str, dict[str, Any]]:
    async with AsyncExitStack() as exits:
        offices = {
            name: Office(host, await exits.enter_async_context(Swarm(host.said)), members)
            for name, host in hosts.items()
        }
        for office in offices.values():
            await office.fill()
        for _ in range(3):
            for office in offices.values():
                await office.broadcast(15)  # so many that the pings of a thousand members do not count
        for office in offices.values():
            await office.empty()
        return {name: office.figures for name, office in offices.items()}
