"""How soon a part of a computer is fetched again, and that no computer holds the others up."""

import asyncio
import json
import time
from typing import Any

import anyio
import pytest

from a2c_smcp.agent import AnswerLimits, text_of
from a2c_smcp.agent.live_view import FetchPlaces
from a2c_smcp.agent.pacing import Cost
from a2c_smcp.agent.view import Part
from a2c_smcp.errors import PayloadTooLargeError
from a2c_smcp.smcp import (
    GET_DESKTOP_EVENT,
    GET_TOOLS_EVENT,
    TOOL_CALL_EVENT,
    UPDATE_DESKTOP_EVENT,
    UPDATE_TOOL_LIST_EVENT,
)
from tests.agent.conftest import MakeAgent, MakeComputer
from tests.agent.harness import a_tool
from tests.server.harness import eventually


@pytest.mark.parametrize(
    ("cost", "pause"),
    [
        (Cost(), 0.1),
        (Cost(0.001, 100_000), 0.1),
        (Cost(0.05, 100), 2.0),
        (Cost(0.05, 16 * 2**20), 4.0),
        (Cost(10, 10), 30.0),
    ],
)
def test_the_pause_is_a_multiple_of_what_it_cost(cost: Cost, pause: float) -> None:
    assert cost.pause == pytest.approx(pause)


async def test_a_fetch_that_takes_long_gives_its_place_to_the_next() -> None:
    places = FetchPlaces(1, patience=0.05)
    forever, began = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        async with places.one():
            began.set()
            await forever.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(slow)
        await began.wait()
        with anyio.fail_after(30):
            async with places.one():
                pass
        forever.set()
    # Each place was given back once.
    async with places.one():
        with pytest.raises(TimeoutError), anyio.fail_after(0.01):
            async with places.one():
                pass


async def test_a_list_that_is_announced_again_and_again_is_fetched_seldom_and_the_last_one_arrives(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    computer, agent = await make_computer(), await make_agent()
    await agent.settled(60)
    began, number = time.monotonic(), 0
    while len(computer.requests(GET_TOOLS_EVENT)) < 5:
        number += 1
        computer.tools = [a_tool(f"tool-{number}")]
        await computer.announce(UPDATE_TOOL_LIST_EVENT)
    await eventually(lambda: agent.computers["laptop"].tools[0]["name"] == f"tool-{number}", 60)
    assert len(computer.requests(GET_TOOLS_EVENT)) <= 2 + (time.monotonic() - began) / Cost().pause


async def test_one_that_always_announces_does_not_put_off_that_the_view_is_settled(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    computer, agent = await make_computer(), await make_agent()
    is_over = False

    async def announce() -> None:
        while not is_over:
            await computer.announce(UPDATE_DESKTOP_EVENT)

    async with anyio.create_task_group() as group:
        group.start_soon(announce)
        await eventually(lambda: len(computer.requests(GET_DESKTOP_EVENT)) > 2, 60)
        for _ in range(3):
            await agent.settled(60)
        is_over = True


async def test_what_is_announced_is_in_the_view_once_it_is_settled(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    computer, agent = await make_computer(), await make_agent()
    await agent.settled(60)
    for number in range(3):
        computer.tools = [a_tool(f"t-{number}")]
        await computer.announce(UPDATE_TOOL_LIST_EVENT)
        await agent.list_room()  # on the same connection: now it has heard of it
        await agent.settled(60)
        assert [tool["name"] for tool in agent.computers["laptop"].tools] == [f"t-{number}"]


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_an_answer_that_is_too_large_fails_its_request_alone(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    computer = await make_computer()
    other = await make_computer("other")
    agent = await make_agent(kind, limits=AnswerLimits(items=100))
    await agent.settled(60)

    def too_many(_: dict[str, Any]) -> Any:
        return {"content": [{"type": "text", "text": "x"}] * 101, "isError": False}

    computer.override[TOOL_CALL_EVENT] = too_many
    computer.override[GET_TOOLS_EVENT] = lambda _: {"tools": [a_tool("t")] * 101}
    result = await agent.call_tool("laptop", "echo", {"text": "x"}, 20)
    assert result.is_error and (result.meta or {})["error_code"] == 413
    with pytest.raises(PayloadTooLargeError):
        await agent.get_tools("laptop")
    assert text_of(await agent.call_tool("other", "echo", {"text": "x"}, 20)) == "x"
    await computer.announce(UPDATE_TOOL_LIST_EVENT)
    await eventually(lambda: Part.TOOLS in agent.computers["laptop"].failures, 60)
    assert agent.computers["laptop"].failures[Part.TOOLS].code == 413
    assert [tool["name"] for tool in agent.computers["laptop"].tools] == ["echo"]
    assert other.tools and json.dumps(agent.computers["other"].tools) == json.dumps(other.tools)
