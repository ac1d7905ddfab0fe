"""How long until the tools of nine healthy MCP servers are there, when a tenth hangs."""

import json
import subprocess
import sys
from typing import Any

from bench.process import BENCH, INTEROP

_GIVE_UP_SECONDS = 60


def run(contestants: list[str]) -> dict[str, dict[str, Any]]:
    results: dict[str, dict[str, Any]] = {}
    for contestant in contestants:
        python = sys.executable if contestant == "ours" else str(INTEROP)
        script = BENCH / "drivers" / f"boot_{contestant}.py"
        results[contestant] = {}
        for label, hanging in (("the slowest alone, s", "alone"), ("ten, one hanging, s", "hanging")):
            command = [python, str(script), str(BENCH / "context_mcp.py"), hanging]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=_GIVE_UP_SECONDS, check=True
                ).stdout
                figures = json.loads(done.splitlines()[-1])
                results[contestant][label] = figures["seconds"]
            except subprocess.TimeoutExpired:
                results[contestant][label] = None  # stalls
    return results
