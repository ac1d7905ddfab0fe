"""The terminal and another place decide, at a real terminal: the quicker one counts, and the screen says who it was."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.computer.cli.console import Console, console
from tests.computer.cli.test_repl import asking, met, seen, states, write
from tests.computer.fakes.computers import server
from tests.server.harness import Running

CANARY = "canary-88c1"
#: The other place: it answers with what it finds in a file.
ELSEWHERE = """
import asyncio, pathlib
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import Accepted, Declined

FILE = pathlib.Path(__file__).with_name("answer")


async def ask(decision):
    while not FILE.exists():
        await asyncio.sleep(0.02)
    answer = FILE.read_text()
    FILE.unlink()
    return {"yes": Accepted(), "no": Declined()}.get(answer) or Accepted(answer)


def make(name, **options):
    computer = Computer(name, **options)
    computer.decisions.attend("browser", ask=ask).begin()
    return computer
"""


class Elsewhere:
    """A run of the command whose computer another place may answer for, too."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "answer"
        (folder / "elsewhere.py").write_text(ELSEWHERE)
        self.arguments = ("--computer-factory", "elsewhere:make", "--name", "pc")
        self.environment = {"PYTHONPATH": str(folder)}

    def answers(self, text: str) -> None:
        written = self._file.with_suffix(".new")
        written.write_text(text)
        written.rename(self._file)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    return Elsewhere(tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="module")
def shared(elsewhere: Elsewhere, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    folder = tmp_path_factory.mktemp("answering")
    config = write(folder / "config.json", server("a"), asking("ask"))
    with console(folder, "--config", config, *elsewhere.arguments, **elsewhere.environment) as it:
        it.prompted()
        yield it
        it.keys("quit\r")
        assert it.ended() == 0


async def test_the_first_answer_counts_and_the_terminal_says_whose_it_was(
    shared: Console, hub: Running, elsewhere: Elsewhere
) -> None:
    async with met(shared, hub) as agent:
        shared.keys("tools call a.echo tex")
        await anyio.to_thread.run_sync(shared.says, "tex")
        for answer, code in (("yes", None), ("no", 4005)):
            replies: list[Any] = []

            async def call(into: list[Any] = replies) -> None:
                into.append(await agent.tool("ask.echo", text="sure"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                asked = await seen(shared, "confirm_request")
                await anyio.to_thread.run_sync(shared.says, "Run it?")
                elsewhere.answers(answer)
                decided = await seen(shared, "decision_decided")
            outcome = "accepted" if code is None else "declined"
            assert f"Decided: {outcome} by browser." in shared.seen
            assert (decided["decision"], decided["kind"]) == (asked["decision"], "confirmation")
            assert (decided["outcome"], decided["by"]) == (outcome, "browser")
            assert (replies[0]["meta"] or {}).get("error_code") == code
        shared.keys("t=still\r")  # the line that was being typed all along
        assert (await seen(shared, "tool_call_result"))["result"]["content"][0]["text"] == "still"


async def test_the_terminal_may_be_quicker_and_nothing_is_said_twice(
    shared: Console, hub: Running, elsewhere: Elsewhere
) -> None:
    async with met(shared, hub) as agent:
        before = shared.seen.count("decision_decided")
        replies: list[Any] = []

        async def call() -> None:
            replies.append(await agent.tool("ask.echo", text="sure"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await seen(shared, "confirm_request")
            await anyio.to_thread.run_sync(shared.says, "Run it?")
            shared.keys("y\r")
        assert replies[0]["content"][0]["text"] == "sure"
        assert shared.seen.count("decision_decided") == before


async def test_a_rule_is_made_widened_listed_tested_and_undone_at_the_terminal(shared: Console, hub: Running) -> None:
    async with met(shared, hub) as agent:
        replies: list[Any] = []

        async def call() -> None:
            replies.append(await agent.tool("ask.echo", text="/home/ada/notes/a.md"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await seen(shared, "confirm_request")
            for keys, answer in (
                ("l", 'text is exactly "/home/ada/notes/a.md"'),
                ("1", 'text is in the folder "/home/ada/notes"'),
            ):
                await anyio.to_thread.run_sync(shared.says, "Run it?" if keys == "l" else "Make this rule")
                shared.keys(f"{keys}\r")
                await anyio.to_thread.run_sync(shared.says, answer)
            await anyio.to_thread.run_sync(shared.says, 'so it would also allow "/home/ada/notes/')
            await anyio.to_thread.run_sync(shared.says, "Make this rule")
            shared.keys("y\r")
        assert replies[0]["content"][0]["text"] == "/home/ada/notes/a.md"
        assert (await agent.tool("ask.echo", text="/home/ada/notes/b.md"))["isError"] is False
        shared.keys("rules list\r")
        (listed,) = (await seen(shared, "rules"))["rules"]
        assert (listed["effect"], listed["matched"], listed["asleep"]) == ("allow", 1, False)
        shared.keys("rules test ask.echo text=/home/ada/notes/c.md\r")
        assert (await seen(shared, "rule_tested"))["effect"] is None  # the rule is for that agent
        shared.keys(f"rules undo {listed['id']}\r")
        await seen(shared, "rule_undone")
        shared.keys("rules list\r")
        assert (await seen(shared, "rules"))["rules"] == []


async def test_when_neither_answers_in_time_the_question_goes_and_the_screen_says_so(
    shared: Console, hub: Running
) -> None:
    async with met(shared, hub) as agent:
        unanswered = await agent.tool("ask.echo", 1, text="sure")
        assert unanswered["meta"] == {"error_code": 4005, "outcome": "unanswered"}
        decided = await seen(shared, "decision_decided")
        assert (decided["outcome"], decided["by"]) == ("unanswered", None)
        assert "Nobody answered in time: echo is not run." in shared.seen


def test_an_input_that_is_given_elsewhere_is_not_asked_for_any_more(tmp_path: Path) -> None:
    elsewhere = Elsewhere(tmp_path)
    config = server("a")
    config["server_parameters"]["env"] = {"SECRET": "${input:secret}"}
    secret = {"id": "secret", "type": "promptString", "description": "The secret", "password": True}
    file = write(tmp_path / "config.json", config, inputs=[secret])
    with console(tmp_path, "--config", file, *elsewhere.arguments, **elsewhere.environment) as it:
        it.says("The secret (secret):")
        it.keys("h")
        it.says("*")
        elsewhere.answers(CANARY)
        decided = it.line("decision_decided")
        assert (decided["kind"], decided["outcome"], decided["by"]) == ("input", "accepted", "browser")
        it.line("server_status", lambda line: states(line) == {"a": "running"})
        it.prompted()
        assert it.text("a.echo", "text=on") == "on"
        assert CANARY not in it.seen
