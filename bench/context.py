"""What an agent sees besides tools: desktops with slow windows, a Finder with ten thousand documents."""

import sys
from typing import Any

from bench.process import BENCH, stack

SERVER = [sys.executable, str(BENCH / "context_mcp.py")]


def _servers(count: int, *options: str) -> dict[str, list[str]]:
    return {f"s{n}": [*SERVER, "--host", f"bench.s{n}", *options] for n in range(count)}


def desktop(contestants: list[str], servers: int, windows: int, delay: float, count: int) -> dict[str, dict[str, Any]]:
    """`get_desktop` with so many servers and windows, each read taking `delay` seconds."""
    results = {}
    for contestant in contestants:
        with stack(contestant, _servers(servers, "--windows", str(windows), "--delay", str(delay))) as each:
            each.agent.ask("desktop", count=1)  # whatever is cached is cached now
            figures = each.agent.ask("desktop", count=count)
            results[contestant] = {"p50, ms": figures.get("p50_ms"), "windows": figures.get("windows")}
    return results


def finder(documents: int, count: int) -> dict[str, dict[str, Any]]:
    """`get_finder` with keywords and paging over documents on four servers, warm. The existing one has no Finder."""
    with stack("ours", _servers(4, "--documents", str(documents // 4))) as each:
        figures: dict[str, Any] = {}
        for _ in range(60):
            figures = each.agent.ask("finder", count=1)
            if figures.get("total", 0) >= documents // 100:
                break
        figures = each.agent.ask("finder", count=count)
    return {"ours": {"p50, ms": figures.get("p50_ms"), "p99, ms": figures.get("p99_ms"), "found": figures.get("total")}}
