"""What one large office costs: the joiner's wait, the CPU of a broadcast, the memory of a member."""

import asyncio
import statistics
import time
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


async def _measure(host: Process, members: int) -> dict[str, float]:
    base = host.rss_bytes()
    sampled = max(3, min(10, members // 10))
    early = range(9, 9 + sampled)
    late = range(members - sampled, members)
    waits: dict[int, float] = {}
    async with Swarm(host.said) as swarm:
        await swarm.grow(members)
        for n, member in enumerate(swarm.members):
            if n in early or n in late:
                await _quiet(host, 0.15)
            started = time.perf_counter()
            await member.join(f"c{n}", OFFICE)
            waits[n] = time.perf_counter() - started
        await _quiet(host)
        full = host.rss_bytes()

        rounds = 20
        heard = [member.notifications for member in swarm.members]
        cpu = host.cpu_seconds()
        for _ in range(rounds):
            await swarm.members[0].call("server:update_config", {"computer": "c0"})
        await swarm.settled(
            lambda: all(
                member.notifications - before >= rounds
                for member, before in zip(swarm.members[1:], heard[1:], strict=True)
            )
        )
        await _quiet(host)
        cpu = host.cpu_seconds() - cpu
        await swarm.leave()
        await _quiet(host, 0.5)
        left = host.rss_bytes()

        # An allocator keeps what it was given back; whether anything leaked shows when as many come again.
        await swarm.grow(members)
        for n, member in enumerate(swarm.members):
            await member.join(f"c{n}", OFFICE)
        await swarm.leave()
        await _quiet(host, 0.5)
    return {
        "ack of the 10th join, ms": statistics.median(waits[n] for n in early) * 1e3,
        "ack of the last join, ms": statistics.median(waits[n] for n in late) * 1e3,
        "broadcast, server CPU, ms": cpu / rounds * 1e3,
        "broadcast, server CPU per receiver, ms": cpu / rounds / (members - 1) * 1e3,
        "memory per member, KiB": (full - base) / members / 1024,
        "memory kept per member that went, KiB": (left - base) / members / 1024,
        "growth when as many come and go again, KiB": (host.rss_bytes() - left) / members / 1024,
    }


def run(contestants: list[str], members: int) -> dict[str, dict[str, Any]]:
    """One office of so many members, for each contestant."""
    results = {}
    for contestant in contestants:
        with server(contestant) as host:
            results[contestant] = asyncio.run(_measure(host, members))
    return results
