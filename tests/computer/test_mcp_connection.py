"""One server, kept connected: states, restarts, calls from other tasks, and nothing left over in the end."""

import asyncio
import gc
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp_types import TextContent

from a2c_smcp.computer.mcp_clients.connection_options import ConnectionHooks, ConnectionOptions, Timings
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.model import parse_server
from a2c_smcp.computer.mcp_clients.pipes.process import StdioTimings
from a2c_smcp.computer.mcp_clients.probe import ProbeTimeouts
from a2c_smcp.computer.mcp_clients.server_state import TRANSITIONS, ServerState, StateChange
from a2c_smcp.errors import (
    RequestTimeoutError,
    ServerNotActiveError,
    SMCPError,
    ToolExecutionError,
    ToolExecutionTimeoutError,
)
from tests.computer.conftest import start_http_server
from tests.computer.fakes.misbehaving import TOOLS
from tests.computer.fakes.processes import command, eventually, group_of, nothing_left_over

FAST = Timings(
    start=30,
    probe=ProbeTimeouts(probe=0.5),
    backoff_first=0.01,
    backoff_most=0.05,
    stdio=StdioTimings(flush=0.2, eof=0.2, terminate=0.2, kill=20, drain=0.1),
)


class Watcher:
    """Remembers what a connection reports, and waits for it."""

    def __init__(self) -> None:
        self.changes: list[StateChange] = []
        self.lines: list[str] = []

    @property
    def states(self) -> list[str]:
        return [change.new.value for change in self.changes]

    async def reached(self, state: str, times: int = 1) -> StateChange:
        await eventually(lambda: self.states.count(state) >= times)
        return [change for change in self.changes if change.new.value == state][times - 1]

    async def said(self, line: str, times: int = 1) -> None:
        await eventually(lambda: self.lines.count(line) >= times)


def stdio(mode: str = "normal", *, protocol: str | None = None, **options: object) -> dict[str, Any]:
    program, arguments = command(mode, **options)
    parameters = {"command": program, "args": arguments}
    return {"name": "fake", "type": "stdio", "protocol": protocol, "server_parameters": parameters}


def http(base: str, kind: str, protocol: str | None = None) -> dict[str, Any]:
    path = {"streamable": "/mcp", "sse": "/sse"}[kind]
    return {"name": "web", "type": kind, "protocol": protocol, "server_parameters": {"url": base + path}}


def connection_to(config: dict[str, Any], watcher: Watcher | None = None, **options: Any) -> MCPConnection:
    watcher = watcher or Watcher()
    own = {key: options.pop(key) for key in [*options] if key.startswith("on_")}
    hooks = ConnectionHooks(on_state=watcher.changes.append, on_stderr=watcher.lines.append, **own)
    old_handshake = options.pop("old_handshake", False)
    settings = ConnectionOptions(**{"timings": FAST, **options})
    return MCPConnection(parse_server(config), settings, hooks, old_handshake=old_handshake)


@asynccontextmanager
async def opened(
    config: dict[str, Any], watcher: Watcher | None = None, **options: Any
) -> AsyncIterator[MCPConnection]:
    connection = connection_to(config, watcher, **options)
    try:
        await connection.connect()
        yield connection
    finally:
        pid = connection.pid
        await connection.disconnect()
    await eventually(lambda: pid is None or not group_of(pid))


@asynccontextmanager
async def connected(
    config: dict[str, Any], watcher: Watcher | None = None, **options: Any
) -> AsyncIterator[MCPConnection]:
    """A running connection; afterwards nothing is left of it."""
    with nothing_left_over():
        async with opened(config, watcher, **options) as connection:
            yield connection


async def text(connection: MCPConnection, tool: str, timeout: float | None = 30, **params: Any) -> str:
    content = (await connection.call_tool(tool, params, timeout)).content[0]
    assert isinstance(content, TextContent)
    return content.text


