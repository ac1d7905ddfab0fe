"""What waits for an agent's handlers: in order, repeats as one, and not without end."""

import logging
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from a2c_smcp.agent.happenings import Happenings
from a2c_smcp.agent.types import Change, Connected, Part
from a2c_smcp.errors import InternalError

UPDATE = ("update_desktop", {"computer": "c"})


async def rest(happenings: Happenings) -> list[tuple[str, Any]]:
    return [await happenings.get() for _ in range(len(happenings))]


async def test_repeats_that_wait_are_one_and_the_earlier_one_stays() -> None:
    happenings = Happenings()
    others = [("update_desktop", {"computer": "d"}), ("update_finder", {"computer": "c"})]
    for happened in (UPDATE, others[0], UPDATE, others[1], UPDATE):
        happenings.put(*happened)
    assert await rest(happenings) == [UPDATE, *others]


async def test_what_was_heard_is_news_again() -> None:
    happenings = Happenings()
    for _ in range(3):
        happenings.put(*UPDATE)
        assert await happenings.get() == UPDATE


@pytest.mark.parametrize(
    "between",
    [
        ("leave_office", {"computer": "c", "office_id": "o"}),
        ("enter_office", {"computer": "c", "office_id": "o"}),
        ("connection", Connected("http://127.0.0.1")),
    ],
)
async def test_nothing_collapses_across_a_coming_or_going(between: tuple[str, Any]) -> None:
    happenings = Happenings()
    for happened in (UPDATE, between, UPDATE, UPDATE):
        happenings.put(*happened)
    assert await rest(happenings) == [UPDATE, between, UPDATE]


async def test_the_coming_of_another_computer_bars_nothing() -> None:
    happenings = Happenings()
    other = ("enter_office", {"computer": "d", "office_id": "o"})
    for happened in (UPDATE, other, UPDATE):
        happenings.put(*happened)
    assert await rest(happenings) == [UPDATE, other]


async def test_cancels_and_failures_never_collapse_and_changes_do() -> None:
    happenings = Happenings()
    cancel = ("tool_call_cancel", {"agent": "a", "req_id": "1"})
    change = ("change", Change("c", Part.TOOLS))
    failures = [("change", Change("c", Part.TOOLS, InternalError("no"))) for _ in range(2)]
    for happened in (cancel, cancel, change, change, *failures):
        happenings.put(*happened)
    assert await rest(happenings) == [cancel, cancel, change, *failures]


async def test_of_too_many_the_oldest_are_lost_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    happenings = Happenings(most=3)
    with caplog.at_level(logging.WARNING):
        happenings.put(*UPDATE)
        for n in range(10):
            happenings.put("tool_call_cancel", {"agent": "a", "req_id": str(n)})
    assert [data["req_id"] for _, data in await rest(happenings)] == ["7", "8", "9"]
    assert [record.name for record in caplog.records].count(Happenings.__module__) == 1
    happenings.put(*UPDATE)  # its first one was lost
    assert await happenings.get() == UPDATE


async def test_who_waits_is_woken() -> None:
    happenings = Happenings()
    async with anyio.create_task_group() as tasks:
        heard: list[Any] = []

        async def listen() -> None:
            heard.append(await happenings.get())

        tasks.start_soon(listen)
        await anyio.lowlevel.checkpoint()
        happenings.put(*UPDATE)
    assert heard == [UPDATE]
