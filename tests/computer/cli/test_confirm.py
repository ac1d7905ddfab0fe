"""A call that waits for a yes, where a program reads the lines: they have all of it, so a yes counts at once."""

from collections.abc import Iterator
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.computer.cli.console import Console, console
from tests.computer.cli.test_repl import asking, met, seen, write
from tests.server.harness import Running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    folder = tmp_path_factory.mktemp("confirm")
    with console(folder, "--config", write(folder / "config.json", asking("ask")), "--name", "pc") as it:
        it.prompted()
        yield it
        it.keys("quit\r")
        assert it.ended() == 0


async def test_a_program_that_has_read_the_line_may_say_yes_to_a_long_call(shared: Console, hub: Running) -> None:
    text = "x\n" * 3000 + "\u202erm -rf ~"
    async with met(shared, hub) as agent:
        replies: list[Any] = []

        async def call() -> None:
            replies.append(await agent.tool("ask.echo", 120, text=text))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            asked = await seen(shared, "confirm_request")
            await anyio.to_thread.run_sync(shared.says, "s(how all)")
            shared.keys("y\r")
        assert replies[0]["content"][0]["text"] == text
    assert asked["params"] == {"text": text}
    assert {"office", "title", "description", "annotations", "dangerous"} <= asked.keys()
    assert asked["dangerous"] is False
    assert "\u202e" not in shared.seen


async def test_a_person_may_have_the_passwords_of_a_call_shown_before_they_decide(
    shared: Console, hub: Running
) -> None:
    async with met(shared, hub) as agent:
        replies: list[Any] = []

        async def call() -> None:
            replies.append(await agent.tool("ask.echo", 120, text="deploy --password hunter22"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await anyio.to_thread.run_sync(shared.says, "text: deploy --password *** (8 characters")
            asked = await seen(shared, "confirm_request")
            await anyio.to_thread.run_sync(shared.says, "r(eveal)")
            shared.keys("r\r")
            await anyio.to_thread.run_sync(shared.says, "Type s to see all of it")
            shared.keys("s\r")
            await anyio.to_thread.run_sync(shared.says, "text: deploy --password hunter22")
            shared.keys("y\r")
        assert replies[0]["content"][0]["text"] == "deploy --password hunter22", "the call runs as it was asked for"
    assert asked["params"] == {"text": "deploy --password hunter22"}, "a program decides on the exact call"
