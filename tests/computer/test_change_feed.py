"""Changes on a server, as one kind of event, whatever the era and the transport."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp_types import TextContent

from a2c_smcp.computer.mcp_clients.change_feed import ChangeFeed, ChangeFeedTimings, ChangeKind, ServerChange
from a2c_smcp.computer.mcp_clients.connection_options import ConnectionHooks, ConnectionOptions, Timings
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.model import parse_server
from a2c_smcp.errors import ToolExecutionError
from tests.computer.fakes import misbehaving
from tests.computer.fakes.processes import command, eventually, nothing_left_over

#: A stream that is acknowledged late counts as lost, and then everything as changed.
TIMINGS = Timings(
    backoff_first=0.01, feed=ChangeFeedTimings(debounce=0.01, answer=30, retry_first=0.01, retry_most=0.05)
)

TOOLS = ServerChange("s", ChangeKind.TOOLS)
PROMPTS = ServerChange("s", ChangeKind.PROMPTS)
RESOURCES = ServerChange("s", ChangeKind.RESOURCES)
FIRST, SECOND, THIRD = "window://fake/0", "window://fake/1", "window://fake/2"


def updated(uri: str) -> ServerChange:
    return ServerChange("s", ChangeKind.RESOURCE, uri)


def stdio(**options: object) -> dict[str, Any]:
    program, arguments = command("normal", resources=3, **options)
    return {"name": "s", "type": "stdio", "server_parameters": {"command": program, "args": arguments}}


@asynccontextmanager
async def listening(
    config: dict[str, Any], timings: Timings = TIMINGS
) -> AsyncIterator[tuple[MCPConnection, list[ServerChange]]]:
    changes: list[ServerChange] = []
    with nothing_left_over():
        connection = MCPConnection(
            parse_server(config), ConnectionOptions(timings=timings), ConnectionHooks(on_change=changes.append)
        )
        await connection.connect()
        try:
            yield connection, changes
        finally:
            await connection.disconnect()


async def watch(connection: MCPConnection, *uris: str) -> None:
    connection.subscribe(uris)
    await connection.subscribed()


async def touch(connection: MCPConnection, uri: str) -> None:
    await connection.call_tool("set_resource", {"uri": uri, "text": "new"}, 10)


async def stats(connection: MCPConnection) -> Any:
    content = (await connection.call_tool("stats", {}, 10)).content[0]
    assert isinstance(content, TextContent)
    return json.loads(content.text)


both_eras = pytest.mark.parametrize("era", ["modern", "legacy"])


@both_eras
async def test_each_kind_of_change_is_told(era: str) -> None:
    async with listening(stdio(era=era)) as (connection, changes):
        await watch(connection, FIRST)
        await connection.call_tool("add_tool", {"name": "new"})
        await eventually(lambda: changes == [TOOLS])
        await touch(connection, "window://fake/new")
        await eventually(lambda: changes == [TOOLS, RESOURCES])
        await touch(connection, SECOND)  # which nobody watches
        await touch(connection, FIRST)
        await eventually(lambda: changes == [TOOLS, RESOURCES, updated(FIRST)])


@both_eras
async def test_what_is_watched_can_be_changed_at_any_time(era: str) -> None:
    async with listening(stdio(era=era)) as (connection, changes):
        await watch(connection, FIRST, SECOND)
        assert (await stats(connection))["watched"] == [FIRST, SECOND]
        for uris in ({SECOND}, {SECOND, THIRD}, {THIRD}):  # a burst
            connection.subscribe(uris)
        await connection.subscribed()
        await touch(connection, THIRD)
        await eventually(lambda: changes == [updated(THIRD)])
        await eventually_watched(connection, [THIRD])


@both_eras
async def test_whoever_waits_for_a_watch_that_is_overtaken_waits_for_the_next(era: str) -> None:
    async with listening(stdio(era=era)) as (connection, _):
        connection.subscribe({FIRST})
        waiting = asyncio.create_task(connection.subscribed())
        await asyncio.sleep(0)
        connection.subscribe({SECOND})
        await waiting
        del waiting
        assert SECOND in (await stats(connection))["watched"]


@both_eras
async def test_a_server_that_takes_no_subscription_has_no_windows_and_keeps_nobody_waiting(era: str) -> None:
    async with listening(stdio(era=era, bare=1)) as (connection, _):
        with anyio.fail_after(20):
            await watch(connection, FIRST)
        assert not connection.can_subscribe
        assert await connection.list_resources() == []
        assert connection.listed is not None
        assert connection.listed.unshown["windows"] == 3
        assert (await stats(connection))["listens"] == 0


async def eventually_watched(connection: MCPConnection, uris: list[str]) -> None:
    """The old stream is closed after the new one is open."""
    with anyio.fail_after(20):
        while True:
            found = await stats(connection)
            if found["watched"] == uris and found["listens"] <= 1:
                return
            await anyio.sleep(0.01)


@both_eras
async def test_nothing_is_missed_while_what_is_watched_changes(era: str) -> None:
    async with listening(stdio(era=era)) as (connection, changes):
        await watch(connection, FIRST)
        for n in range(20):
            connection.subscribe({FIRST, f"window://fake/{n}"})
            before = changes.count(updated(FIRST))
            await touch(connection, FIRST)
            await eventually(lambda before=before: changes.count(updated(FIRST)) > before)  # type: ignore[misc]


@both_eras
async def test_everything_is_watched_again_after_a_restart(era: str) -> None:
    async with listening(stdio(era=era)) as (connection, changes):
        await watch(connection, FIRST)
        with pytest.raises(ToolExecutionError):
            await connection.call_tool("crash")
        connection.subscribe({FIRST, SECOND})  # while it is down
        await connection.connect()
        await connection.subscribed()
        assert (await stats(connection))["watched"] == [FIRST, SECOND]
        await touch(connection, SECOND)
        await eventually(lambda: changes == [updated(SECOND)])


async def test_a_server_that_answers_no_subscription_comes_back_after_a_crash() -> None:
    timings = replace(TIMINGS, feed=replace(TIMINGS.feed, answer=0.1))
    async with listening(stdio(era="legacy", deaf=1), timings) as (connection, _):
        connection.subscribe({FIRST})
        with pytest.raises(ToolExecutionError):
            await connection.call_tool("crash")
        await connection.connect()
        assert (await stats(connection))["watched"] == []


@pytest.mark.parametrize("graceful", [True, False])
async def test_a_lost_stream_is_opened_again_and_everything_counts_as_changed(graceful: bool) -> None:
    async with listening(stdio()) as (connection, changes):
        await watch(connection, FIRST)
        for times in (1, 2, 3):
            await connection.call_tool("drop_listens", {"graceful": graceful})
            await eventually(lambda times=times: changes.count(updated(FIRST)) == times)  # type: ignore[misc]
        assert set(changes) == {TOOLS, PROMPTS, RESOURCES, updated(FIRST)}
        changes.clear()
        await touch(connection, FIRST)
        await eventually(lambda: changes == [updated(FIRST)])


@both_eras
async def test_a_thousand_documents_can_be_watched(era: str) -> None:
    program, arguments = command("normal", resources=1000, era=era)
    config = {"name": "s", "type": "stdio", "server_parameters": {"command": program, "args": arguments}}
    async with listening(config) as (connection, changes):
        uris = [f"window://fake/{n}" for n in range(1000)]
        await watch(connection, *uris)
        await touch(connection, uris[999])
        await eventually(lambda: changes == [updated(uris[999])])


async def test_a_slow_callback_of_a_change_can_use_the_session() -> None:
    # In the existing implementation a list_changed deadlocks the session that it came from.
    seen: list[int] = []
    tasks: set[asyncio.Task[None]] = set()

    async def reread() -> None:
        seen.append(len(await connection.list_tools()))

    def on_change(change: ServerChange) -> None:
        tasks.add(asyncio.create_task(reread()))

    config, options = parse_server(stdio(era="legacy")), ConnectionOptions(timings=TIMINGS)
    connection = MCPConnection(config, options, ConnectionHooks(on_change=on_change))
    await connection.connect()
    await connection.call_tool("add_tool", {"name": "new"}, 10)
    await eventually(lambda: seen == [len(misbehaving.TOOLS) + 1])
    await asyncio.gather(*tasks)
    await connection.disconnect()


async def test_watching_the_same_again_is_settled_at_once() -> None:
    feed = ChangeFeed("s", lambda change: None)
    feed.watch({FIRST})
    feed.watch([FIRST])
    assert feed.watched == {FIRST}
    with anyio.move_on_after(0.01) as scope:
        await feed.settled()
    assert scope.cancelled_caught  # nobody has told the server yet


@pytest.mark.parametrize(("kind", "protocol"), [("streamable", None), ("streamable", "legacy"), ("sse", None)])
async def test_changes_are_told_over_http(http_server: str, kind: str, protocol: str | None) -> None:
    url = http_server + {"streamable": "/mcp", "sse": "/sse"}[kind]
    config = {"name": "s", "type": kind, "protocol": protocol, "server_parameters": {"url": url}}
    async with listening(config) as (connection, changes):
        await watch(connection, "window://http/0")
        await connection.call_tool("add_tool", {"name": f"added-{kind}-{protocol}"}, 10)
        await eventually(lambda: TOOLS in changes)
        await touch(connection, f"window://http/{kind}-{protocol}")
        await eventually(lambda: RESOURCES in changes)
        await touch(connection, "window://http/0")
        await eventually(lambda: updated("window://http/0") in changes)


async def test_a_lost_stream_over_http_is_opened_again(http_server: str) -> None:
    config = {"name": "s", "type": "streamable", "server_parameters": {"url": f"{http_server}/mcp"}}
    async with listening(config) as (connection, changes):
        await watch(connection, "window://http/0")
        await connection.call_tool("drop_listens", {}, 10)
        await eventually(lambda: updated("window://http/0") in changes)
        changes.clear()
        await touch(connection, "window://http/0")
        await eventually(lambda: changes == [updated("window://http/0")])
