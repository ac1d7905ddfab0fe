"""The requests of a session over pipes: one line out, one line in, in order, and no caller is left waiting."""

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, METHOD_NOT_FOUND, REQUEST_TIMEOUT, CallToolResult, TextContent

from a2c_smcp.computer.mcp_clients.change_feed import ChangeFeedTimings
from a2c_smcp.computer.mcp_clients.connection_options import ConnectionHooks, ConnectionOptions, Timings
from a2c_smcp.computer.mcp_clients.dispatching import CallOptions, OnReport
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.mcp_error import InvalidAnswerError, MCPError
from a2c_smcp.computer.mcp_clients.model import StdioServerConfig
from a2c_smcp.computer.mcp_clients.pipes.dispatcher import PipeDispatcher
from a2c_smcp.computer.mcp_clients.pipes.server_initiated import Pipe
from a2c_smcp.computer.mcp_clients.probe import ProbeTimeouts
from a2c_smcp.errors import ToolExecutionError, ToolExecutionTimeoutError
from tests.computer.fakes.processes import both_loops, command, nothing_left_over


class Wire:
    """What a dispatcher wrote, and whether it wants to read."""

    def __init__(self, screen: Callable[[str, dict[str, Any]], dict[str, Any]] | None = None) -> None:
        self.lines: list[dict[str, Any]] = []
        self.has_room = asyncio.Event()
        self.has_room.set()
        self._reads = False
        self.dispatcher = PipeDispatcher(
            Pipe(
                write=self._write,
                is_full=lambda: not self.has_room.is_set(),
                flushed=self._flushed,
                pause=lambda: self._read(False),
                resume=lambda: self._read(True),
            ),
            screen,
        )
        self.take = self.dispatcher.take

    def _write(self, text: bytes) -> None:
        self.lines.append(json.loads(text))

    async def _flushed(self) -> None:
        await self.has_room.wait()

    def _read(self, on: bool) -> None:
        self._reads = on

    def reads(self) -> bool:
        """Whether what the server says is wanted now."""
        return self._reads

    async def ask(
        self, opts: CallOptions | None = None, on_report: OnReport | None = None, **params: Any
    ) -> tuple[Any, asyncio.Task[Any]]:
        task = asyncio.ensure_future(self.dispatcher.send_raw_request("tools/call", params, opts, on_report))
        await asyncio.sleep(0)
        return self.lines[-1]["id"], task

    @property
    def taken_back(self) -> list[Any]:
        return [line["params"]["requestId"] for line in self.lines if line.get("method") == "notifications/cancelled"]


async def settled() -> None:
    """Turns of the loop, not time: a busy machine changes nothing."""
    for _ in range(20):
        await asyncio.sleep(0)


async def outcome(task: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(task, 20)


async def test_answers_find_their_requests_whatever_their_order() -> None:
    wire = Wire()
    first, one = await wire.ask(text="1")
    second, two = await wire.ask(text="2")
    assert wire.lines[0] == {"jsonrpc": "2.0", "id": first, "method": "tools/call", "params": {"text": "1"}}
    assert 2**30 <= first < second < 2**31
    wire.take({"jsonrpc": "2.0", "id": str(second), "result": {"n": 2}})  # some write ids as text
    wire.take({"jsonrpc": "2.0", "id": first, "result": {"n": 1}})
    assert (await outcome(one), await outcome(two)) == ({"n": 1}, {"n": 2})
    assert len(wire.dispatcher._asks) == 0


@pytest.mark.parametrize(
    "message",
    [
        {"id": 1, "result": {}},
        {"id": None, "result": {}},
        {"id": True, "result": {}},
        {"id": [2**30], "result": {}},
        {"id": "9" * 5000, "result": {}},
        {"id": 2**30},
        {"method": "notifications/message"},
        {"method": ["notifications/message"], "id": 2**30, "result": {}},
        {"method": "notifications/message", "params": [1]},
        {"id": 2**30, "method": "ping"},
        {"id": {}, "method": "ping"},
    ],
)
async def test_what_is_no_answer_answers_nothing(message: dict[str, Any]) -> None:
    wire = Wire()
    async with handled(wire):
        request_id, task = await wire.ask()
        assert request_id == 2**30
        wire.take(message)
        await settled()
        assert not task.done()
        wire.take({"id": request_id, "result": {}})
        await outcome(task)


async def test_a_caller_that_is_cancelled_when_the_connection_closes_is_cancelled() -> None:
    wire = Wire()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.dispatcher.send_raw_request, "tools/call", {})
        await settled()
        wire.dispatcher.close()
        tasks.cancel_scope.cancel()
    assert tasks.cancel_scope.cancelled_caught


