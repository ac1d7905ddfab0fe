"""A server that writes more than anybody can use: what it answers so fails with 413, and it lives."""

import json
import logging
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.item_limits import MAX_ITEMS, MAX_LEVELS, too_much
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.errors import PayloadTooLargeError
from tests.computer.fakes.computers import call, code, listed, running, server, state, text
from tests.computer.fakes.processes import eventually

LIMIT = 1024 * 1024
TOO_MUCH = 2 * LIMIT


async def alive(computer: Computer) -> None:
    assert text(await call(computer, "a.echo", text="here")) == "here"
    assert state(computer, "a") is ServerState.RUNNING
    assert computer.statuses[0].restarts == 0


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("place", ["first", "last"])
async def test_the_call_that_a_long_line_answers_fails_with_413_and_no_other(
    place: str, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(server("a", protocol=era), max_message=LIMIT) as (computer, _):
        async with anyio.create_task_group() as tasks:
            other = await _sleeping(computer, tasks)
            failed = await call(computer, "a.blare", size=TOO_MUCH, id=place)
            assert (failed.is_error, code(failed)) == (True, 413)
            assert "at most 1310720" in text(failed)
            assert not other
            await alive(computer)
            tasks.cancel_scope.cancel()
        assert [record["error"] is None for record in computer.history][:2] == [False, True]
    assert "1 requests fail with it" in caplog.text


async def test_without_an_id_every_call_of_that_server_fails_with_413_and_none_of_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        running(server("a"), server("b"), max_message=LIMIT) as (computer, _),
        anyio.create_task_group() as tasks,
    ):
        mine, others = await _sleeping(computer, tasks), await _sleeping(computer, tasks, "b")
        assert code(await call(computer, "a.blare", size=TOO_MUCH, id="none")) == 413
        await eventually(lambda: bool(mine), 20)
        assert mine == [413]
        await alive(computer)
        assert not others
        tasks.cancel_scope.cancel()
    assert "requests fail with it" in caplog.text


async def _sleeping(computer: Computer, tasks: Any, name: str = "a") -> list[int | None]:
    """A call that sleeps until it is given up; its code comes into the list."""
    codes: list[int | None] = []

    async def sleep() -> None:
        codes.append(code(await call(computer, f"{name}.sleep", 60, seconds=50)))

    tasks.start_soon(sleep)
    await eventually(lambda: "started sleep" in computer.server_logs(name), 20)
    return codes


async def test_a_list_of_the_sessions_own_that_is_too_long_fails_and_leaves_what_was_known() -> None:
    async with running(server("a"), max_message=64 * 1024) as (computer, _):
        await listed(computer)
        known = await computer.get_desktop()
        result = await call(computer, "a.set_resource", uri="window://fake/" + "x" * 100_000, text="huge")
        assert not result.is_error
        await eventually(lambda: computer._resources._shelves["a"].has_failed, 20)
        assert await computer.get_desktop() == known
        await alive(computer)


async def test_a_window_that_is_too_large_is_413_alone_and_missing_among_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(server("a"), max_message=64 * 1024) as (computer, _):
        await listed(computer)
        assert not (await call(computer, "a.grow", uri="window://fake/0", size=200_000)).is_error
        with pytest.raises(PayloadTooLargeError):
            await computer.read_resource("window://fake/0")
        assert await computer.get_desktop() == ["window://fake/1\n\nwindow 1"]
        await alive(computer)
    assert "window://fake/0" in caplog.text


async def test_a_notification_that_is_too_long_is_dropped_and_fails_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with running(server("a"), max_message=LIMIT) as (computer, _):
        assert text(await call(computer, "a.shout", size=TOO_MUCH)) == "done"
    assert "0 requests fail with it" in caplog.text


async def test_long_lines_are_logged_a_few_times_only(caplog: pytest.LogCaptureFixture) -> None:
    async with running(server("a"), max_message=64 * 1024) as (computer, _):
        for _ in range(6):
            assert text(await call(computer, "a.shout", size=100_000)) == "done"
    lines = [record for record in caplog.records if "wrote a line" in record.getMessage()]
    assert len(lines) == 3
    assert "not logged" in lines[-1].getMessage()


async def test_what_just_fits_arrives() -> None:
    async with running(server("a"), max_message=LIMIT) as (computer, _):
        assert len(text(await call(computer, "a.huge", size=LIMIT + LIMIT // 8))) == LIMIT + LIMIT // 8


@pytest.mark.parametrize("item", ["[]", "{}", "0", json.dumps({"type": "text", "text": ""})])
async def test_more_parts_than_anybody_could_use_are_413_at_once(item: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "a2c_smcp")
    async with running(server("a")) as (computer, _):
        assert code(await call(computer, "a.litter", item=item, count=300_000)) == 413
        refused = await call(computer, "a.litter", item=item, count=MAX_ITEMS)
        assert code(refused) == (4003 if item != json.dumps({"type": "text", "text": ""}) else None)
        await alive(computer)


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_what_is_nested_too_deeply_is_413_and_says_so(era: str) -> None:
    async with running(server("a", protocol=era)) as (computer, _):
        for levels, expected in ((MAX_LEVELS, None), (MAX_LEVELS + 1, 413), (600, 413)):
            inner = levels - 4  # the result, its content, the item and its `_meta`
            item = '{"type":"text","text":"x","_meta":{"a":' + "[" * inner + "]" * inner + "}}"
            result = await call(computer, "a.litter", item=item, count=1)
            assert code(result) == expected
            assert ("nested deeper than" in text(result)) is result.is_error
        await alive(computer)


def test_the_lists_of_an_answer_are_counted() -> None:
    assert too_much({"content": [0] * MAX_ITEMS}) is None
    assert "10001 items in 'contents'" in (too_much({"contents": [0] * (MAX_ITEMS + 1)}) or "")
    assert too_much({"structuredContent": [0] * 20_000}) is None
    assert too_much([0] * 20_000) is None
