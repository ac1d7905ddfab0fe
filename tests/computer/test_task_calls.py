"""Tools that run as tasks, in both designs of MCP: for the caller it is an ordinary call."""

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from a2c_smcp.computer.calls.progress import CallProgress
from a2c_smcp.computer.mcp_clients.elicitation.asking import GivenAnswer, ServerQuestion
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.task_calls import poll_pause
from a2c_smcp.errors import ToolExecutionError, ToolExecutionTimeoutError
from a2c_smcp.results import text_of
from tests.computer.fakes.computers import TASKING, tasking
from tests.computer.test_asking import Person, both_eras, text_of_call
from tests.computer.test_mcp_connection import Watcher, connected, http, opened, text


@pytest.mark.parametrize(
    ("asked", "number", "pause"),
    [
        (None, 1, 0.1),
        (None, 50, 2.0),
        (500, 1, 0.5),
        (0, 1, 0.05),
        (-1e9, 1, 0.05),
        (3.6e6, 1, 10.0),
        (float("nan"), 1, 0.1),
        (float("inf"), 2, 0.2),
    ],
)
def test_a_server_may_ask_for_a_pause_within_bounds(asked: float | None, number: int, pause: float) -> None:
    assert poll_pause(asked, number) == pytest.approx(pause)


async def ready(connection: MCPConnection) -> None:
    """What the manager does after a start: which tools need a task is in their list."""
    await connection.list_tools()


@contextmanager
def over_http(era: str) -> Iterator[str]:
    command = [sys.executable, "-I", "-S", TASKING, f"era={era}", "http=1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.communicate(timeout=20)


@both_eras
async def test_a_task_is_an_ordinary_call_with_progress(era: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []
    progress = CallProgress(lambda *report: heard.append(report), str)
    async with connected(tasking(era)) as connection:
        await ready(connection)
        result = await connection.call_tool("slow", {"polls": 3, "text": "héllo"}, 30, progress)
        assert text_of(result) == "héllo"
        assert await text(connection, "direct") == "at once"
    words = [message for _, _, message in heard]
    assert words[:2] == (["1 of 10", "poll 1"] if era == "old" else ["poll 1", "poll 2"])
    if era == "old":
        assert (3, 10, "3 of 10") in heard


@both_eras
async def test_a_task_over_http_is_one_too(era: str) -> None:
    with over_http(era) as url:
        async with opened(http(url, "streamable", "legacy" if era == "old" else "2026-07-28")) as connection:
            await ready(connection)
            assert await text(connection, "slow", polls=2) == "done"
            with pytest.raises(ToolExecutionError, match="it broke"):
                await text(connection, "fails")


@both_eras
async def test_a_task_asks_the_person_and_it_is_certain_for_which_call(era: str) -> None:
    async def says(question: ServerQuestion) -> GivenAnswer:
        return GivenAnswer("accept", {"name": question.message})

    person = Person(says)
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    async with connected(tasking(era), asker=person) as connection:
        await ready(connection)

        async def ask(who: str) -> str:
            return await text_of_call(connection, "asks", who, message=who, schema=schema)

        # Two at a time: a question of the older era could not be told apart without the name of its task.
        told = await asyncio.gather(*(asyncio.create_task(ask(who)) for who in ("Ada", "Bob")))
    assert [json.loads(each)["content"]["name"] for each in told] == ["Ada", "Bob"]
    assert {question.message: question.call for question in person.questions} == {"Ada": "Ada", "Bob": "Bob"}


@both_eras
async def test_the_timeout_of_a_call_cancels_its_task(era: str) -> None:
    watcher = Watcher()
    async with connected(tasking(era), watcher) as connection:
        await ready(connection)
        with pytest.raises(ToolExecutionTimeoutError):
            await text(connection, "never", timeout=1)
        await watcher.said("cancelled")
        calling = asyncio.create_task(text(connection, "never", timeout=None))
        await watcher.said("created", 2)
        calling.cancel()
        await asyncio.wait({calling})
        await watcher.said("cancelled", 2)
        assert await text(connection, "slow", polls=1) == "done"


@both_eras
async def test_how_a_task_ends_is_how_the_call_ends(era: str) -> None:
    async with connected(tasking(era)) as connection:
        await ready(connection)
        with pytest.raises(ToolExecutionError, match="it broke") as error:
            await text(connection, "fails")
        assert error.value.details["mcp_code"] == -32050
        with pytest.raises(ToolExecutionError, match="expired"):
            await text(connection, "expires")
        assert (await connection.call_tool("refuses", {}, 30)).is_error


@pytest.mark.parametrize(
    ("era", "what"),
    [
        *itertools.product(("old", "new"), ("status", "id", "poll", "result", "created")),
        ("new", "ask"),  # until 2025-11-25 a question is a request
        ("new", "rounds"),
    ],
)
async def test_nonsense_about_a_task_fails_the_call_and_nothing_else(era: str, what: str) -> None:
    async def says(_: ServerQuestion) -> GivenAnswer:
        return GivenAnswer("accept", {})

    async with connected(tasking(era), asker=Person(says)) as connection:
        await ready(connection)
        expected = "asked 10 times" if what == "rounds" else "not an MCP result"
        with pytest.raises(ToolExecutionError, match=expected):
            await text(connection, "nonsense", what=what)
        assert await text(connection, "slow", polls=1) == "done"


async def test_a_tool_that_is_not_listed_as_a_task_is_not_run_as_one() -> None:
    config: dict[str, Any] = tasking("old")
    async with connected(config) as connection:
        with pytest.raises(ToolExecutionError, match="only be run as a task"):
            await text(connection, "slow")
