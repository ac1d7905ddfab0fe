"""A tool call from agent to MCP server and back: how long, how many, at what cost."""

import statistics
import sys
from contextlib import ExitStack
from typing import Any

from bench.process import BENCH, Stack, running, stack

ECHO = [sys.executable, str(BENCH / "echo_mcp.py")]


def run(contestants: list[str], scale: float) -> dict[str, dict[str, Any]]:
    """Every contestant's stack side by side, asked in turn; the median of the rounds counts."""
    rounds = 5 if scale >= 1 else 1
    samples: dict[str, list[dict[str, Any]]] = {contestant: [] for contestant in contestants}
    with ExitStack() as exits:
        stacks = {name: exits.enter_context(stack(name, {"echo": ECHO})) for name in contestants}
        direct = exits.enter_context(running([sys.executable, str(BENCH / "drivers" / "direct.py"), *ECHO], "READY"))
        for _ in range(rounds):
            for name, each in stacks.items():
                samples[name].append(_round(each, scale))
            samples.setdefault("direct MCP", []).append(
                _ask(direct, scale) | {"calls/s, 100 B, 64 in flight": _rate(direct, scale, 100, 64)}
            )
        for name, each in stacks.items():
            samples[name][-1] |= {
                f"RSS of {role}, MiB": process.rss_bytes() / 2**20 for role, process in each.roles.items()
            }
    return {name: _medians(figures) for name, figures in samples.items()}


def large(contestants: list[str], size: int) -> dict[str, dict[str, Any]]:
    """One call whose result is as large as that."""
    results = {}
    for name in contestants:
        with stack(name, {"echo": ECHO}) as each:
            results[name] = {"ms": each.agent.ask("latency", size=size, count=3).get("p50_ms")}
    return results


def _ask(driver: Any, scale: float) -> dict[str, Any]:
    figures = {}
    for size, label, count in ((100, "100 B", 400), (100_000, "100 KB", 100)):
        result = driver.ask("latency", size=size, count=max(5, int(count * scale)))
        figures[f"p50, {label}, ms"] = result.get("p50_ms")
        figures[f"p99, {label}, ms"] = result.get("p99_ms")
    return figures


def _rate(driver: Any, scale: float, size: int, inflight: int) -> Any:
    count = max(inflight, int((2000 if size < 1000 else 300) * scale))
    return driver.ask("throughput", size=size, count=count, inflight=inflight).get("calls_per_second")


def _round(each: Stack, scale: float) -> dict[str, Any]:
    figures = _ask(each.agent, scale)
    figures["calls/s, 100 B, 16 in flight"] = _rate(each.agent, scale, 100, 16)
    figures["calls/s, 100 KB, 16 in flight"] = _rate(each.agent, scale, 100_000, 16)
    before = {role: process.cpu_seconds() for role, process in each.roles.items()}
    count = max(64, int(2000 * scale))
    figures["calls/s, 100 B, 64 in flight"] = _rate(each.agent, scale, 100, 64)
    spent = {role: process.cpu_seconds() - before[role] for role, process in each.roles.items()}
    for role, seconds in spent.items():
        figures[f"CPU s per 1,000 calls, {role}"] = seconds / count * 1000
    figures["CPU s per 1,000 calls, all three"] = sum(spent.values()) / count * 1000
    return figures


def _medians(samples: list[dict[str, Any]]) -> dict[str, Any]:
    keys = {key: None for sample in samples for key in sample}
    return {
        key: statistics.median(values)
        for key in keys
        if (values := [sample[key] for sample in samples if sample.get(key) is not None])
    }
