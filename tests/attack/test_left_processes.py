"""A hostile MCP server that wants to outlive its computer: sessions of its own, daemons, no environment, no SIGTERM."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from a2c_smcp.utils.system import HAS_GUARDIANS
from tests.attack.harness import honest_pair, target
from tests.attack.processes import A2C, Started, started
from tests.computer.fakes.processes import having
from tests.computer.test_guardian import KINDS, leaving, started_by, wait_for_end

pytestmark = pytest.mark.skipif(not HAS_GUARDIANS, reason="needs Linux")


ENDINGS: dict[str, Callable[[Started], object]] = {
    "killed": lambda computer: computer.signal(signal.SIGKILL),
    "stopped": lambda computer: computer.signal(signal.SIGTERM),
    "interrupted": lambda computer: computer.signal(signal.SIGINT),
}


@pytest.mark.parametrize("end", ENDINGS)
@pytest.mark.parametrize("traits", [("stubborn", "scrub", "breeds", "regrows"), ("stubborn", "murders", "regrows")])
def test_it_does_not_and_another_computer_loses_nothing(tmp_path: Path, end: str, traits: tuple[str, ...]) -> None:
    """Also one that kills its keeper in each of its lives."""
    file, config = tmp_path / "started", tmp_path / "attacked.json"
    config.write_text(json.dumps([leaving(file, *traits)]))
    with target(tmp_path) as server, honest_pair(server) as pair:
        place = ["--config", str(config), "--url", server.url, "--office", "attacked", "--name", "pc"]
        with started([A2C, "computer", "run", "--headless", *place], tmp_path / "attacked.log") as computer:
            began = started_by(file)
            if "murders" in traits:
                computer.says("its guardian was killed")
            assert began.keys() >= KINDS

            def attack() -> None:
                ENDINGS[end](computer)
                computer.ended()
                wait_for_end(str(file))

            during = pair.watch(attack)
            assert not during.failures
            assert not during.departures
        assert having(str(file)) == set()
