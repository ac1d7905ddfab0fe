"""A desktop that follows its servers: what is announced, and what is read, on a running Computer."""

import json
import logging
import time
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.desktop import reading
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.resources.shown import ResourceTimings
from a2c_smcp.computer.watching.events import DesktopChanged, FinderChanged
from a2c_smcp.computer.watching.paced_events import ANNOUNCE_SECONDS
from a2c_smcp.errors import InternalError, RequestTimeoutError
from tests.computer.fakes.computers import DEADLINE, Record, call, from_now_on, server, text
from tests.computer.fakes.computers import running as running_within
from tests.computer.fakes.processes import eventually

#: However late a server lists its windows, takes a subscription or answers.
PATIENT = ResourceTimings(list=30, subscribe=30, read=30)

both_eras = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])

NEW = "window://a/new"


def window(number: int) -> str:
    return f"window://fake/{number}\n\nwindow {number}"


def running(*servers: dict[str, Any], **options: Any) -> AbstractAsyncContextManager[tuple[Computer, Record]]:
    return running_within(*servers, **{"resource_timings": PATIENT, **options})


def give_up_soon(connection: MCPConnection, uri: str) -> None:
    """Have a window that hangs given up after a small part of the time that it is given, and no other."""
    read = connection.read_resource

    async def read_resource(wanted: str, timeout: float | None = None, meta: Any = None) -> Any:
        assert timeout is not None
        return await read(wanted, timeout / 30 if wanted == uri else timeout)

    connection.read_resource = read_resource  # type: ignore[method-assign, assignment]


async def settled(computer: Computer) -> None:
    """All is listed and subscribed to: a request waits for nothing but its reading."""
    await eventually(lambda: not computer._resources._tasks)


async def stats(computer: Computer, name: str) -> Any:
    return json.loads(text(await call(computer, f"{name}.stats")))


async def put(computer: Computer, uri: str, content: str = "new", name: str = "a") -> None:
    await call(computer, f"{name}.set_resource", uri=uri, text=content)


async def watches(computer: Computer, *uris: str, name: str = "a") -> None:
    with anyio.fail_after(DEADLINE):
        while (await stats(computer, name))["watched"] != sorted(uris):
            pass


async def announced(record: Record, times: int = 1) -> None:
    await record.of(DesktopChanged, times)


# --- what shows


async def test_windows_of_all_servers_the_last_used_first() -> None:
    async with running(server("a"), server("b", resources=1), server("c", bare=1)) as (computer, _):
        assert await computer.get_desktop() == [window(0), window(1), window(0)]
        await put(computer, "window://b/new?priority=50", "fresh", "b")
        assert await computer.get_desktop() == ["window://b/new?priority=50\n\nfresh", window(0), window(0), window(1)]
        assert await computer.get_desktop(size=2) == ["window://b/new?priority=50\n\nfresh", window(0)]
        assert await computer.get_desktop(size=0) == []
        assert await computer.get_desktop(window="window://fake/1") == [window(1)]
        assert await computer.get_desktop(window="window://fake/7") == []
        await computer.stop_server("a")
        assert await computer.get_desktop(window="window://fake/1") == []


async def test_with_a_size_only_windows_that_can_still_show_are_read() -> None:
    async with running(server("a", resources=50), server("b", resources=50)) as (computer, _):
        for blank in ("window://fake/0", "window://fake/1"):
            await call(computer, "a.remove_resource", uri=blank)
        assert len(await computer.get_desktop(size=3)) == 3
        assert (await stats(computer, "a"))["reads"] == [f"window://fake/{number}" for number in (2, 3, 4)]
        assert (await stats(computer, "b"))["reads"] == []


async def test_a_window_that_hangs_is_left_out_and_others_take_its_place(caplog: pytest.LogCaptureFixture) -> None:
    async with running(server("a"), server("b")) as (computer, _):
        await put(computer, "window://fake/0", "hang")
        give_up_soon(computer._manager.book.connections["a"], "window://fake/0")
        assert await computer.get_desktop() == [window(1), window(0), window(1)]
        assert await computer.get_desktop(size=2) == [window(1), window(0)]
    assert "window://fake/0 of MCP server a could not be read: 408" in caplog.text


