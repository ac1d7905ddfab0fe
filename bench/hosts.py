"""The same tool call by our agent, and by an MCP host through `a2c mcp`, over a pipe and over HTTP."""

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from bench.calls import ECHO
from bench.process import A2C, BENCH, Process, computer, running, server

AGENT: Final = "our agent"
STDIO: Final = "a2c mcp, stdio"
HTTP: Final = "a2c mcp, HTTP"
SIZES: Final = ((100, "100 B", 150), (100_000, "100 KB", 50))
_COMPUTER: Final = "bench-computer"


def run(scale: float) -> dict[str, dict[str, Any]]:
    """Everybody's turn comes in every round, so that a slow moment of the machine is everybody's; the median counts."""
    samples: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as exits:
        hub = exits.enter_context(server("ours"))
        drivers = {way: exits.enter_context(_driver(way, hub.said)) for way in (AGENT, STDIO, HTTP)}
        for _ in range(15 if scale >= 1 else 1):
            for size, label, count in SIZES:
                for way, driver in drivers.items():
                    result = driver.ask("latency", size=size, count=max(5, int(count * scale)))
                    if "failed" in result:
                        raise SystemExit(f"{way}: {result['failed']}")
                    for percentile in ("p50", "p99"):
                        figure = f"{percentile}, {label}, ms"
                        samples.setdefault(way, {}).setdefault(figure, []).append(result[f"{percentile}_ms"])
    return {
        way: {name: statistics.median(values) for name, values in figures.items()} for way, figures in samples.items()
    }


@contextmanager
def _driver(way: str, url: str) -> Iterator[Process]:
    """A driver in an office of its own, which has one computer."""
    office = f"bench-{way}"
    drivers = BENCH / "drivers"
    with ExitStack() as exits:
        # Not the user's own, where another seat of the same name might be.
        folder = exits.enter_context(tempfile.TemporaryDirectory(prefix="a2c-"))
        own = {"XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
        env = {**os.environ, **own}
        exits.enter_context(computer("ours", url, office, _COMPUTER, {"echo": ECHO}))
        mcp = [A2C, "mcp", "--url", url, "--office", office, "--computer", _COMPUTER]
        if way == AGENT:
            command = [sys.executable, str(drivers / "ours.py"), url, office, _COMPUTER]
        elif way == STDIO:
            command = [sys.executable, str(drivers / "host.py"), "stdio", json.dumps(own), *mcp]
        else:
            served = exits.enter_context(running([*mcp, "--http", "0"], r"ready on (\S+; bearer token: \S+)", env))
            address, _, token = served.said.partition("; bearer token: ")
            served.drain()
            command = [sys.executable, str(drivers / "host.py"), "http", address, token]
        yield exits.enter_context(running(command, "READY"))
