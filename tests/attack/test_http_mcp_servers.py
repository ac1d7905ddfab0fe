"""A hostile MCP server over HTTP beside an honest one on the same computer: the honest one's agent hardly notices."""

import sys
from pathlib import Path

from tests.attack.harness import HERE, honest_pair, target
from tests.attack.processes import Started, started
from tests.attack.test_mcp_servers import memory, peak

HOSTILE = str(HERE.parent / "computer" / "fakes" / "hostile_http.py")
ATTACKS = ("bomb", "endless_json", "endless_event", "endless_events", "cut", "crumbs", "refused")


def attack(hostile: Started) -> None:
    """Have the computer's question for the tools answered in every evil way."""
    for name in ATTACKS:
        said = len(hostile.log.read_text())
        hostile.tell(name)
        hostile.says(f"{name} is over", after=said)


def test_answers_over_http_without_measure_are_not_kept(tmp_path: Path) -> None:
    with started([sys.executable, "-I", "-S", HOSTILE], tmp_path / "hostile.log") as hostile:
        port = hostile.says(r"(\d+)\n")[1]
        url = f"http://127.0.0.1:{port}/listen"
        config = {
            "name": "hostile",
            "type": "streamable",
            "protocol": "legacy",
            "tool_prefix": "hostile.",
            "server_parameters": {"url": url},
        }
        with target(tmp_path) as server, honest_pair(server, config=[config]) as pair:
            before = peak(pair.computer)
            pair.unharmed_by(lambda: attack(hostile))
            kept = []
            for _ in range(2):
                attack(hostile)
                kept.append(memory(pair.computer))
            assert peak(pair.computer) - before < 150
            assert kept[1] - kept[0] < 40, "one answer that is kept has twenty"
            log = pair.computer.log.read_text()
            assert "an event of the server has more than 20971520 bytes" in log
            assert "hostile is backing_off" not in log
