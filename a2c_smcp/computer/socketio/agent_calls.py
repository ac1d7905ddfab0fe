"""The tool calls of an office's agent: each request runs once, and its reply is kept for repeats.

Knows requests, replies and cancels. The Computer runs the calls.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from mcp_types import CallToolResult

from a2c_smcp.computer.asker import ASKER
from a2c_smcp.computer.calls.memory import CallKey, CallMemory, Finished, Running
from a2c_smcp.computer.calls.progress import PROGRESS_SECONDS
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.callers import CALLER
from a2c_smcp.computer.redaction import discreet_error
from a2c_smcp.computer.socketio.agent_questions import AgentQuestions
from a2c_smcp.computer.socketio.dialect_answers import DialectAnswers
from a2c_smcp.errors import BadRequestError, InternalError, PayloadTooLargeError, SMCPError
from a2c_smcp.link.connection import ANSWERED_ON, Connection
from a2c_smcp.results import ERROR_CODE_MARKER, cancelled_result, error_result, to_wire
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_NOTIFICATION,
    TOOL_PROGRESS_EVENT,
    AgentCallData,
    ToolCallReq,
    ToolProgress,
)
from a2c_smcp.tracing.switch import TRACING
from a2c_smcp.utils.json_sizes import weight
from a2c_smcp.utils.latest import LatestOnly
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.text import in_log, on_one_line, req_id_in_log
from a2c_smcp.wire import Encoded, checked_size, codec, parse, size_of

__all__ = ["AgentCalls"]

logger = logging.getLogger(__name__)

#: All agents have one name in the limited log, because an agent may give itself many names.
_AGENTS: Final = "what agents asked for"
#: About how many bytes of memory the `meta` of a call may need.
_LARGEST_META: Final = 256 * 1024


class _Call:
    """A tool call. It runs in the task of its first request; repeats of that request wait for its `reply`."""

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task = task
        self.is_cancelled = False
        self._runs = True
        self._replied: asyncio.Future[Encoded | None] | None = None

    def cancel(self) -> None:
        """Make `result` return the result of a cancelled call, unless the call has ended."""
        if self._runs and not self.is_cancelled:
            self.is_cancelled = True
            self.task.cancel()

    async def result(self, running: Awaitable[CallToolResult]) -> CallToolResult:
        # Not under a cancel scope: that takes a tenth of the time of a small call.
        try:
            return await running
        except asyncio.CancelledError:
            if not self.is_cancelled or self.task.uncancel():
                raise  # the client disconnects
            return cancelled_result()
        finally:
            self._runs = False

    async def reply(self) -> Encoded:
        """The reply, for a repeat of the request. A repeat may stop waiting without harm to the others."""
        if self._replied is None:
            self._replied = asyncio.get_running_loop().create_future()
        reply = await asyncio.shield(self._replied)
        if reply is None:
            raise InternalError("the call was broken off, and this request repeats it")
        return reply

    def end(self, reply: Encoded | None) -> None:
        if self._replied is not None:
            self._replied.set_result(reply)


class AgentCalls:
    """Answers requests for tool calls. `check` returns the received request, or raises if it is invalid. `send`
    sends the reports of a call's progress, `request` the questions of its tool, both over the call's own connection.
    `dialect` knows how the agent wants its results; `max_message` returns how large one may be.
    """

    def __init__(
        self,
        computer: Computer,
        check: Callable[[Any], ToolCallReq],
        send: Callable[[str, Any, Connection | None], Awaitable[None]],
        request: Callable[[str, Any, float, Connection | None], Awaitable[tuple[Any, ...]]],
        max_message: Callable[[], int],
        dialect: DialectAnswers,
    ) -> None:
        self.questions = AgentQuestions(computer.decisions, request, lambda: self.office)
        self._computer = computer
        self._check = check
        self._send = send
        self._max_message = max_message
        self._dialect = dialect
        self.office = ""
        """The office that the Computer is in, or joins now."""
        self._memory: CallMemory[_Call, Encoded] = CallMemory()
        self._refusals = LimitedLog(logger, per_second=20)

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        """The tasks of the calls that run."""
        return [call.task for call in self._memory.all_running()]

    def cancel_all(self, office: str) -> None:
        """Cancel the calls from an office that the Computer has left. Their agent knows that the Computer has gone."""
        for call in self._memory.all_running(office):
            call.cancel()

    async def cancel(self, data: Any) -> None:
        """Take the notification that an agent has cancelled its call."""
        request: AgentCallData = parse(CANCEL_TOOL_CALL_NOTIFICATION, data)
        for call in self._memory.running(self.office, request["agent"], request["req_id"]):
            call.cancel()

    async def answer(self, data: Any) -> Any:
        """The reply to a request, or the payload of the error that it ends with."""
        try:
            return await self._result(self._check(data), data)
        except SMCPError as error:
            self._refusals.warn(_AGENTS, "refused tool call %s: %s", req_id_in_log(data), on_one_line(error))
            return discreet_error(error).tool_call_payload()
        except Exception:
            # A boundary, like the one in `OfficeLink`. It is here because a failed tool call has a shape of its own.
            self._refusals.exception(_AGENTS, "failed to handle tool call %s", req_id_in_log(data))
            return InternalError("this computer failed to handle the call; its log says why").tool_call_payload()

    async def _result(self, request: ToolCallReq, received: dict[str, Any]) -> Encoded:
        _check_names(request)
        asker = ASKER.get()
        key = CallKey(asker.office, asker.name, asker.bound, asker.own_id, request["req_id"])
        call = _Call()
        match self._memory.admit(key, request["tool_name"], request["params"], call, _now()):
            case Finished(result=reply):
                return reply
            case Running(entry=running):
                # The repeat may wait as long as the call runs. It need not keep its params: the first request has them.
                received["params"], request["params"] = None, {}
                return await running.reply()
            case _:
                return await self._run(key, request, call)

    async def _run(self, key: CallKey, request: ToolCallReq, call: _Call) -> Encoded:
        """Run a call in this task. It goes on if the connection is lost: a repeat gets the result."""
        connection = ANSWERED_ON.get()
        if (caller := self.questions.caller(key, request, connection)) is not None:
            CALLER.set(caller)
        reply, progress = None, None
        if request.get("progress"):
            progress = LatestOnly(partial(self._send_progress, key, request, connection), PROGRESS_SECONDS)
        try:
            result = await call.result(
                self._computer.execute_tool(
                    key.req_id,
                    request["tool_name"],
                    request["params"],
                    self._dialect.seconds(request["timeout"]),
                    progress.put if progress is not None else None,
                    meta=request.get("meta"),
                    approval_timeout=request.get("approval_timeout"),
                )
            )
            if progress is not None:
                await progress.end()
            if result.is_error and (spans := TRACING.spans) is not None:
                spans.tool_failed((result.meta or {}).get(ERROR_CODE_MARKER))
            reply, size = self._encode(key, result)
            self._memory.finish(key, reply, size, _now())
            return reply
        finally:
            if reply is None:
                self._memory.forget(key)
            if progress is not None:
                progress.stop()
            call.end(reply)

    async def _send_progress(
        self,
        key: CallKey,
        request: ToolCallReq,
        connection: Connection | None,
        progress: float,
        total: float | None,
        message: str | None,
    ) -> None:
        if key.office != self.office:
            return  # in the new office, another agent's call may have these ids
        report: ToolProgress = {
            "computer": request["computer"],
            "agent": request["agent"],
            "req_id": request["req_id"],
            "progress": progress,
        }
        if total is not None:
            report["total"] = total
        if message is not None:
            report["message"] = message
        await self._send(TOOL_PROGRESS_EVENT, report, connection)

    def _encode(self, key: CallKey, result: CallToolResult) -> tuple[Encoded, int]:
        """The encoded result and its size. An error takes the place of a result that is too large to send."""
        text = codec.dumps(self._dialect.shaped(to_wire(result)))
        try:
            size = checked_size("the result", text, self._max_message())
        except PayloadTooLargeError as error:
            self._refusals.warn(_AGENTS, "tool call %s: %s", in_log(key.req_id), error)
            text = codec.dumps(to_wire(error_result(error)))
            size = size_of(text)
        return Encoded(text), size


def _check_names(request: ToolCallReq) -> None:
    """Raise if a name of the call is too long: the computer keeps the names of calls that ended. The `meta` must not be
    large either: it is kept while the call runs.
    """
    if weight(request.get("meta") or {}, _LARGEST_META) > _LARGEST_META:
        raise BadRequestError("field 'meta': too large", {"field": "meta"})
    names = {"agent": request["agent"], "req_id": request["req_id"], "tool_name": request["tool_name"]}
    most = 1000
    for field, name in names.items():
        if len(name) > most:
            raise BadRequestError(f"field {field!r}: at most {most} characters", {"field": field})


def _now() -> float:
    return asyncio.get_running_loop().time()