async def test_an_error_is_raised_as_the_server_put_it() -> None:
    wire = Wire()
    request_id, task = await wire.ask()
    wire.take({"id": request_id, "error": {"code": -32602, "message": "no such tool", "data": [1]}})
    with pytest.raises(MCPError, match="no such tool") as caught:
        await outcome(task)
    assert (caught.value.code, caught.value.data) == (-32602, [1])


@pytest.mark.parametrize(
    "answer",
    [
        {"error": "text"},
        {"error": {}},
        {"error": {"code": "x", "message": "y"}},
        {"error": None},
        {"result": None},
        {"result": []},
        {"result": "text"},
    ],
)
async def test_an_answer_that_is_none_fails_the_request(answer: dict[str, Any]) -> None:
    wire = Wire()
    request_id, task = await wire.ask()
    wire.take({"id": request_id, **answer})
    with pytest.raises(InvalidAnswerError):
        await outcome(task)


async def test_cancelling_tells_the_server_and_a_late_answer_is_skipped() -> None:
    wire = Wire()
    request_id, task = await wire.ask()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    told = wire.lines[-1]
    assert (told["method"], told["params"]["requestId"], "id" in told) == ("notifications/cancelled", request_id, False)
    wire.take({"id": request_id, "result": {}})
    assert len(wire.dispatcher._asks) == 0


async def test_a_request_that_was_answered_is_not_taken_back() -> None:
    wire = Wire()
    request_id, task = await wire.ask()
    wire.take({"id": request_id, "result": {}})
    task.cancel()
    await asyncio.wait({task})
    assert wire.taken_back == []


async def test_the_time_of_a_request_ends_and_the_server_is_told() -> None:
    wire = Wire()
    request_id, task = await wire.ask({"timeout": 0.05})
    with pytest.raises(MCPError) as caught:
        await outcome(task)
    assert (caught.value.code, wire.taken_back) == (REQUEST_TIMEOUT, [request_id])


@pytest.mark.parametrize("how", ["timeout", "cancel", "close"])
async def test_a_handshake_is_given_up_in_silence(how: str) -> None:
    wire = Wire()
    opts: CallOptions = {"cancel_on_abandon": False}
    _, task = await wire.ask({**opts, "timeout": 0.05} if how == "timeout" else opts)
    if how == "cancel":
        task.cancel()
    elif how == "close":
        wire.dispatcher.close()
    with pytest.raises((MCPError, asyncio.CancelledError)):
        await outcome(task)
    assert wire.taken_back == []


async def test_a_caller_may_choose_an_id_that_is_free() -> None:
    wire = Wire()
    chosen, one = await wire.ask({"request_id": "listen-1"})
    assert chosen == "listen-1"
    with pytest.raises(ValueError, match="listen-1"):
        await wire.dispatcher.send_raw_request("x", None, {"request_id": "listen-1"})
    one.cancel()
    await asyncio.wait({one})
    assert wire.taken_back == ["listen-1"]


async def test_a_caller_that_was_answered_and_is_cancelled_leaves_the_next_request_with_its_id_alone() -> None:
    wire = Wire()
    _, one = await wire.ask({"request_id": "listen-1"})
    two = asyncio.ensure_future(wire.dispatcher.send_raw_request("tools/call", {}, {"request_id": "listen-1"}))
    wire.take({"id": "listen-1", "result": {}})  # `two` has not begun yet: it does before `one` is woken
    one.cancel()
    await settled()
    assert (one.cancelled(), wire.taken_back) == (True, [])
    wire.take({"id": "listen-1", "result": {"n": 2}})
    assert await outcome(two) == {"n": 2}


