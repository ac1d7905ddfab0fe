"""Requests beside the session: one line out, one line in, and nobody is left waiting."""

import asyncio
import gc
import json
import os
import signal
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from a2c_smcp.computer.mcp_clients.connection import MCPConnection
from a2c_smcp.computer.mcp_clients.lane import Lane
from a2c_smcp.computer.mcp_clients.model import StdioServerConfig
from a2c_smcp.errors import ToolExecutionError, ToolExecutionTimeoutError
from tests.computer.fakes.processes import both_loops, command, nothing_left_over


class Wire:
    """What a lane wrote."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.has_room = asyncio.Event()
        self.has_room.set()
        self.lane = Lane(self._write, lambda: not self.has_room.is_set(), self._flushed)

    def _write(self, text: str) -> None:
        self.lines.append(json.loads(text))

    async def _flushed(self) -> None:
        await self.has_room.wait()

    async def ask(self, **params: Any) -> tuple[int, asyncio.Task[Any]]:
        task = asyncio.ensure_future(self.lane.request("tools/call", params))
        await asyncio.sleep(0)
        return self.lines[-1]["id"], task


async def outcome(task: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(task, 20)


async def test_answers_find_their_requests_whatever_their_order() -> None:
    wire = Wire()
    first, one = await wire.ask(text="1")
    second, two = await wire.ask(text="2")
    assert wire.lines[0] == {"jsonrpc": "2.0", "id": first, "method": "tools/call", "params": {"text": "1"}}
    assert wire.lane.take({"jsonrpc": "2.0", "id": str(second), "result": {"n": 2}})  # some write ids as text
    assert wire.lane.take({"jsonrpc": "2.0", "id": first, "result": {"n": 1}})
    assert (await outcome(one), await outcome(two)) == ({"n": 1}, {"n": 2})
    assert wire.lane._pending == {}


@pytest.mark.parametrize(
    "message",
    [
        {"id": 1, "result": {}},
        {"id": None, "result": {}},
        {"id": True, "result": {}},
        {"id": [2**30], "result": {}},
        {"id": "9" * 5000, "result": {}},
        {"method": "notifications/message"},
        {"id": 2**30, "method": "ping"},
    ],
)
async def test_what_is_the_sessions_is_left_to_it(message: dict[str, Any]) -> None:
    wire = Wire()
    _, task = await wire.ask()
    assert not wire.lane.owns(message)
    assert not wire.lane.take(message)
    task.cancel()


async def test_an_error_is_raised_as_the_server_put_it() -> None:
    wire = Wire()
    request_id, task = await wire.ask()
    wire.lane.take({"id": request_id, "error": {"code": -32602, "message": "no such tool", "data": [1]}})
    with pytest.raises(MCPError, match="no such tool") as caught:
        await outcome(task)
    assert (caught.value.code, caught.value.data) == (-32602, [1])


@pytest.mark.parametrize("error", ["text", {}, {"code": "x", "message": "y"}, None])
async def test_an_error_that_is_none_is_no_answer(error: object) -> None:
    wire = Wire()
    request_id, task = await wire.ask()
    wire.lane.take({"id": request_id, "error": error})
    with pytest.raises(ValidationError):
        await outcome(task)


async def test_cancelling_tells_the_server_and_a_late_answer_is_nobodys() -> None:
    wire = Wire()
    request_id, task = await wire.ask()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    told = wire.lines[-1]
    assert (told["method"], told["params"]["requestId"], "id" in told) == ("notifications/cancelled", request_id, False)
    assert wire.lane.take({"id": request_id, "result": {}})
    assert wire.lane._pending == {}


async def test_closing_takes_back_what_waits_and_refuses_what_comes() -> None:
    wire = Wire()
    request_id, task = await wire.ask()
    wire.lane.close()
    wire.lane.close()
    with pytest.raises(anyio.ClosedResourceError):
        await outcome(task)
    assert [line.get("params", {}).get("requestId") for line in wire.lines] == [None, request_id]
    with pytest.raises(anyio.ClosedResourceError):
        await wire.lane.request("tools/call", {})
    assert len(wire.lines) == 2


@pytest.mark.parametrize("nulls", [{"error": None}, {"method": None}, {"error": None, "method": None, "params": None}])
async def test_an_answer_may_have_every_field_there_is(nulls: dict[str, Any]) -> None:
    wire = Wire()
    request_id, task = await wire.ask()
    assert wire.lane.take({"id": request_id, "result": {"n": 1}, **nulls})
    assert await outcome(task) == {"n": 1}


async def test_what_only_pydantic_can_write_is_written() -> None:
    wire = Wire()
    request_id, task = await wire.ask(path=Path("/x"), n=2**70)
    assert wire.lines[0]["params"] == {"path": "/x", "n": 2**70}
    wire.lane.take({"id": request_id, "result": {}})
    await outcome(task)


async def test_what_cannot_be_written_at_all_leaves_nothing_behind() -> None:
    wire = Wire()
    with pytest.raises(Exception, match="object"):
        await wire.lane.request("tools/call", {"x": object()})
    assert (wire.lines, wire.lane._pending) == ([], {})


async def test_a_call_waits_for_room_and_is_not_sent_once_it_was_given_up() -> None:
    wire = Wire()
    wire.has_room.clear()
    given_up, kept = (asyncio.ensure_future(wire.lane.request("tools/call", {"n": n})) for n in (1, 2))
    await asyncio.sleep(0.01)
    given_up.cancel()
    await asyncio.wait({given_up})
    assert wire.lines == []
    wire.has_room.set()
    await asyncio.sleep(0.01)
    assert [line["params"] for line in wire.lines] == [{"n": 2}]
    wire.lane.take({"id": wire.lines[0]["id"], "result": {}})
    await outcome(kept)
    assert (wire.lane._pending, wire.lane._unwritten) == ({}, set())


async def test_closing_wakes_a_call_that_waits_for_room_and_does_not_take_back_what_was_not_sent() -> None:
    wire = Wire()
    wire.has_room.clear()
    task = asyncio.ensure_future(wire.lane.request("tools/call", {}))
    await asyncio.sleep(0.01)
    wire.lane.close()
    with pytest.raises(anyio.ClosedResourceError):
        await outcome(task)
    assert wire.lines == []


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("first", ["cancel", "close"])
async def test_a_call_that_is_cancelled_while_the_lane_closes_makes_no_noise(first: str, blocked: bool) -> None:
    noise: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
    wire = Wire()
    if blocked:
        wire.has_room.clear()
    task = asyncio.ensure_future(wire.lane.request("tools/call", {}))
    await asyncio.sleep(0.01)
    for act in (task.cancel, wire.lane.close) if first == "cancel" else (wire.lane.close, task.cancel):
        act()
    await asyncio.wait({task})
    assert task.cancelled() or isinstance(task.exception(), anyio.ClosedResourceError)
    del task, wire
    gc.collect()
    await asyncio.sleep(0)
    assert noise == []


# --- over a real pipe


def connection(era: str, changes: list[Any], resources: int = 1) -> MCPConnection:
    program, arguments = command("normal", era=era, resources=resources)
    config = StdioServerConfig.model_validate(
        {"name": "a", "type": "stdio", "server_parameters": {"command": program, "args": arguments}}
    )
    return MCPConnection(config, on_change=changes.append)


@pytest.mark.parametrize(("era", "version"), [("legacy", "2025-11-25"), ("modern", "2026-07-28")])
async def test_what_a_tool_changes_is_announced_before_its_result_is_here(era: str, version: str) -> None:
    changes: list[Any] = []
    with nothing_left_over():
        server = connection(era, changes)
        await server.connect()
        assert server.protocol_version == version
        try:
            for number in range(50):
                changes.clear()
                await server.call_tool("set_resource", {"uri": f"window://fake/new{number}", "text": "x"})
                assert changes, f"call {number} overtook its announcement"
        finally:
            await server.disconnect()


@both_loops
@pytest.mark.parametrize("lines", [10, 100, 3000])
async def test_a_tool_that_says_much_before_its_answer_is_heard_and_so_is_the_next(lines: int) -> None:
    with nothing_left_over():
        server = connection("legacy", [])
        await server.connect()
        try:
            for _ in range(3):
                calls = [server.call_tool("chatter", {"lines": lines}, 20) for _ in range(3)]
                assert not any(result.is_error for result in await asyncio.gather(*calls))
            assert await server.list_tools()
        finally:
            await server.disconnect()


async def test_a_tool_may_want_to_be_asked_twice_but_nobody_answers_its_own_questions() -> None:
    with nothing_left_over():
        server = connection("modern", [])
        await server.connect()
        try:
            assert text(await server.call_tool("twice")) == "asked once before"
            with pytest.raises(ToolExecutionError, match="asks for input"):
                await server.call_tool("asks")
            assert text(await server.call_tool("echo", {"text": "still here"})) == "still here"
        finally:
            await server.disconnect()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_resources_are_read_side_by_side(era: str) -> None:
    with nothing_left_over():
        server = connection(era, [], resources=30)
        await server.connect()
        try:
            uris = [f"window://fake/{number}" for number in range(30)]
            results = await asyncio.gather(*(server.read_resource(uri) for uri in uris))
            assert [result.contents[0].uri for result in results] == uris
            with pytest.raises(MCPError):
                await server.read_resource("window://fake/none")
        finally:
            await server.disconnect()


async def test_a_server_that_does_not_read_does_not_run_later_what_was_given_up() -> None:
    with nothing_left_over():
        server = connection("legacy", [])
        await server.connect()
        assert server.pid is not None
        try:
            before = json.loads(text(await server.call_tool("stats")))["called"]
            os.kill(server.pid, signal.SIGSTOP)
            calls = [server.call_tool("echo", {"text": "x" * 500_000}, 0.3) for _ in range(20)]
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(result, ToolExecutionTimeoutError) for result in results)
            os.kill(server.pid, signal.SIGCONT)
            after = json.loads(text(await server.call_tool("stats", None, 20)))["called"]
            assert after - before <= 2  # the one that was in the pipe, and this one
        finally:
            os.kill(server.pid, signal.SIGCONT)
            await server.disconnect()


def text(result: CallToolResult) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


async def test_many_calls_and_large_ones_at_once() -> None:
    with nothing_left_over():
        server = connection("legacy", [])
        await server.connect()
        try:
            texts = [str(number) * (1 if number % 9 else 200_000) for number in range(1, 100)]
            results = await asyncio.gather(*(server.call_tool("echo", {"text": each}) for each in texts))
            assert [text(result) for result in results] == texts
        finally:
            await server.disconnect()
