"""How long a person may take, and how long the tool: told apart with `approval_timeout`."""

import asyncio
import math
from contextlib import suppress
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.calls.time_limits import EndedEarly, TimeLimits
from a2c_smcp.computer.watching.events import DecisionAsked
from a2c_smcp.results import text_of
from tests.computer.fakes.computers import asking, code, running, server, text

ASKING: dict[str, Any] = {"default_tool_meta": {}}


async def test_without_a_time_for_a_person_both_share_one() -> None:
    limits = TimeLimits(30)
    limits.start()
    with limits.asking() as expires:
        assert expires < limits.tool_ends, "a moment earlier"
        assert limits.ends == math.inf
    assert limits.ends == limits.tool_ends == limits.began + 30
    assert limits.start_tool() == limits.began + 30
    assert limits.stop() is None and limits.ends == math.inf


async def test_with_a_time_for_a_person_the_tool_has_all_of_its_own() -> None:
    limits = TimeLimits(30, 600)
    limits.start()
    assert limits.ends == math.inf
    with limits.asking() as expires:
        assert expires == limits.began + 600
    now = asyncio.get_running_loop().time()
    assert limits.ends == math.inf, "the yes may come in the last moment"
    assert limits.start_tool() == limits.ends >= now + 30
    limits.stop()


async def test_a_question_ends_before_what_is_around_the_call() -> None:
    limits = TimeLimits(None)
    limits.start()
    with anyio.move_on_after(10):
        with limits.asking() as expires:
            assert expires < limits.began + 10
        await asyncio.sleep(0)
    limits.stop()


@pytest.mark.parametrize("why", ["timed_out", "by_agent", "here"])
async def test_it_ends_the_task_and_knows_why_and_the_task_goes_on(why: EndedEarly) -> None:
    limits = TimeLimits(0.01 if why == "timed_out" else None)
    limits.start()
    if why != "timed_out":
        asyncio.get_running_loop().call_soon(limits.cancel, why)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(30)
    limits.cancel("here")  # too late
    assert limits.stop() == why
    assert limits.task.cancelling() == 0
    await asyncio.sleep(0)


@pytest.mark.parametrize("first", ["the task", "the call"])
async def test_a_task_that_is_cancelled_itself_is_not_taken_for_a_call_that_ended(first: str) -> None:
    made: list[TimeLimits] = []

    async def call() -> EndedEarly | None:
        made.append(limits := TimeLimits(None))
        limits.start()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(30)
        return limits.stop()

    task = asyncio.create_task(call())
    await asyncio.sleep(0)
    for one in (task.cancel, made[0].cancel) if first == "the task" else (made[0].cancel, task.cancel):
        one()
    assert await task is None
    assert task.cancelling() == 1


async def test_what_has_ended_is_not_cancelled() -> None:
    limits = TimeLimits(0.01)
    limits.start()
    limits.stop()
    limits.cancel("by_agent")
    await asyncio.sleep(0.05)
    assert limits.why is None and limits.task.cancelling() == 0


async def test_a_person_may_take_longer_than_the_tool() -> None:
    async def slow_yes(*_: Any) -> bool:
        await asyncio.sleep(0.6)
        return True

    async with running(server("a", **ASKING), confirm_callback=slow_yes) as (computer, _):
        # The tool runs for longer than its time, so its end is the timeout of the tool and not of the person.
        late = await computer.execute_tool("1", "a.sleep", {"seconds": 60}, 0.5, approval_timeout=60)
        assert code(late) == 4004
        done = await computer.execute_tool("2", "a.echo", {"text": "hi"}, 30, approval_timeout=60)
        assert text(done) == "hi"


async def test_nobody_answers_within_the_time_for_a_person() -> None:
    async def never(*_: Any) -> bool:
        await asyncio.sleep(60)
        return True

    async with running(server("a", **ASKING), confirm_callback=never) as (computer, _):
        result = await computer.execute_tool("1", "a.echo", {}, 3000, approval_timeout=0.3)
        assert (code(result), (result.meta or {})["outcome"]) == (4005, "unanswered")


async def test_a_question_of_the_tool_counts_as_its_own_time() -> None:
    asker = asking("old") | {"default_tool_meta": {"auto_apply": True}}
    async with running(asker) as (computer, record):
        with computer.decisions.attend("test"):
            result = await computer.execute_tool("1", "ask", {"message": "Who?"}, 1, approval_timeout=600)
        assert code(result) == 4004, text_of(result)
        assert await record.until(lambda: any(isinstance(event, DecisionAsked) for event in record.events))