async def test_an_id_that_looks_like_a_number_goes_out_as_it_was_chosen() -> None:
    wire = Wire()
    chosen, one = await wire.ask({"request_id": "7"})
    assert (chosen, wire.dispatcher.unanswered) == ("7", ["7"])
    wire.take({"id": 7, "result": {}})
    assert await outcome(one) == {}
    _, two = await wire.ask({"request_id": "8"})
    wire.dispatcher.close()
    with pytest.raises(MCPError):
        await outcome(two)
    assert wire.taken_back == ["8"]


async def test_what_was_not_sent_is_not_unanswered() -> None:
    wire = Wire()
    sent, one = await wire.ask()
    wire.has_room.clear()
    two = asyncio.ensure_future(wire.dispatcher.send_raw_request("tools/call", {}))
    await settled()
    assert wire.dispatcher.unanswered == [sent]
    wire.take({"id": sent, "result": {}})
    assert wire.dispatcher.unanswered == []
    await outcome(one)
    two.cancel()


async def test_a_result_is_screened_before_anybody_sees_it() -> None:
    wire = Wire(lambda method, result: {"method": method, **result})
    request_id, task = await wire.ask()
    wire.take({"id": request_id, "result": {"n": 1}})
    assert await outcome(task) == {"method": "tools/call", "n": 1}


async def test_closing_takes_back_what_waits_and_refuses_what_comes() -> None:
    wire = Wire()
    request_id, task = await wire.ask()
    wire.dispatcher.close()
    wire.dispatcher.close()
    with pytest.raises(MCPError) as caught:
        await outcome(task)
    assert caught.value.code == CONNECTION_CLOSED
    assert [line.get("params", {}).get("requestId") for line in wire.lines] == [None, request_id]
    with pytest.raises(MCPError) as caught:
        await wire.dispatcher.send_raw_request("tools/call", {})
    assert caught.value.code == CONNECTION_CLOSED
    await wire.dispatcher.notify("notifications/initialized", None)
    assert len(wire.lines) == 2


@pytest.mark.parametrize("nulls", [{"error": None}, {"method": None}, {"error": None, "method": None, "params": None}])
async def test_an_answer_may_have_every_field_there_is(nulls: dict[str, Any]) -> None:
    wire = Wire()
    request_id, task = await wire.ask()
    wire.take({"id": request_id, "result": {"n": 1}, **nulls})
    assert await outcome(task) == {"n": 1}


async def test_what_only_pydantic_can_write_is_written() -> None:
    wire = Wire()
    request_id, task = await wire.ask(path=Path("/x"), n=2**70)
    assert wire.lines[0]["params"] == {"path": "/x", "n": 2**70}
    wire.take({"id": request_id, "result": {}})
    await outcome(task)


async def test_what_cannot_be_written_at_all_leaves_nothing_behind() -> None:
    wire = Wire()
    with pytest.raises(Exception, match="object"):
        await wire.dispatcher.send_raw_request("tools/call", {"x": object()})
    assert (wire.lines, len(wire.dispatcher._asks)) == ([], 0)


async def test_a_call_waits_for_room_and_is_not_sent_once_it_was_given_up() -> None:
    wire = Wire()
    wire.has_room.clear()
    send = wire.dispatcher.send_raw_request
    given_up, kept = (asyncio.ensure_future(send("tools/call", {"n": n})) for n in (1, 2))
    await settled()
    given_up.cancel()
    await asyncio.wait({given_up})
    assert wire.lines == []
    wire.has_room.set()
    await settled()
    assert [line["params"] for line in wire.lines] == [{"n": 2}]
    wire.take({"id": wire.lines[0]["id"], "result": {}})
    await outcome(kept)
    assert len(wire.dispatcher._asks) == 0