async def stats(connection: MCPConnection) -> Any:
    return json.loads(await text(connection, "stats"))


# --- states


async def test_a_life_is_a_walk_through_the_table() -> None:
    watcher = Watcher()
    async with connected(stdio(), watcher) as connection:
        assert watcher.changes[-1].new is connection.state
        assert await text(connection, "echo", text="hello") == "hello"
        assert connection.can_subscribe
    assert connection.state is ServerState.STOPPED
    assert connection.capabilities is None
    assert watcher.states == ["starting", "running", "stopping", "stopped"]
    assert all(change.new in TRANSITIONS[change.old] and change.name == "fake" for change in watcher.changes)


async def test_connecting_and_disconnecting_twice_changes_nothing() -> None:
    watcher = Watcher()
    async with connected(stdio(), watcher) as connection:
        pid = connection.pid
        await asyncio.gather(connection.connect(), connection.connect())
        assert connection.pid == pid
        await asyncio.gather(connection.disconnect(), connection.disconnect())
    assert watcher.states == ["starting", "running", "stopping", "stopped"]


async def test_a_stopped_server_can_be_connected_again() -> None:
    async with connected(stdio()) as connection:
        await connection.disconnect()
        with pytest.raises(ServerNotActiveError):
            await connection.call_tool("echo")
        await connection.connect()
        assert await text(connection, "echo", text="back") == "back"
        _, _ = await asyncio.gather(connection.disconnect(), connection.connect())
        assert await text(connection, "echo", text="and again") == "and again"


async def test_a_disabled_server_is_not_started() -> None:
    connection = connection_to({**stdio(), "disabled": True})
    assert connection.state is ServerState.DISABLED
    with pytest.raises(ServerNotActiveError):
        await connection.connect()
    with pytest.raises(ServerNotActiveError):
        await connection.list_tools()
    await connection.disconnect()
    assert connection.state is ServerState.DISABLED


async def test_callbacks_that_fail_are_logged_and_stop_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(change: object) -> None:
        raise RuntimeError("not yours")

    hooks = ConnectionHooks(on_state=fail, on_change=fail)
    connection = MCPConnection(parse_server(stdio()), ConnectionOptions(timings=FAST), hooks)
    await connection.connect()
    await text(connection, "add_tool", name="x")
    await eventually(lambda: "change callback" in caplog.text)
    await connection.disconnect()
    assert "state callback" in caplog.text


# --- starting


async def test_a_server_that_dies_on_start_fails_with_its_exit_code_and_last_words() -> None:
    watcher = Watcher()
    connection = connection_to(stdio("dies-on-start", code=7), watcher)
    with nothing_left_over():
        with pytest.raises(ToolExecutionError, match="exit code 7; stderr: cannot open the database"):
            await connection.connect()
        assert connection.state is ServerState.FAILED
        assert connection.stderr_tail == ("cannot open the database",)
        with pytest.raises(ServerNotActiveError):
            await connection.call_tool("echo")
        await connection.disconnect()
    assert watcher.states == ["starting", "failed", "stopping", "stopped"]


async def test_a_command_that_does_not_exist_fails_at_once() -> None:
    connection = connection_to({**stdio(), "server_parameters": {"command": "no-such-command"}})
    with nothing_left_over(), pytest.raises(ToolExecutionError, match="no-such-command"):
        await connection.connect()


async def test_a_server_that_never_answers_fails_at_its_deadline() -> None:
    connection = connection_to(
        stdio("silent"), timings=Timings(start=0.6, probe=ProbeTimeouts(probe=0.2), stdio=FAST.stdio)
    )
    with nothing_left_over(), anyio.fail_after(20), pytest.raises(ToolExecutionError, match=r"no answer within 0\.6 s"):
        await connection.connect()


