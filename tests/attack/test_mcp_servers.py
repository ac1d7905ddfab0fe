"""A hostile MCP server beside an honest one on the same computer: the honest one's agent hardly notices."""

import re
import sys
from pathlib import Path
from typing import Any

from tests.attack.harness import honest_pair, target
from tests.attack.processes import Started

HOSTILE = str(Path(__file__).with_name("hostile_mcp.py"))


def hostile(*options: str) -> dict[str, Any]:
    return {
        "name": "hostile",
        "type": "stdio",
        "protocol": "legacy",
        "server_parameters": {"command": sys.executable, "args": ["-I", "-S", HOSTILE, *options]},
    }


def peak(process: Started) -> int:
    """The most memory that a process ever had, in MiB. Linux only."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) // 1024


def test_a_line_of_300_megabytes_is_not_kept(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with (
        target(tmp_path) as server,
        honest_pair(server, config=[hostile("blare", str(go), "300000000")]) as pair,
    ):
        before = peak(pair.computer)

        def attack() -> None:
            go.touch()
            pair.computer.says(r"wrote a line of \d{9} bytes")

        pair.unharmed_by(attack)
        assert peak(pair.computer) - before < 150
        assert "hostile is backing_off" not in pair.computer.log.read_text()