async def test_closing_wakes_a_call_that_waits_for_room_and_does_not_take_back_what_was_not_sent() -> None:
    wire = Wire()
    wire.has_room.clear()
    task = asyncio.ensure_future(wire.dispatcher.send_raw_request("tools/call", {}))
    await settled()
    wire.dispatcher.close()
    with pytest.raises(MCPError):
        await outcome(task)
    assert wire.lines == []


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("first", ["cancel", "close"])
async def test_a_call_that_is_cancelled_while_the_session_closes_makes_no_noise(first: str, blocked: bool) -> None:
    noise: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
    wire = Wire()
    if blocked:
        wire.has_room.clear()
    task = asyncio.ensure_future(wire.dispatcher.send_raw_request("tools/call", {}))
    await settled()
    close = wire.dispatcher.close
    for act in (task.cancel, close) if first == "cancel" else (close, task.cancel):
        act()
    await asyncio.wait({task})
    assert task.cancelled() or isinstance(task.exception(), MCPError)
    assert len(wire.taken_back) == (0 if blocked else 1)
    del task, wire
    gc.collect()
    await asyncio.sleep(0)
    assert noise == []


# --- what the server says by itself


class Handlers:
    """Answers `echo` with its parameters, waits for ever on `wait`, fails on `fail`, and remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.cancelled: list[Any] = []

    async def on_request(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        match method:
            case "echo":
                return dict(params or {})
            case "wait":
                try:
                    await anyio.sleep_forever()
                finally:
                    self.cancelled.append((params or {}).get("n"))
            case "fail":
                raise LookupError("a secret")
        raise MCPError(METHOD_NOT_FOUND, "Method not found")

    def on_notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        self.told.append(method)
        if method == "fail":
            raise LookupError


@asynccontextmanager
async def handled(wire: Wire) -> AsyncIterator[Handlers]:
    handlers = Handlers()
    async with anyio.create_task_group() as tasks:
        await tasks.start(wire.dispatcher.run, handlers.on_request, handlers.on_notify)
        yield handlers
        tasks.cancel_scope.cancel()


async def test_nothing_is_read_before_there_is_a_session_and_nothing_is_handled_after_it() -> None:
    wire = Wire()
    assert not wire.reads()
    async with handled(wire) as handlers:
        assert wire.reads()
        wire.dispatcher.close()
        wire.take({"method": "a"})
        wire.take({"id": 1, "method": "echo"})
        await settled()
    assert (handlers.told, wire.lines) == ([], [])


@both_loops
async def test_an_announcement_is_handled_before_the_caller_sees_the_answer_after_it() -> None:
    wire = Wire()
    async with handled(wire) as handlers:

        async def call(number: int) -> None:
            await wire.dispatcher.send_raw_request("tools/call", {})
            handlers.told.append(number)

        for number in range(100):
            task = asyncio.ensure_future(call(number))
            await settled()
            for part in "ab":
                wire.take({"method": f"{part}{number}"})
            wire.take({"id": wire.lines[-1]["id"], "result": {}})
            await outcome(task)
    assert handlers.told == [each for number in range(100) for each in (f"a{number}", f"b{number}", number)]


async def test_a_handler_that_fails_costs_nothing_but_its_message(caplog: pytest.LogCaptureFixture) -> None:
    wire = Wire()
    async with handled(wire) as handlers:
        for method in ("fail", "b"):
            wire.take({"method": method})
        wire.take({"id": 0, "method": "fail"})
        wire.take({"id": "1", "method": "echo", "params": {"n": 1}})
        await settled()
        assert handlers.told == ["fail", "b"]
    assert [line["error"]["message"] for line in wire.lines if "error" in line] == ["Internal error"]
    assert wire.lines[-1] == {"jsonrpc": "2.0", "id": "1", "result": {"n": 1}}
    assert "LookupError" in caplog.text


async def test_a_request_of_the_server_is_refused_as_its_handler_says() -> None:
    wire = Wire()
    async with handled(wire):
        wire.take({"id": 7, "method": "roots/list"})
        await settled()
    error = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
    assert wire.lines == [{"jsonrpc": "2.0", "id": 7, "error": error}]


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_request_that_the_server_takes_back_is_cancelled_and_not_answered(at_once: bool) -> None:
    wire = Wire()
    async with handled(wire) as handlers:
        wire.take({"id": 7, "method": "wait", "params": {"n": 7}})
        if not at_once:
            await settled()
        wire.take({"method": "notifications/cancelled", "params": {"requestId": 7}})
        wire.take({"id": 8, "method": "echo"})
        await settled()
        assert handlers.cancelled == [7]
    assert [line["id"] for line in wire.lines] == [8]


async def test_a_request_with_the_id_of_one_under_way_is_refused_and_leaves_that_one_alone() -> None:
    wire = Wire()
    async with handled(wire) as handlers:
        wire.take({"id": 7, "method": "wait", "params": {"n": 7}})
        wire.take({"id": "7", "method": "echo"})
        await settled()
        assert [(line["id"], line["error"]["code"]) for line in wire.lines] == [("7", INVALID_REQUEST)]
        wire.take({"method": "notifications/cancelled", "params": {"requestId": 7}})
        wire.take({"id": 7, "method": "echo", "params": {"n": 1}})
        await settled()
        assert (handlers.cancelled, wire.lines[1:]) == ([7], [{"jsonrpc": "2.0", "id": 7, "result": {"n": 1}}])


async def test_a_flood_of_announcements_stops_the_reading_for_a_turn_of_the_loop() -> None:
    wire = Wire()
    async with handled(wire) as handlers:
        for _ in range(63):
            wire.take({"method": "a"})
        assert wire.reads()
        wire.take({"method": "a"})
        assert (len(handlers.told), wire.reads()) == (64, False)
        await settled()
        assert wire.reads()


async def test_a_server_that_asks_and_does_not_read_the_answers_is_not_read_either() -> None:
    wire = Wire()
    async with handled(wire):
        wire.has_room.clear()
        for number in range(100):
            wire.take({"id": number, "method": "echo"})
        await settled()
        assert (wire.lines, wire.reads()) == ([], False)
        wire.has_room.set()
        await settled()
        assert ([line["id"] for line in wire.lines], wire.reads()) == (list(range(100)), True)


async def test_what_it_tells_meanwhile_does_not_have_such_a_server_read_again() -> None:
    wire = Wire()
    async with handled(wire) as handlers:
        wire.has_room.clear()
        for number in range(100):
            wire.take({"id": number, "method": "echo"})
        wire.take({"method": "a"})
        await settled()
        assert (handlers.told, wire.lines, wire.reads()) == (["a"], [], False)
        wire.has_room.set()
        await settled()
        assert wire.reads()


async def test_progress_reaches_the_call_that_it_is_of_in_order_before_its_result() -> None:
    wire = Wire()
    heard: list[Any] = []

    def report(token: Any, progress: Any, **more: Any) -> None:
        wire.take(
            {"method": "notifications/progress", "params": {"progressToken": token, "progress": progress, **more}}
        )

    async with handled(wire):
        request_id, task = await wire.ask(on_report=lambda *report: heard.append(report), _meta={"a": 1})
        other, without = await wire.ask()
        assert wire.lines[0]["params"]["_meta"] == {"a": 1, "progressToken": request_id}
        task.add_done_callback(lambda _: heard.append("done"))
        others: list[Any] = [1, other, None, True, [request_id], {}]
        for token in others:
            report(token, 1)
        for progress in ("1", None, True, 10**400):
            report(request_id, progress)
        for step in range(200):
            report(request_id if step % 2 else str(request_id), step, total=200, message=f"step {step}")
        report(request_id, 200, total="many", message=5)
        wire.take({"id": request_id, "result": {}})
        report(request_id, 999)
        await outcome(task)
        await settled()
        without.cancel()
    assert heard == [*((step, 200, f"step {step}") for step in range(200)), (200, None, None), "done"]


async def test_a_report_that_needs_no_task_is_heard_while_it_is_read() -> None:
    wire = Wire()
    heard: list[Any] = []
    async with handled(wire) as handlers:
        send = wire.dispatcher.send_raw_request("x", {}, on_report=lambda *report: heard.append(report))
        task = asyncio.create_task(send)
        await settled()
        request_id = wire.lines[0]["params"]["_meta"]["progressToken"]
        for step in range(1000):
            wire.take({"method": "notifications/progress", "params": {"progressToken": request_id, "progress": step}})
        assert heard == [(step, None, None) for step in range(1000)]
        assert wire.reads()
        wire.take({"id": request_id, "result": {}})
        wire.take({"method": "notifications/progress", "params": {"progressToken": request_id, "progress": 1000}})
        await outcome(task)
        assert handlers.told == []
    assert len(heard) == 1000


# --- over a real pipe


def connection(era: str, changes: list[Any], resources: int = 1) -> MCPConnection:
    program, arguments = command("normal", era=era, resources=resources)
    config = StdioServerConfig.model_validate(
        {"name": "a", "type": "stdio", "server_parameters": {"command": program, "args": arguments}}
    )
    # A listen stream that is acknowledged later is opened again, and hears nothing meanwhile.
    options = ConnectionOptions(timings=Timings(feed=ChangeFeedTimings(answer=30)))
    return MCPConnection(config, options, ConnectionHooks(on_change=changes.append))


@both_loops
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
                calls = [server.call_tool("chatter", {"lines": lines}, 60) for _ in range(3)]
                assert not any(result.is_error for result in await asyncio.gather(*calls))
            assert await server.list_tools()
        finally:
            await server.disconnect()


@pytest.mark.parametrize("answer", ['"error": "what?"', '"result": null', '"result": [1]'])
async def test_a_server_that_answers_the_probe_with_nonsense_gets_the_old_handshake_at_once(answer: str) -> None:
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
    program = f"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": {info}}}), flush=True)
    elif "id" in message:
        print('{{"jsonrpc": "2.0", "id": %d, {answer}}}' % message["id"], flush=True)
"""
    parameters = {"command": sys.executable, "args": ["-S", "-c", program]}
    config = StdioServerConfig.model_validate({"name": "a", "type": "stdio", "server_parameters": parameters})
    with nothing_left_over():
        timings = Timings(probe=ProbeTimeouts(probe=600, handshake=600))
        server = MCPConnection(config, ConnectionOptions(timings=timings))
        await asyncio.wait_for(server.connect(), 60)
        try:
            assert server.protocol_version == "2025-06-18"
            with pytest.raises(ToolExecutionError, match="tool x answered with something that is not an MCP result"):
                await server.call_tool("x", {}, 60)
        finally:
            await server.disconnect()