@pytest.mark.parametrize("mode", ["initialize-first", "silent"])
async def test_disconnecting_while_starting_stops_the_start(mode: str) -> None:
    connection = connection_to(stdio(mode))
    with nothing_left_over():
        async with asyncio.TaskGroup() as tasks:
            starting = tasks.create_task(_error_of(connection.connect()))
            await eventually(lambda: connection.pid is not None)
            await connection.disconnect()
        assert isinstance(starting.result(), ServerNotActiveError)
    assert connection.state is ServerState.STOPPED


async def test_disconnecting_before_the_owner_has_run_starts_nothing() -> None:
    connection = connection_to(stdio())
    starting = asyncio.create_task(_error_of(connection.connect()))
    await asyncio.sleep(0)
    assert connection.state is ServerState.STARTING
    await connection.disconnect()
    assert isinstance(await starting, ServerNotActiveError)
    assert connection.pid is None


async def test_cancelling_whoever_connects_does_not_stop_the_server() -> None:
    watcher = Watcher()
    connection = connection_to(stdio("slow", delay=0.2), watcher)
    with anyio.move_on_after(0.05):
        await connection.connect()
    await watcher.reached("running")
    await connection.disconnect()


async def _error_of(awaitable: Any) -> SMCPError | None:
    try:
        await awaitable
    except SMCPError as error:
        return error
    return None


# --- eras


@pytest.mark.parametrize(
    ("mode", "options", "version"),
    [
        ("normal", {}, "2026-07-28"),
        ("normal", {"era": "modern"}, "2026-07-28"),
        ("normal", {"era": "legacy"}, "2025-11-25"),
        ("normal", {"protocol": "legacy"}, "2025-11-25"),
        ("normal", {"protocol": "2026-07-28"}, "2026-07-28"),
        ("initialize-first", {}, "2025-11-25"),
    ],
)
async def test_the_era_is_found_out(mode: str, options: dict[str, Any], version: str) -> None:
    async with connected(stdio(mode, **options)) as connection:
        assert connection.protocol_version == version
        assert await text(connection, "echo", text="hello") == "hello"


async def test_the_old_handshake_is_remembered_for_the_run() -> None:
    watcher = Watcher()
    async with connected(stdio("initialize-first"), watcher) as connection:
        assert len([line for line in watcher.lines if "the first message must be initialize" in line]) == 1
        with pytest.raises(ToolExecutionError):
            await connection.call_tool("crash")
        await connection.connect()
        assert len([line for line in watcher.lines if "the first message must be initialize" in line]) == 1


async def test_a_server_is_told_the_name_of_this_distribution() -> None:
    watcher = Watcher()
    async with connected(stdio("initialize-first"), watcher):
        assert any(line.endswith("not server/discover of a2c-office") for line in watcher.lines), watcher.lines


IMPATIENT = replace(FAST, start=30, probe=ProbeTimeouts(probe=0.15, handshake=20))


async def era(
    config: dict[str, Any], *, starts: int = 1, timings: Timings = IMPATIENT
) -> tuple[str | None, MCPConnection, Watcher]:
    """What a server is spoken to in by somebody impatient, and that so many processes were started for it."""
    watcher = Watcher()
    async with connected(config, watcher, timings=timings) as connection:
        version = connection.protocol_version
        assert await text(connection, "echo", text="hello") == "hello"
        assert watcher.lines.count("ready") == starts
    assert watcher.states == ["starting", "running", "stopping", "stopped"]
    return version, connection, watcher


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is not to be seen that the probe was not read yet")
async def test_a_server_that_has_not_read_the_probe_yet_is_waited_for() -> None:
    assert (await era(stdio(late=1.5)))[0] == "2026-07-28"
    assert (await era(stdio(late=1.5, era="legacy")))[0] == "2025-11-25"


async def test_a_server_that_answers_the_probe_late_is_spoken_to_in_the_era_it_answers() -> None:
    assert (await era(stdio("slow", delay=0.4)))[0] == "2026-07-28"
    assert (await era(stdio("slow", delay=0.4, era="modern")))[0] == "2026-07-28"
    assert (await era(stdio("slow", delay=0.4, era="legacy")))[0] == "2025-11-25"


