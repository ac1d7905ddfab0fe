"""The same tool call by our agent, and by an MCP host through `a2c mcp`, over a pipe and over HTTP.

Beside them the same host calls a tool of the kit itself, and one through FastMCP's proxy on the same machine.
"""

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from bench.calls import ECHO
from bench.process import A2C, BENCH, ROOT, Process, computer, running, server

AGENT: Final = "our agent"
KIT: Final = {"stdio": "the kit alone, stdio", "http": "the kit alone, HTTP"}
OURS: Final = {"stdio": "a2c mcp, stdio", "http": "a2c mcp, HTTP"}
PROXY: Final = {"stdio": "FastMCP's proxy, stdio", "http": "FastMCP's proxy, HTTP"}
SIZES: Final = ((100, "100 B", 150), (100_000, "100 KB", 50))
FASTMCP: Final = ROOT / ".venv-fastmcp" / "bin" / "python"
_COMPUTER: Final = "bench-computer"
_OFFICE: Final = "bench-hosts"


def run(scale: float, *, beside: bool = True) -> dict[str, dict[str, Any]]:
    """Everybody's turn comes in every round, so that a slow moment of the machine is everybody's; the median counts."""
    if beside and not FASTMCP.exists():
        raise SystemExit("FastMCP is missing: run `make bench-hosts`, which sets up .venv-fastmcp")
    samples: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as exits:
        hub = exits.enter_context(server("ours"))
        drivers = {AGENT: exits.enter_context(_agent(hub.said))}
        for way in ("stdio", "http"):
            drivers[KIT[way]] = exits.enter_context(_host(way, [sys.executable, str(BENCH / "kit_mcp.py"), way]))
            drivers[OURS[way]] = exits.enter_context(_bridge(way, hub.said))
            if beside:
                command = [str(FASTMCP), str(BENCH / "drivers" / "fastmcp_proxy.py"), way, *ECHO]
                drivers[PROXY[way]] = exits.enter_context(_host(way, command))
        for _ in range(15 if scale >= 1 else 1):
            for size, label, count in SIZES:
                for name, driver in drivers.items():
                    result = driver.ask("latency", size=size, count=max(5, int(count * scale)))
                    if "failed" in result:
                        raise SystemExit(f"{name}: {result['failed']}")
                    for percentile in ("p50", "p99"):
                        figure = f"{percentile}, {label}, ms"
                        samples.setdefault(name, {}).setdefault(figure, []).append(result[f"{percentile}_ms"])
    return {
        name: {figure: statistics.median(values) for figure, values in figures.items()}
        for name, figures in samples.items()
    }


@contextmanager
def _agent(url: str) -> Iterator[Process]:
    office = f"{_OFFICE}-agent"
    with (
        computer("ours", url, office, _COMPUTER, {"echo": ECHO}),
        running([sys.executable, str(BENCH / "drivers" / "ours.py"), url, office, _COMPUTER], "READY") as driver,
    ):
        yield driver


@contextmanager
def _bridge(way: str, url: str) -> Iterator[Process]:
    """A host of `a2c mcp`, in an office of its own, which has one computer."""
    office = f"{_OFFICE}-{way}"
    mcp = [A2C, "mcp", "--url", url, "--office", office, "--computer", _COMPUTER]
    with (
        # Not the user's own, where another seat of the same name might be.
        tempfile.TemporaryDirectory(prefix="a2c-") as folder,
        computer("ours", url, office, _COMPUTER, {"echo": ECHO}),
        _host(
            way,
            mcp if way == "stdio" else [*mcp, "--http", "0"],
            {"XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder},
        ) as driver,
    ):
        yield driver


@contextmanager
def _host(way: str, command: list[str], env: Mapping[str, str] | None = None) -> Iterator[Process]:
    """mcp's client and the MCP server that this command starts."""
    driver = [sys.executable, str(BENCH / "drivers" / "host.py"), way]
    with ExitStack() as exits:
        if way == "stdio":
            driver += [json.dumps(env or {}), *command]
        else:
            ready = r"ready on ([^\s;]+(?:; bearer token: \S+)?)"
            served = exits.enter_context(running(command, ready, {**os.environ, **(env or {})}))
            address, _, token = served.said.partition("; bearer token: ")
            served.drain()
            driver += [address, token or "none"]
        yield exits.enter_context(running(driver, "READY"))
