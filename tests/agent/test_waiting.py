"""Waiting for tools: how often a computer is asked."""

from collections.abc import Iterator

import pytest

from a2c_smcp.agent.waiting import News, wait_for_tools
from a2c_smcp.errors import NotFoundError, NotInRoomError, ToolNotFoundError
from a2c_smcp.smcp import SMCPTool

TOOL: SMCPTool = {"name": "echo", "description": "", "params_schema": {}, "return_schema": None, "meta": {}}


def in_the_office() -> None:
    """There is something to wait for."""


async def test_a_computer_that_is_not_there_is_not_asked_again_before_somebody_enters() -> None:
    asked = 0

    async def list_tools() -> list[SMCPTool]:
        nonlocal asked
        asked += 1
        raise NotFoundError("no computer named 'pc' in this office")

    with News().of("pc") as heard, pytest.raises(NotFoundError):
        await wait_for_tools(list_tools, heard, ["echo"], 1.5, check=in_the_office)
    assert asked == 1


async def test_word_of_the_computer_has_it_asked_at_once() -> None:
    news = News()
    answers: Iterator[list[SMCPTool] | NotFoundError] = iter([NotFoundError("not yet"), [], [TOOL]])

    async def list_tools() -> list[SMCPTool]:
        news.heard("pc")  # while it is asked
        if isinstance(answer := next(answers), NotFoundError):
            raise answer
        return answer

    with news.of("pc") as heard:
        assert await wait_for_tools(list_tools, heard, ["echo"], 20, check=in_the_office) == [TOOL]
        assert next(answers, None) is None


async def test_a_computer_that_has_other_tools_is_asked_again_by_the_clock() -> None:
    asked = 0

    async def list_tools() -> list[SMCPTool]:
        nonlocal asked
        asked += 1
        return [TOOL] if asked > 1 else []

    with News().of("pc") as heard:
        assert await wait_for_tools(list_tools, heard, (), 20, check=in_the_office) == [TOOL]
        asked = -(10**6)
        with pytest.raises(ToolNotFoundError):
            await wait_for_tools(list_tools, heard, ["echo"], 0.1, check=in_the_office)


async def test_nothing_is_asked_any_more_once_there_is_nothing_to_wait_for() -> None:
    news, asked = News(), 0

    async def list_tools() -> list[SMCPTool]:
        nonlocal asked
        asked += 1
        news.heard()
        return []

    def check() -> None:
        if asked:
            raise NotInRoomError("left")

    with news.of("pc") as heard, pytest.raises(NotInRoomError):
        await wait_for_tools(list_tools, heard, ["echo"], 600, check=check)
    assert asked == 1