async def test_a_desktop_comes_in_time_however_many_windows_hang(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    timings, seconds, desktop = ResourceTimings(list=30, read=120), 0.5, list[str]()
    async with running(server("a", resources=0), server("b"), resource_timings=timings) as (computer, _):
        for number in range(20):  # more than are read at once
            await put(computer, f"window://a/{number}", "hang")
        while len(desktop) < 2 and seconds < DEADLINE:  # the others may not have been read in time, either
            monkeypatch.setattr(reading, "DESKTOP_SECONDS", seconds)
            started = time.monotonic()
            desktop = await computer.get_desktop()
            assert time.monotonic() - started < seconds + 30  # one that hangs takes 120
            seconds *= 2
        assert desktop == [window(0), window(1)]
    assert "20 windows were not read in time" in caplog.text


async def test_reading_from_a_server_that_dies_is_an_internal_error() -> None:
    async with running(server("a")) as (computer, _):
        await put(computer, "window://fake/0", "hang")
        await settled(computer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, computer, "a.crash")
            with pytest.raises(InternalError) as caught:
                await computer.read_resource("window://fake/0")
    assert caught.value.details == {"server_name": "a"}


async def test_a_server_that_does_not_list_in_time_delays_nobody() -> None:
    slow = server("late", "slow", delay=1, resources=3)
    async with running(slow, server("good"), resource_timings=ResourceTimings(list=0.3)) as (computer, _):
        is_listed = computer._resources._shelves["late"].listed.is_set()  # if this computer is as late itself
        assert len(await computer.get_desktop()) <= 2 or is_listed
        with anyio.fail_after(DEADLINE):
            while len(await computer.get_desktop()) < 5:
                pass


async def test_a_server_that_dies_while_it_is_read_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "DESKTOP_SECONDS", 120)
    timings = ResourceTimings(list=30, read=120)
    async with running(server("a", read=120), server("b"), resource_timings=timings) as (computer, _):
        await settled(computer)
        async with anyio.create_task_group() as tasks:
            started = time.monotonic()
            tasks.start_soon(call, computer, "a.crash")
            assert await computer.get_desktop() == [window(0), window(1)]
        assert time.monotonic() - started < 60


async def test_a_server_that_does_not_say_when_its_list_changes_is_listed_again_for_every_request() -> None:
    async with running(server("a", quiet=1)) as (computer, record):
        await put(computer, NEW)
        await from_now_on(computer, record)
        assert len(await computer.get_desktop()) == 3
        await announced(record)


# --- what is announced


@both_eras
async def test_a_window_that_comes_changes_and_goes_is_announced(era: str) -> None:
    async with running(server("a", protocol=era)) as (computer, record):
        await record.of(DesktopChanged)
        assert len(record.now(DesktopChanged)) == 1  # the server started
        await put(computer, NEW, "one")
        await announced(record, 2)
        assert f"{NEW}\n\none" in await computer.get_desktop()
        await put(computer, NEW, "two")
        await announced(record, 3)
        assert f"{NEW}\n\ntwo" in await computer.get_desktop()
        await call(computer, "a.remove_resource", uri=NEW)
        await announced(record, 4)
        assert await computer.get_desktop() == [window(0), window(1)]
        assert record.now(FinderChanged) == []


async def test_a_list_that_changed_without_a_change_of_windows_is_logged_and_not_announced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "a2c_smcp.computer.resources.shown")
    async with running(server("a"), server("b")) as (computer, record):
        await from_now_on(computer, record)
        await computer.get_desktop()
        assert "its URIs are the same" not in caplog.text
        await put(computer, "file:///notes")
        await computer.get_desktop()
        [line] = [line for line in caplog.messages if "its URIs are the same" in line]
        assert "MCP server a " in line and "server:update_desktop, server:update_finder" in line
        # Another server lists it already: what there is on the whole stays the same.
        await call(computer, "a.remove_resource", uri="window://fake/0")
        await computer.get_desktop()
        assert record.now(DesktopChanged) == []


