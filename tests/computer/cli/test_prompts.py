"""Prompts at a terminal: a real one, and keys fed to prompt_toolkit where a person's timing would matter."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import anyio
import pexpect
import pytest
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from a2c_smcp.computer.cli.prompts import CliInputResolver
from a2c_smcp.computer.inputs import InputFailedError, InputResolver, InputStore
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.errors import InputNotFoundError

CANARY = "canary-0d44"


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


async def ask(keys: PipeInput, typed: str, **definition: Any) -> str:
    keys.send_text(typed)
    resolver = CliInputResolver(terminal_input=keys, terminal_output=DummyOutput())
    with anyio.fail_after(20):
        return await resolver.resolve(parse_input({"id": "key", "description": "The key", **definition}))


async def test_what_is_typed_is_the_value(keys: PipeInput) -> None:
    assert await ask(keys, " a b \r", type="promptString") == " a b "


async def test_a_default_is_there_to_be_accepted_or_edited(keys: PipeInput) -> None:
    assert await ask(keys, "\r", type="promptString", default="main") == "main"
    assert await ask(keys, "2\r", type="promptString", default="main") == "main2"


@pytest.mark.parametrize(("typed", "value"), [("2\r", "green"), ("red\r", "red"), ("x\r\x7f3\r", "10"), ("10\r", "10")])
async def test_an_option_is_picked_by_number_or_by_text(keys: PipeInput, typed: str, value: str) -> None:
    assert await ask(keys, typed, type="pickString", options=["red", "green", "10"]) == value


async def test_the_default_option_is_prefilled(keys: PipeInput) -> None:
    assert await ask(keys, "\r", type="pickString", options=["red", "green"], default="green") == "green"


LABELLED = [
    {"label": "Europe", "value": "eu-1"},
    {"label": "Asia", "value": "ap-1"},
    {"label": "Other", "value": "x"},
    {"label": "Other", "value": "y"},
    "eu-2",
]


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("2\r", "ap-1"),
        ("Asia\r", "ap-1"),
        ("ap-1\r", "ap-1"),
        ("eu-2\r", "eu-2"),
        ("Other\r" + "\x7f" * 5 + "4\r", "y"),
    ],
)
async def test_an_option_with_a_label_is_picked_by_it_and_gives_its_value(
    keys: PipeInput, typed: str, value: str
) -> None:
    """A label that two options have picks neither."""
    assert await ask(keys, typed, type="pickString", options=LABELLED) == value


@pytest.mark.parametrize("key", ["\x03", "\x04"])
async def test_refusing_to_answer_is_a_failure_and_not_the_default(keys: PipeInput, key: str) -> None:
    with pytest.raises(InputFailedError, match="gave none"):
        await ask(keys, key, type="promptString")


async def test_commands_are_not_asked_for(keys: PipeInput) -> None:
    with pytest.raises(InputNotFoundError):
        await ask(keys, "x\r", type="command", command="true")


async def test_two_questions_are_asked_one_after_the_other(keys: PipeInput) -> None:
    definitions = [parse_input({"id": input_id, "type": "promptString"}) for input_id in "ab"]
    last = CliInputResolver(terminal_input=keys, terminal_output=DummyOutput())
    resolver = InputResolver(InputStore(definitions), last, environ={})
    answers: dict[str, str] = {}
    answered = anyio.Event()

    async def start(input_id: str) -> None:
        answers[input_id] = await resolver.resolve(input_id)
        answered.set()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start, "a")
            tasks.start_soon(start, "b")
            await anyio.wait_all_tasks_blocked()
            keys.send_text("first\r")
            await answered.wait()
            keys.send_text("second\r")
    assert answers == {"a": "first", "b": "second"}


async def test_a_prompt_that_nobody_waits_for_goes_away_and_gives_the_next_its_turn(keys: PipeInput) -> None:
    resolver = CliInputResolver(terminal_input=keys, terminal_output=DummyOutput())
    definition = parse_input({"id": "key", "type": "promptString"})
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(resolver.resolve, definition)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        keys.send_text("typed\r")
        assert await resolver.resolve(definition) == "typed"


SCRIPT = """
import asyncio
from a2c_smcp.computer.cli.prompts import CliInputResolver
from a2c_smcp.computer.mcp_clients.model import parse_input

async def main():
    definition = parse_input({"id": "key", "description": "The key", "type": "promptString", "password": True})
    try:
        value = await CliInputResolver().resolve(definition)
    except Exception as error:
        print("failed:", type(error).__name__)
    else:
        print("length:", len(value))

asyncio.run(main())
"""


def test_a_password_is_not_shown_at_a_real_terminal() -> None:
    # Nothing here answers prompt_toolkit's question for the position of the cursor.
    environ = {**os.environ, "PROMPT_TOOLKIT_NO_CPR": "1"}
    child = pexpect.spawn(sys.executable, ["-c", SCRIPT], encoding="utf-8", timeout=30, env=environ)
    try:
        child.expect(r"The key \(key\):")
        child.sendline(CANARY)
        child.expect(f"length: {len(CANARY)}")
        assert CANARY not in child.before
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)


STRANGE = """
import asyncio
from a2c_smcp.computer.cli.prompts import CliInputResolver
from a2c_smcp.computer.mcp_clients.model import parse_input

async def main():
    definition = {"id": "key", "description": "The\\u202e key", "type": "pickString", "options": ["a\\u202eb",
        {"label": "See\\u202e", "value": "c"}]}
    print("chosen:", ascii(await CliInputResolver().resolve(parse_input(definition))))

asyncio.run(main())
"""


def test_what_nobody_sees_in_an_input_is_shown() -> None:
    environ = {**os.environ, "PROMPT_TOOLKIT_NO_CPR": "1"}
    child = pexpect.spawn(sys.executable, ["-c", STRANGE], encoding="utf-8", timeout=30, env=environ)
    screen = io.StringIO()
    child.logfile_read = screen
    try:
        child.expect_exact(r"The\u202e key (key)")
        child.expect_exact(r"1. a\u202eb")
        child.expect_exact(r"2. See\u202e (c)")
        child.expect_exact("Number or text:")
        child.sendline("1")
        child.expect_exact(r"chosen: 'a\u202eb'")
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)
    assert "\u202e" not in screen.getvalue()


def test_nobody_is_asked_where_there_is_no_terminal() -> None:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], input="typed\n", capture_output=True, text=True, timeout=60, check=False
    )
    assert result.stdout == "failed: InputNotFoundError\n"
