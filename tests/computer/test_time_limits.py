"""How long a person may take, and how long the tool: told apart with `approval_timeout`."""

import asyncio
import math
from typing import Any

from a2c_smcp.computer.calls.time_limits import TimeLimits
from a2c_smcp.computer.watching.events import DecisionAsked
from a2c_smcp.results import text_of
from tests.computer.fakes.computers import asking, code, running, server, text

ASKING: dict[str, Any] = {"default_tool_meta": {}}


async def test_without_a_time_for_a_person_both_share_one() -> None:
    limits = TimeLimits(30)
    with limits.scope:
        with limits.asking() as expires:
            assert expires < limits.tool_ends, "a moment earlier"
            assert limits.scope.deadline == math.inf
        assert limits.scope.deadline == limits.tool_ends == limits.began + 30
        assert limits.start_tool() == limits.began + 30


async def test_with_a_time_for_a_person_the_tool_has_all_of_its_own() -> None:
    limits = TimeLimits(30, 600)
    with limits.scope:
        assert limits.scope.deadline == math.inf
        with limits.asking() as expires:
            assert expires == limits.began + 600
        now = asyncio.get_running_loop().time()
        assert limits.scope.deadline == math.inf, "the yes may come in the last moment"
        assert limits.start_tool() == limits.scope.deadline >= now + 30


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