@both_eras
async def test_new_windows_are_subscribed_to_and_everything_again_after_a_restart(era: str) -> None:
    async with running(server("a", protocol=era)) as (computer, record):
        await put(computer, NEW)
        await watches(computer, NEW, "window://fake/0", "window://fake/1")
        await call(computer, "a.crash")
        await record.reached("a", ServerState.RUNNING, 2)
        await watches(computer, "window://fake/0", "window://fake/1")
        record.events.clear()
        await put(computer, "window://fake/0", "again")
        await announced(record)
        assert await computer.get_desktop(size=1) == ["window://fake/0\n\nagain"]


async def test_a_server_that_stops_dies_or_is_removed_is_announced() -> None:
    async with running(server("a"), server("b", resources=3)) as (computer, record):
        for change in (computer.stop_server, computer.start_server, computer.remove_server):
            await from_now_on(computer, record)
            await change("b")
            await announced(record)
        record.events.clear()
        await call(computer, "a.crash")
        await record.reached("a", ServerState.RUNNING)
        await announced(record)  # perhaps once for its going and its coming back
        assert await computer.get_desktop() == [window(0), window(1)]


async def test_an_updated_server_takes_the_place_of_the_old_one() -> None:
    async with running(server("a")) as (computer, record):
        await from_now_on(computer, record)
        await computer.add_or_update_server(server("a", resources=4))
        await announced(record)
        assert len(await computer.get_desktop()) == 4
        await watches(computer, *(f"window://fake/{number}" for number in range(4)))


async def test_a_burst_is_announced_every_100_ms_and_the_last_change_is_not_lost() -> None:
    async with running(server("a")) as (computer, record):
        await from_now_on(computer, record)
        started, number = time.monotonic(), 0
        while len(record.now(DesktopChanged)) < 3 or number < 20:
            number += 1
            await put(computer, "window://fake/0", str(number))
        await record.until(lambda: not computer._happened.is_waiting)
        seconds = time.monotonic() - started
        assert len(record.now(DesktopChanged)) <= seconds / ANNOUNCE_SECONDS + 1
        assert await computer.get_desktop(window="window://fake/0") == [f"window://fake/0\n\n{number}"]


async def test_what_changed_before_a_slow_server_subscribed_us_is_announced_when_it_has() -> None:
    timings = ResourceTimings(list=30, subscribe=0.01, read=30)
    async with running(server("a"), resource_timings=timings) as (computer, record):
        await settled(computer)
        connection, is_subscribed = computer._manager.book.connections["a"], anyio.Event()
        connection.subscribed = is_subscribed.wait  # type: ignore[method-assign]
        await put(computer, NEW)
        tasks = computer._resources._tasks
        await eventually(lambda: any(task.get_name().startswith("subscriptions") for task in tasks))
        await record.until(lambda: not computer._happened.is_waiting)
        record.events.clear()
        is_subscribed.set()
        await announced(record)
        assert record.now(FinderChanged) == []  # it has no documents


async def test_a_list_that_cannot_be_read_is_tried_again_for_the_next_request(caplog: pytest.LogCaptureFixture) -> None:
    async with running(server("a")) as (computer, _):
        connection = computer._manager.book.connections["a"]
        listing = connection.list_resources

        async def late() -> Any:
            raise RequestTimeoutError("Server a did not answer")

        connection.list_resources = late  # type: ignore[method-assign]
        await put(computer, NEW)
        assert len(await computer.get_desktop()) == 2
        assert "could not be listed" in caplog.text
        connection.list_resources = listing  # type: ignore[method-assign]
        await computer.get_desktop()
        with anyio.fail_after(DEADLINE):
            while len(await computer.get_desktop()) != 3:
                pass