async def test_a_tool_may_want_to_be_asked_twice_but_nobody_answers_its_own_questions() -> None:
    with nothing_left_over():
        server = connection("modern", [])
        await server.connect()
        try:
            assert text(await server.call_tool("twice")) == "asked once before"
            with pytest.raises(ToolExecutionError, match="asked 10 times"):
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


async def test_a_line_break_in_a_call_puts_no_second_request_on_the_wire() -> None:
    smuggled = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "crash"}})
    with nothing_left_over():
        server = connection("legacy", [])
        await server.connect()
        try:
            for end in ("\n", "\r\n", "\r", "\u2028", "\u0085", "\x00", '"}}\n', "\\n", "\ud800\n"):
                sent = f"x{end}{smuggled}{end}"
                before = json.loads(text(await server.call_tool("stats")))["called"]
                got = text(
                    await server.call_ongoing("echo", {"text": sent, f"a{end}{smuggled}{end}": 1}, meta={end: sent})
                )
                assert got == sent.replace("\ud800", "\ufffd")
                with pytest.raises(ToolExecutionError):
                    await server.call_ongoing(f"none{end}{smuggled}{end}", {})
                after = json.loads(text(await server.call_tool("stats")))["called"]
                assert after - before <= 3  # `echo`, perhaps the tool without a name, and `stats`
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


def text(result: CallToolResult | None) -> str:
    assert result is not None
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
