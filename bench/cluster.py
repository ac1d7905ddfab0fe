"""Several server processes on NATS: what a call costs inside one and across two, and a crowd on two."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from bench.calls import ECHO
from bench.process import Process, clients, cpu_seconds, server
from bench.swarm import Member, Swarm
from tests.nats_server import NatsServer, running_nats

Figures: TypeAlias = dict[str, dict[str, Any]]

#: Connections that are opened, and members that join, at a time.
_AT_ONCE = 32
#: Members of each office of the crowd but the large one.
_SMALL_OFFICE = 10


@dataclass(frozen=True)
class Layout:
    """One or two servers, with an agent and a computer; if two, on different sides."""

    servers: Sequence[Process]
    agent: Process

    def cpu_seconds(self) -> float:
        return sum(process.cpu_seconds() for process in self.servers)


def calls(scale: float, *, beside: bool = True) -> tuple[Figures, Figures]:
    """The same calls in turns: one process with NATS, two processes, and one without NATS beside which both are put."""
    samples: dict[str, list[dict[str, float]]] = {}
    with ExitStack() as exits:
        nats = exits.enter_context(running_nats(Path(exits.enter_context(tempfile.TemporaryDirectory()))))
        layouts = {
            "with NATS": _layout(exits, 1, "--nats", nats.url, "--nats-prefix", "inside"),
            "across": _layout(exits, 2, "--nats", nats.url, "--nats-prefix", "across"),
        }
        if beside:
            layouts["alone"] = _layout(exits, 1)
        for _ in range(15 if scale >= 1 else 1):
            for name, layout in layouts.items():
                samples.setdefault(name, []).append(_measured(layout, nats, scale))
    median = {name: _medians(each) for name, each in samples.items()}
    inside, across = {"ours": median["with NATS"]}, {"ours": median["across"]}
    if beside:
        inside["without NATS"] = across["one process"] = median["alone"]
    return inside, across


def _layout(exits: ExitStack, count: int, *arguments: str) -> Layout:
    servers = [exits.enter_context(server("ours", *arguments)) for _ in range(count)]
    # The last server has the computer, the first one the agent: two ends, unless there is one.
    _, agent = exits.enter_context(clients("ours", {"echo": ECHO}, servers[-1].said, servers[0].said))
    return Layout(servers, agent)


def _measured(layout: Layout, nats: NatsServer, scale: float) -> dict[str, float]:
    small = layout.agent.ask("latency", size=100, count=max(5, int(150 * scale)))
    large = layout.agent.ask("latency", size=100_000, count=max(5, int(50 * scale)))
    before, nats_before = layout.cpu_seconds(), cpu_seconds(nats.pid)
    count = max(64, int(1000 * scale))
    busy = layout.agent.ask("throughput", size=100, count=count, inflight=64)
    thousands = count / 1000
    return {
        "p50, 100 B, ms": small["p50_ms"],
        "p99, 100 B, ms": small["p99_ms"],
        "p50, 100 KB, ms": large["p50_ms"],
        "calls/s, 100 B, 64 in flight": busy["calls_per_second"],
        "CPU s per 1,000 calls, servers": (layout.cpu_seconds() - before) / thousands,
        "CPU s per 1,000 calls, NATS": (cpu_seconds(nats.pid) - nats_before) / thousands,
    }


def _medians(samples: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(sample[key] for sample in samples) for key in samples[0]}


# --- a crowd


def crowd(connections: int, members: int) -> Figures:
    """So many connections, half at each of two processes. Some of both are in one large office."""
    with ExitStack() as exits:
        nats = exits.enter_context(running_nats(Path(exits.enter_context(tempfile.TemporaryDirectory()))))
        servers = [exits.enter_context(server("ours", "--nats", nats.url)) for _ in range(2)]
        return {"ours": asyncio.run(_crowd(servers, nats, connections, members))}


async def _crowd(servers: list[Process], nats: NatsServer, connections: int, members: int) -> dict[str, float]:
    async with AsyncExitStack() as exits:
        swarms = [await exits.enter_async_context(Swarm(each.said)) for each in servers]
        base = sum(each.rss_bytes() for each in servers)
        began = time.perf_counter()
        await asyncio.gather(*(swarm.grow(connections // 2, _AT_ONCE) for swarm in swarms))
        connected = time.perf_counter()
        await asyncio.gather(*(_join_all(swarm, side, members // 2) for side, swarm in enumerate(swarms)))
        joined = time.perf_counter()
        large = [member for swarm in swarms for member in swarm.members[: members // 2]]
        await _all_heard(large)
        idle = await _idle(servers)
        figures = {
            "all connected, s": connected - began,
            "all joined, s": joined - connected,
            "memory per connection, KiB": (sum(each.rss_bytes() for each in servers) - base) / connections / 1024,
            "idle, CPU of both servers, ms a second": idle * 1e3,
        }
        return figures | await _broadcasts(servers, nats, large, idle)


async def _join_all(swarm: Swarm, side: int, in_large_office: int) -> None:
    """The first of each side join the large office, the others small ones that are across both sides, too."""
    waiting = list(enumerate(swarm.members))

    async def join() -> None:
        while waiting:
            number, member = waiting.pop()
            large = number < in_large_office
            office = "large" if large else f"small-{number // (_SMALL_OFFICE // 2)}"
            await member.join(f"c{side}-{number}", office)

    await asyncio.gather(*(join() for _ in range(_AT_ONCE)))


async def _all_heard(members: list[Member]) -> None:
    """Wait until nobody hears of anybody's enter any more."""
    heard = -1
    while (now := sum(member.notifications for member in members)) != heard:
        heard = now
        await asyncio.sleep(1)


async def _idle(servers: list[Process], seconds: float = 3.0) -> float:
    """CPU seconds that both servers take in a second in which nothing happens: pings."""
    before = sum(each.cpu_seconds() for each in servers)
    await asyncio.sleep(seconds)
    return (sum(each.cpu_seconds() for each in servers) - before) / seconds


async def _broadcasts(servers: list[Process], nats: NatsServer, members: list[Member], idle: float) -> dict[str, float]:
    """Announcements of members of the large office, each time another one, at both sides in turn."""
    rounds = min(10, len(members) // 2)
    half = len(members) // 2
    senders = [members[n // 2 + (n % 2) * half] for n in range(rounds)]
    listeners = [member for member in members if member not in senders]
    spent, before, nats_before = [], sum(each.cpu_seconds() for each in servers), cpu_seconds(nats.pid)
    for sender in senders:
        heard = [member.notifications for member in listeners]
        started = time.perf_counter()
        await sender.call("server:update_config", {})
        await Swarm.settled(
            lambda heard=heard: all(  # type: ignore[misc]
                member.notifications > had for member, had in zip(listeners, heard, strict=True)
            )
        )
        spent.append(time.perf_counter() - started)
    after, nats_after = sum(each.cpu_seconds() for each in servers), cpu_seconds(nats.pid)
    return {
        "broadcast, until the last has heard, ms": statistics.median(spent) * 1e3,
        "broadcast, CPU of both servers, ms": (after - before - idle * sum(spent)) / rounds * 1e3,
        "broadcast, CPU of NATS, ms": (nats_after - nats_before) / rounds * 1e3,
    }
