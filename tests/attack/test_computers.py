"""A hostile computer in the office of an honest pair, whose agent has a live view: it hardly notices."""

import itertools
import json
import queue
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.attack.harness import Pair, Target, honest_pair, target
from tests.attack.processes import Started
from tests.attack.test_mcp_servers import hostile
from tests.attack.test_members import Member, member

OFFICE = "honest"
ANNOUNCEMENTS = ("server:update_tool_list", "server:update_config", "server:update_desktop", "server:update_finder")
MEBIBYTE = 2**20

#: A list of tools that is just small enough, one that has as many values as fit into a message, and a result.
LARGE = json.dumps(
    {
        "tools": [
            {
                "name": f"t{number}",
                "description": "x" * 1500,
                "params_schema": {"type": "object"},
                "return_schema": None,
            }
            for number in range(5000)
        ]
    }
)
MANY = '{"tools":[' + ",".join(["{}"] * (14 * MEBIBYTE // 3)) + "]}"
RESULT = '{"content":[' + ",".join(["{}"] * 500_000) + "]}"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Target, Pair]]:
    folder = tmp_path_factory.mktemp("computers")
    attacker = hostile("tools", str(folder / "go"))
    with target(folder) as server, honest_pair(server, OFFICE, [attacker], live=True) as pair:
        yield server, pair


class Evil:
    """A computer that answers each request with the text that it has for its event."""

    def __init__(self, it: Member, answers: dict[str, str]) -> None:
        self._it = it
        self._answers = answers
        self.asked: list[str] = []

    def serve(self) -> None:
        """Until its connection ends."""
        with suppress(AssertionError, ConnectionClosed, queue.Empty):
            while match := re.match(r'42/smcp,(\d+)?\["([^"]+)"', self._it.until("42/smcp,")):
                if match[1]:
                    self.asked.append(match[2])
                    self._it.send(f"43/smcp,{match[1]}[{self._answers.get(match[2], '{}')}]")

    def announce(self) -> None:
        for event in ANNOUNCEMENTS:
            self.tell(event, {})

    def tell(self, event: str, data: dict[str, Any]) -> None:
        self._it.emit(event, data)


@contextmanager
def evil(server: Target, name: str, answers: dict[str, str]) -> Iterator[Evil]:
    with member(server, "computer", name, OFFICE) as it:
        computer = Evil(it, answers)
        serving = threading.Thread(target=computer.serve)
        serving.start()
        yield computer
    serving.join(60)


def memory(process: Started) -> int:
    """What a process has in memory, in MiB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    assert found
    return int(found[1]) // 1024


def test_lists_that_are_announced_all_the_time_are_fetched_at_a_pace(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    with (
        evil(server, "large", {"client:get_tools": LARGE}) as large,
        evil(server, "many", {"client:get_tools": MANY}) as many,
    ):

        def attack() -> None:
            until = time.monotonic() + 2
            while time.monotonic() < until:
                large.announce()
                many.announce()
                time.sleep(0.005)

        attack()
        began = time.monotonic()
        counts = [computer.asked.count("client:get_tools") for computer in (large, many)]
        pair.unharmed_by(attack, times=50)
        seconds = time.monotonic() - began
        for computer, count in zip((large, many), counts, strict=True):
            # Eight megabytes are left alone for two seconds, fourteen for more than three.
            assert computer.asked.count("client:get_tools") - count <= 2 + seconds / 1.5
        before = memory(pair.agent)
        attack()
        assert memory(pair.agent) - before < 60


def test_news_and_questions_that_nobody_asked_for_cost_the_agent_little(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    numbers = itertools.count()
    with evil(server, "gossip", {}) as gossip:

        def attack() -> None:
            until = time.monotonic() + 1
            while time.monotonic() < until:
                for number in itertools.islice(numbers, 20):
                    gossip.tell("server:resource_updated", {"uri": f"file:///{number}/{'x' * 2000}"})
                ids = {"agent": "agent", "req_id": "1", "computer": "gossip", "question_id": "q"}
                gossip.tell("server:question", {**ids, "message": "x" * 10_000})
                time.sleep(0.005)

        attack()
        pair.unharmed_by(attack)
        before = memory(pair.agent)
        attack()
        assert memory(pair.agent) - before < 60


def test_a_result_of_500000_items_is_an_error_of_its_call(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    with evil(server, "evil-result", {"client:tool_call": RESULT, "client:get_tools": '{"tools":[]}'}):

        def attack() -> None:
            said = len(pair.agent.log.read_text())
            pair.agent.tell("also evil-result 3")
            assert json.loads(pair.agent.says(r"ALSO (.*)\n", after=said)[1]) == [413] * 3

        attack()
        pair.unharmed_by(attack)
        before = memory(pair.agent)
        attack()
        assert memory(pair.agent) - before < 60


def test_an_mcp_server_with_other_tools_all_the_time_is_announced_at_a_pace(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    go, notice = server.folder / "go", '42/smcp,["notify:update_tool_list"'
    with member(server, "computer", "listener", OFFICE) as listener:
        heard = 0

        def attack() -> None:
            nonlocal heard
            go.touch()
            listener.until(notice)
            until = time.monotonic() + 2
            while time.monotonic() < until:
                listener.until(notice)
                heard += 1
            go.unlink()

        began = time.monotonic()
        pair.unharmed_by(attack)
        assert 2 <= heard <= 2 + 10 * (time.monotonic() - began)
