"""A tool call from agent to MCP server and back: how long, how many, at what cost."""

import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeAlias

from bench.process import BENCH, Process, Stack, running, stack

#: Has a driver do something, and says what it took; with the stack that it drives, if it drives one.
Step: TypeAlias = Callable[[Process, Stack | None, float], dict[str, Any]]

ECHO = [sys.executable, str(BENCH / "echo_mcp.py")]


def run(contestants: list[str], scale: float) -> dict[str, dict[str, Any]]:
    """Every contestant's stack side by side. Each step is short and everybody's turn comes before the next one's, so
    that a slow moment of the machine is everybody's; the median of the rounds counts.
    """
    samples: dict[str, list[dict[str, Any]]] = {}
    with ExitStack() as exits:
        stacks = {name: exits.enter_context(stack(name, {"echo": ECHO})) for name in contestants}
        command = [sys.executable, str(BENCH / "drivers" / "direct.py"), *ECHO]
        direct = exits.enter_context(running(command, "READY"))
        contenders = {name: each.agent for name, each in stacks.items()} | {"direct MCP": direct}
        for _ in range(15 if scale >= 1 else 1):
            for step in STEPS:
                for name, driver in contenders.items():
                    figures = step(driver, stacks.get(name), scale)
                    samples.setdefault(name, []).append(figures)
        for name, each in stacks.items():
            samples[name].append(
                {f"RSS of {role}, MiB": process.rss_bytes() / 2**20 for role, process in each.roles.items()}
            )
    return {name: _medians(figures) for name, figures in samples.items()}


def large(contestants: list[str], size: int) -> dict[str, dict[str, Any]]:
    """One call whose result is as large as that."""
    results = {}
    for name in contestants:
        with stack(name, {"echo": ECHO}) as each:
            results[name] = {"ms": each.agent.ask("latency", size=size, count=3).get("p50_ms")}
    return results


# --- the steps of a round


def _one_at_a_time(size: int, label: str, count: int, *, objects: bool = False) -> Step:
    def step(driver: Process, _: Stack | None, scale: float) -> dict[str, Any]:
        result = driver.ask("latency", size=size, count=max(5, int(count * scale)), objects=objects)
        return {f"p50, {label}, ms": result.get("p50_ms"), f"p99, {label}, ms": result.get("p99_ms")}

    return step


def _in_flight(size: int, label: str, count: int, inflight: int) -> Step:
    def step(driver: Process, _: Stack | None, scale: float) -> dict[str, Any]:
        result = driver.ask("throughput", size=size, count=max(inflight, int(count * scale)), inflight=inflight)
        what = f"{label}, {inflight} in flight"
        return {
            f"calls/s, {what}": result.get("calls_per_second"),
            f"p50, {what}, ms": result.get("p50_ms"),
            f"p99, {what}, ms": result.get("p99_ms"),
        }

    return step


def _with_cpu(inner: Step, count: int, inflight: int) -> Step:
    def step(driver: Process, each: Stack | None, scale: float) -> dict[str, Any]:
        roles = each.roles if each else {}
        before = {role: process.cpu_seconds() for role, process in roles.items()}
        figures = inner(driver, each, scale)
        thousands = max(inflight, int(count * scale)) / 1000
        spent = {role: (process.cpu_seconds() - before[role]) / thousands for role, process in roles.items()}
        figures |= {f"CPU s per 1,000 calls, {role}": seconds for role, seconds in spent.items()}
        return figures | ({"CPU s per 1,000 calls, all three": sum(spent.values())} if spent else {})

    return step


STEPS: list[Step] = [
    _one_at_a_time(100, "100 B", 150),
    _one_at_a_time(100_000, "100 KB", 50),
    _one_at_a_time(100_000, "100 KB of objects", 20, objects=True),
    _in_flight(100, "100 B", 500, 16),
    _in_flight(100_000, "100 KB", 100, 16),
    _with_cpu(_in_flight(100, "100 B", 1000, 64), 1000, 64),
]


def _medians(samples: list[dict[str, Any]]) -> dict[str, Any]:
    keys = {key: None for sample in samples for key in sample}
    return {
        key: statistics.median(values)
        for key in keys
        if (values := [sample[key] for sample in samples if sample.get(key) is not None])
    }