async def test_a_server_that_ignores_the_probe_gets_the_old_handshake_in_the_same_life() -> None:
    version, connection, _ = await era(stdio("ignores-probe"))
    assert version == "2025-11-25"
    assert connection._handshake.mode == "auto", "silence is no answer to be remembered"


async def test_a_server_that_is_stuck_after_the_probe_is_started_again_with_the_old_handshake() -> None:
    timings = replace(IMPATIENT, probe=ProbeTimeouts(probe=0.15, handshake=0.5))
    version, connection, _ = await era(stdio("stuck-after-probe"), starts=2, timings=timings)
    assert version == "2025-11-25"
    assert connection._handshake.mode == "legacy"


# --- calls


@pytest.mark.parametrize("mode", ["normal", "slow", "floods-stderr", "floods-stdout", "ignores-term", "grandchildren"])
async def test_a_call_is_answered_whatever_else_the_server_does(mode: str) -> None:
    async with connected(stdio(mode, delay=0.05)) as connection:
        assert await text(connection, "echo", text="hello") == "hello"
        assert len(await text(connection, "huge", size=16_000_000)) == 16_000_000


async def test_lists_are_paged_to_the_end() -> None:
    async with connected(stdio(page=3, resources=20)) as connection:
        tools = [tool.name for tool in await connection.list_tools()]
        assert len(tools) == len(set(tools)) == len(TOOLS)
        assert len(await connection.list_resources()) == 20
        await text(connection, "set_resource", uri="other://x", text="no window")
        windows = await connection.list_resources()
        assert [window.uri for window in windows] == [f"window://fake/{n}" for n in range(20)]
        assert (await connection.read_resource(windows[3].uri)).contents[0].uri == "window://fake/3"


async def test_what_the_server_refuses_reaches_the_caller() -> None:
    async with connected(stdio()) as connection:
        assert (await connection.call_tool("fail")).is_error
        with pytest.raises(ToolExecutionError, match="Unknown tool") as failed:
            await connection.call_tool("nope")
        assert failed.value.details == {"server_name": "fake", "mcp_code": -32602}
        with pytest.raises(MCPError) as missing:
            await connection.read_resource("window://fake/nope")
        assert missing.value.code == -32002
        await connection.list_tools()
        with pytest.raises(ToolExecutionError, match="Invalid structured content returned by tool broken") as broken:
            await connection.call_tool("broken")
        assert "\n" not in broken.value.message
        assert connection.state is ServerState.RUNNING


async def test_a_timeout_cancels_the_tool() -> None:
    watcher = Watcher()
    async with connected(stdio(), watcher) as connection:
        with pytest.raises(ToolExecutionTimeoutError) as timeout:
            await connection.call_tool("sleep", {"seconds": 60}, timeout=0.1)
        assert timeout.value.timeout == 0.1
        await watcher.said("cancelled sleep")


async def test_a_read_that_takes_too_long_is_408() -> None:
    async with connected(stdio("slow", delay=0.3)) as connection:
        with pytest.raises(RequestTimeoutError):
            await connection.read_resource("window://fake/0", timeout=0.05)


async def test_cancelling_a_caller_cancels_its_tool_and_no_other() -> None:
    watcher = Watcher()
    async with connected(stdio(), watcher) as connection:
        await connection.list_tools()
        cancelled = asyncio.create_task(text(connection, "sleep", seconds=60))
        other = asyncio.create_task(text(connection, "sleep", seconds=0.3))
        await watcher.said("started sleep", 2)
        cancelled.cancel()
        await watcher.said("cancelled sleep")
        assert await other == "slept"
        assert (await stats(connection))["cancelled"] == 1
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        del cancelled, other


