"""The tool calls of an office's agent: each request runs once, and its reply is kept for repeats.

Knows requests, replies and cancels. The Computer runs the calls.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, cast

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.calls.log import LoggedCall
from a2c_smcp.computer.calls.memory import NEW, RAN, CallKey, CallMemory, Finished
from a2c_smcp.computer.calls.progress import PROGRESS_SECONDS
from a2c_smcp.computer.calls.time_limits import TimeLimits
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.redaction import discreet_error
from a2c_smcp.computer.socketio.agent_questions import AgentQuestions
from a2c_smcp.computer.socketio.dialect_answers import DialectAnswers
from a2c_smcp.errors import BadRequestError, InternalError, PayloadTooLargeError, SMCPError
from a2c_smcp.link.connection import ANSWERED_ON, Connection
from a2c_smcp.results import ERROR_CODE_MARKER, error_result, to_wire
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_NOTIFICATION,
    TOOL_CALL_EVENT,
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
from a2c_smcp.wire import PACKET_OVERHEAD, Encoded, encoded, parse

__all__ = ["AgentCalls"]

logger = logging.getLogger(__name__)

#: All agents have one name in the limited log, because an agent may give itself many names.
_AGENTS: Final = "what agents asked for"
#: The most characters of a name in a call: the computer keeps the names of calls that ended.
_LONGEST_NAME: Final = 1000
#: About how many bytes of memory the `meta` of a call may need, which is kept while the call runs.
_LARGEST_META: Final = 256 * 1024


class AgentCalls:
    """Answers requests for tool calls. `check` returns the received request and who asks, or raises if it is invalid.
    `send` sends the reports of a call's progress, `request` the questions of its tool, both over the call's own
    connection. `dialect` knows how 0.4 agents want their results; `max_message` returns how large one may be.
    """

    def __init__(
        self,
        computer: Computer,
        check: Callable[[str, Any], tuple[Any, Asker]],
        send: Callable[[str, Any, Connection | None], Awaitable[None]],
        request: Callable[[str, Any, float, Connection | None], Awaitable[tuple[Any, ...]]],
        max_message: Callable[[], int],
        dialect: DialectAnswers,
    ) -> None:
        self.questions = AgentQuestions(computer.decisions, request, lambda: self.office)
        self._calls = computer.tool_calls
        self._check = check
        self._send = send
        self._max_message = max_message
        self._dialect = dialect
        self.office = ""
        """The office that the Computer is in, or joins now."""
        self._memory: CallMemory[TimeLimits, Encoded] = CallMemory()
        #: Where the repeats of running requests wait for the reply; `None` if it was broken off.
        self._awaited: dict[CallKey, asyncio.Future[Encoded | None]] = {}
        self._refusals = LimitedLog(logger, per_second=20)

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        """The tasks of the calls that run."""
        return [limits.task for limits in self._memory.all_running()]

    def cancel_all(self, office: str) -> None:
        """Cancel the calls from an office that the Computer has left. Their agent knows that the Computer has gone."""
        for limits in self._memory.all_running(office):
            limits.cancel("by_agent")

    async def cancel(self, data: Any) -> None:
        """Take the notification that an agent has cancelled its call."""
        request: AgentCallData = parse(CANCEL_TOOL_CALL_NOTIFICATION, data)
        for limits in self._memory.running(self.office, request["agent"], request["req_id"]):
            limits.cancel("by_agent")

    def answer(self, data: Any) -> Awaitable[Any]:
        """The reply to a request, or the payload of the error that it ends with."""
        if self._dialect.are_for(data):
            return self._dialect.answer(TOOL_CALL_EVENT, partial(self._answer, speaks_04=True), data)
        return self._answer(data)

    async def _answer(self, data: Any, *, speaks_04: bool = False) -> Any:
        try:
            request, asker = self._check(TOOL_CALL_EVENT, data)
            req_id, tool, params = request["req_id"], request["tool_name"], request["params"]
            if "meta" in request or max(len(request["agent"]), len(req_id), len(tool)) > _LONGEST_NAME:
                _check_names(request)
            key = CallKey(asker.office, asker.name, asker.bound, asker.own_id, req_id)
            timeout, approval = request["timeout"], request.get("approval_timeout")
            if speaks_04:
                timeout = self._dialect.seconds(timeout)
            limits = TimeLimits(timeout, approval)
            known = self._memory.admit(key, tool, params, limits, limits.began)
            if known is not NEW:
                # The repeat may wait as long as the call runs. It need not keep its params: the first request has them.
                data["params"], request["params"] = None, {}
                reply = await self._repeated(key, known)
                self._check_size(reply, ANSWERED_ON.get())  # of this connection, which may be another one
                return reply
            call = LoggedCall(req_id, asker, tool, params, timeout, time.time(), limits.began, limits.cancel)
            call.tool_ends = limits.tool_ends
            return await self._run(key, call, limits, request, speaks_04=speaks_04)
        except SMCPError as error:
            if self._refusals.allows(_AGENTS):
                logger.warning("refused tool call %s: %s", req_id_in_log(data), on_one_line(error))
            return discreet_error(error).tool_call_payload()
        except Exception:
            # A boundary, like the one in `OfficeLink`. It is here because a failed tool call has a shape of its own.
            self._refusals.exception(_AGENTS, "failed to handle tool call %s", req_id_in_log(data))
            return InternalError("this computer failed to handle the call; its log says why").tool_call_payload()

    async def _repeated(self, key: CallKey, known: object) -> Encoded:
        """The reply for a repeat of a request. A repeat may stop waiting without harm to the others."""
        if isinstance(known, Finished):
            return cast("Encoded", known.result)
        if known is RAN:
            raise InternalError("this call has run, and its result is not kept any more", {"may_have_run": True})
        if (awaited := self._awaited.get(key)) is None:
            awaited = self._awaited[key] = asyncio.get_running_loop().create_future()
        if (reply := await asyncio.shield(awaited)) is None:
            raise InternalError("the call was broken off, and this request repeats it")
        return reply

    async def _run(
        self, key: CallKey, call: LoggedCall, limits: TimeLimits, request: ToolCallReq, *, speaks_04: bool
    ) -> Encoded:
        """Run a call in this task. It goes on if the connection is lost: a repeat gets the result."""
        connection = ANSWERED_ON.get()
        reply, progress = None, None
        if "questions" in request:
            call.caller = self.questions.caller(key, request, call.asker, connection)
        if request.get("progress"):
            progress = LatestOnly(partial(self._send_progress, key, request, connection), PROGRESS_SECONDS)
        try:
            on_progress = None if progress is None else progress.put
            result = await self._calls.run(call, limits, on_progress, request.get("meta"))
            if progress is not None:
                await progress.end()
            if result.is_error and (spans := TRACING.spans) is not None:
                spans.tool_failed((result.meta or {}).get(ERROR_CODE_MARKER))
            sent, call.sent = call.sent, None
            if speaks_04:
                sent = encoded(self._dialect.shaped(to_wire(result)))
            elif sent is None:
                sent = encoded(to_wire(result))
            try:
                self._check_size(sent, connection)
            except PayloadTooLargeError as error:
                self._refusals.warn(_AGENTS, "tool call %s: %s", in_log(key.req_id), error)
                sent = encoded(to_wire(error_result(error)))
            self._memory.finish(key, sent, sent.size, call.started + call.duration)
            reply = sent
            return reply
        finally:
            if reply is None:
                self._memory.forget(key)
            if progress is not None:
                progress.stop()
            if (awaited := self._awaited.pop(key, None)) is not None:
                awaited.set_result(reply)

    def _check_size(self, reply: Encoded, connection: Connection | None) -> None:
        """Raise if a reply is too large to send."""
        most = self._max_message() if connection is None else connection.max_message
        if reply.size + PACKET_OVERHEAD > most:
            raise PayloadTooLargeError(f"the result has {reply.size} bytes; a message may have at most {most}")

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


def _check_names(request: ToolCallReq) -> None:
    """Raise if a name of the call is too long, or its `meta` too large."""
    if weight(request.get("meta") or {}, _LARGEST_META) > _LARGEST_META:
        raise BadRequestError("field 'meta': too large", {"field": "meta"})
    names = {"agent": request["agent"], "req_id": request["req_id"], "tool_name": request["tool_name"]}
    for field, name in names.items():
        if len(name) > _LONGEST_NAME:
            raise BadRequestError(f"field {field!r}: at most {_LONGEST_NAME} characters", {"field": field})