async def test_calls_run_concurrently_up_to_the_limit() -> None:
    watcher = Watcher()
    async with connected(stdio(), watcher, max_calls=3) as connection:
        calls = [asyncio.create_task(_error_of(connection.call_tool("sleep", {"seconds": 60}, 0.6))) for _ in range(4)]
        await watcher.said("started sleep", 3)
        await asyncio.wait(calls)
        # The fourth waited for its turn, and that was part of its own time.
        assert all(isinstance(call.result(), ToolExecutionTimeoutError) for call in calls)
        assert (await stats(connection))["called"] <= 5
        calls.clear()


async def test_stopping_cancels_what_runs_before_stdin_closes() -> None:
    watcher = Watcher()
    patient = replace(FAST, stdio=StdioTimings(flush=20, eof=20, terminate=20, kill=20, drain=20))
    async with connected(stdio(), watcher, timings=patient) as connection:
        call = asyncio.create_task(_error_of(connection.call_tool("sleep", {"seconds": 60})))
        await watcher.said("started sleep")
        await connection.disconnect()
        error = await call
        assert isinstance(error, ToolExecutionError)
        assert error.message == "Server fake was stopped"
        del call
    assert watcher.lines.index("cancelling") < watcher.lines.index("eof")


# --- coming back


@pytest.mark.parametrize(
    "anyio_backend", [("asyncio", {}), ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"]
)
async def test_fifty_calls_on_a_killed_server_fail_at_once_and_the_next_call_works() -> None:
    watcher = Watcher()
    async with connected(stdio(), watcher) as connection:
        await connection.list_tools()
        calls = [asyncio.create_task(_error_of(connection.call_tool("sleep", {"seconds": 60}))) for _ in range(50)]
        await watcher.said("started sleep", 50)
        assert connection.pid is not None
        os.kill(connection.pid, signal.SIGKILL)
        with anyio.fail_after(20):
            errors = await asyncio.gather(*calls)
        assert {(type(error), error.code) for error in errors if error} == {(ToolExecutionError, 4003)}
        calls.clear()
        change = await watcher.reached("running", 2)
        assert (await watcher.reached("backing_off")).reason is not None
        assert "killed by SIGKILL" in str((await watcher.reached("backing_off")).reason)
        assert change.restarts == 1
        assert (await stats(connection))["called"] == 1  # nothing was replayed


@pytest.mark.parametrize("mode", ["dies-on-call", "closes-stdout"])
async def test_a_call_that_kills_its_server_is_4003_and_the_server_comes_back(mode: str) -> None:
    watcher = Watcher()
    async with connected(stdio(mode), watcher) as connection:
        with anyio.fail_after(20), pytest.raises(ToolExecutionError) as died:
            await connection.call_tool("echo")
        assert died.value.message == "Server fake ended the connection"
        await watcher.reached("running", 2)


async def test_a_server_that_leaves_children_behind_comes_back_without_them() -> None:
    watcher = Watcher()
    async with connected(stdio("grandchildren", stubborn=1), watcher) as connection:
        await connection.list_tools()
        old = connection.pid
        assert old is not None
        await text(connection, "leave")
        await watcher.reached("running", 2)
        await eventually(lambda: not group_of(old))


async def test_without_auto_reconnect_a_crash_is_the_end() -> None:
    watcher = Watcher()
    async with connected(stdio(), watcher, auto_reconnect=False) as connection:
        with pytest.raises(ToolExecutionError):
            await connection.call_tool("crash", {"code": 9})
        assert "exit code 9" in str((await watcher.reached("failed")).reason)
        await connection.connect()
        assert await text(connection, "echo", text="asked for") == "asked for"


async def test_after_too_many_restarts_in_a_row_it_has_failed() -> None:
    watcher = Watcher()
    async with connected(stdio("dies-on-call"), watcher, max_restarts=2) as connection:
        for life in (1, 2, 3):
            await watcher.reached("running", life)
            with pytest.raises(ToolExecutionError):
                await connection.call_tool("echo")
        change = await watcher.reached("failed")
        assert change.restarts == 2
        assert watcher.states.count("backing_off") == 2


async def test_a_restart_that_fails_is_tried_again(tmp_path: Any) -> None:
    # A server that is there, gone for two starts, and there again.
    script = tmp_path / "server"
    program, arguments = command("normal")
    counter = tmp_path / "starts"
    script.write_text(
        f"""#!/bin/sh
        echo x >> {counter}
        case $(wc -l < {counter}) in 2|3) echo not now >&2; exit 5;; esac
        exec {program} {" ".join(arguments)}
        """
    )
    script.chmod(0o755)
    watcher = Watcher()
    config = {**stdio(protocol="legacy"), "server_parameters": {"command": str(script)}}
    async with connected(config, watcher) as connection:
        with pytest.raises(ToolExecutionError):
            await connection.call_tool("crash")
        assert (await watcher.reached("running", 2)).restarts == 3
    assert [change.reason for change in watcher.changes if change.new is ServerState.BACKING_OFF][1:] == [
        "exit code 5; stderr: not now",
        "exit code 5; stderr: not now",
    ]


async def test_disconnecting_while_backing_off_ends_it_and_connecting_hurries_it() -> None:
    watcher = Watcher()
    patient = Timings(backoff_first=60, stdio=FAST.stdio)
    async with connected(stdio(), watcher, timings=patient) as connection:
        for times in (1, 2):
            with pytest.raises(ToolExecutionError):
                await connection.call_tool("crash")
            await watcher.reached("backing_off", times)
            if times == 1:
                await connection.connect()
        with anyio.fail_after(20):
            await connection.disconnect()
    assert watcher.states[-3:] == ["backing_off", "stopping", "stopped"]


# --- leaving nothing


async def test_forty_lives_leave_nothing() -> None:
    async def lives(count: int) -> None:
        connection = connection_to(stdio())
        for _ in range(count):
            await connection.connect()
            await text(connection, "echo", text="x")
            await connection.disconnect()

    await lives(1)
    with nothing_left_over():
        await asyncio.gather(*(lives(10) for _ in range(4)))


def test_a_loop_that_ends_without_disconnecting_leaves_no_process() -> None:
    watcher = Watcher()
    connection = connection_to(stdio("ignores-term"), watcher)
    asyncio.run(connection.connect())
    assert connection.pid is not None
    assert connection.state is ServerState.STOPPED
    pid = connection.pid
    asyncio.run(eventually(lambda: not group_of(pid)))
    gc.collect()


# --- HTTP

HTTP_KINDS = [("streamable", None), ("streamable", "legacy"), ("sse", None)]


@pytest.mark.parametrize(("kind", "protocol"), HTTP_KINDS)
async def test_http_servers_answer_likewise(http_server: str, kind: str, protocol: str | None) -> None:
    async with connected(http(http_server, kind, protocol)) as connection:
        assert connection.protocol_version == (
            "2026-07-28" if (kind, protocol) == ("streamable", None) else "2025-11-25"
        )
        assert await text(connection, "echo", text="hello") == "hello"
        assert connection.can_subscribe
        assert "window://http/0" in [window.uri for window in await connection.list_resources()]
        if kind == "streamable":
            assert len(await text(connection, "huge", size=3_000_000)) == 3_000_000
        with pytest.raises(MCPError) as missing:
            await connection.read_resource("window://http/nope")
        assert missing.value.code == (-32602 if connection.protocol_version == "2026-07-28" else -32002)


@pytest.mark.parametrize(("kind", "protocol"), HTTP_KINDS)
@pytest.mark.parametrize("how", ["timeout", "cancel", "stop"])
async def test_the_tool_notices_over_http_that_nobody_waits(
    http_server: str, kind: str, protocol: str | None, how: str
) -> None:
    async with connected(http(http_server, kind, protocol)) as witness:
        before = await stats(witness)
        async with opened(http(http_server, kind, protocol)) as connection:
            timeout = 60 if how == "timeout" else None
            call = asyncio.create_task(_error_of(connection.call_tool("sleep", {"seconds": 60}, timeout)))
            await _counted(witness, "started", before["started"])
            match how:
                case "cancel":
                    call.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await call
                case "stop":
                    await connection.disconnect()
                    assert isinstance(await call, ToolExecutionError)
                case "timeout":
                    # Now, and not before the server has the call, as a short one could be.
                    assert connection.session is not None
                    [limit] = connection.session._limits
                    limit.reschedule(asyncio.get_running_loop().time())
                    assert isinstance(await call, ToolExecutionTimeoutError)
            del call
            await _counted(witness, "cancelled", before["cancelled"])


async def _counted(witness: MCPConnection, what: str, before: int) -> None:
    with anyio.fail_after(30):
        while True:
            if (await stats(witness))[what] > before:
                return
            await anyio.sleep(0.02)


@pytest.mark.parametrize(("kind", "protocol"), HTTP_KINDS)
async def test_an_http_server_that_dies_is_noticed_while_idle_and_reconnected(kind: str, protocol: str | None) -> None:
    watcher = Watcher()
    first = start_http_server()
    assert first.stdout is not None
    port = int(first.stdout.readline())
    second = None
    try:
        with nothing_left_over(processes=False):  # the test's own come and go inside
            config, timings = http(f"http://127.0.0.1:{port}", kind, protocol), replace(FAST, idle_probe=10)
            connection = connection_to(config, watcher, max_restarts=1000, timings=timings)
            await connection.connect()
            call = asyncio.create_task(_error_of(connection.call_tool("sleep", {"seconds": 60})))
            await _counted(connection, "started", 0)
            first.kill()
            first.communicate(timeout=10)
            with anyio.fail_after(30):
                error = await call
            assert isinstance(error, ToolExecutionError)
            del call
            await watcher.reached("backing_off")
            second = start_http_server(port)
            assert second.stdout is not None
            second.stdout.readline()
            await watcher.reached("running", 2)
            assert await text(connection, "echo", text="back") == "back"
            await connection.disconnect()
            second.communicate(timeout=20)
    finally:
        for process in (first, second):
            if process is not None:
                process.kill()
                process.communicate(timeout=10)


async def test_an_http_server_that_is_not_there_fails_without_its_url(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    config = http(f"http://user:secret@127.0.0.1:{port}", "streamable")
    connection = connection_to(config)
    with nothing_left_over(), pytest.raises(ToolExecutionError) as failed:
        await connection.connect()
    assert "secret" not in failed.value.message
    assert str(port) not in failed.value.message
    assert "secret" not in caplog.text


async def test_an_http_server_that_refuses_us_says_how(http_server: str) -> None:
    config = http(http_server, "sse")
    config["server_parameters"]["url"] += "/nothing?token=secret"
    connection = connection_to(config)
    with nothing_left_over(), pytest.raises(ToolExecutionError, match="HTTP 404") as failed:
        await connection.connect()
    assert "secret" not in failed.value.message


async def test_an_idle_http_server_is_asked_and_answers(http_server: str) -> None:
    async with connected(http(http_server, "streamable"), timings=Timings()) as witness:
        before = (await stats(witness))["pings"]
        config = http(http_server, "streamable", "legacy")
        # It is also the time that the answer may take.
        async with opened(config, timings=Timings(idle_probe=5)) as connection:
            assert connection.life is not None
            transport = connection.life.transport
            heard_at = transport.heard_at
            await _counted(witness, "pings", before)
            await eventually(lambda: transport.heard_at > heard_at)
            assert connection.state is ServerState.RUNNING


def test_every_state_can_be_left_but_disabled() -> None:
    stuck = [state for state, others in TRANSITIONS.items() if not others]
    assert stuck == [ServerState.DISABLED]
    assert set(TRANSITIONS) == set(ServerState)
