"""The tool calls of a Computer: each is approved, run, logged, and told to those who watch.

Knows no agent and no office. The manager knows which server has a tool, and how to reach it.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

import anyio
import anyio.lowlevel
from mcp_types import CallToolResult

from a2c_smcp.computer.calls.freed_memory import FreedMemory
from a2c_smcp.computer.calls.log import CallLog, CallOutcome, LoggedCall, ProgressReport
from a2c_smcp.computer.calls.progress import WAITING, CallProgress, OnProgress
from a2c_smcp.computer.decisions.approvals import (
    CALLING_AGENT,
    CALLING_OFFICE,
    AskPerson,
    Refuse,
    Run,
    approve,
    approve_resolution,
)
from a2c_smcp.computer.decisions.book import ToolDefinition
from a2c_smcp.computer.decisions.callers import CALLER
from a2c_smcp.computer.decisions.store import DecisionStore
from a2c_smcp.computer.decisions.tool_definitions import definition_of
from a2c_smcp.computer.mcp_clients.catalogue import ShownTool
from a2c_smcp.computer.mcp_clients.manager import MCPServerManager
from a2c_smcp.computer.redaction import Redaction, discreet_error
from a2c_smcp.computer.resources.links import OfficeAgentId
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.computer.watching.events import BUFFERED_BYTES, CallEnded, CallProgressed, CallStarted, EventHub
from a2c_smcp.errors import (
    InternalError,
    PayloadTooLargeError,
    ServerNotActiveError,
    SMCPError,
    ToolConfirmationError,
    ToolError,
    ToolExecutionTimeoutError,
    ToolNotFoundError,
)
from a2c_smcp.results import TOOL_META_MARKER, cancelled_result, error_result, text_of, with_markers
from a2c_smcp.types import SERVER_NAME, TOOL_NAME
from a2c_smcp.utils.json_sizes import weight
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.text import in_log, on_one_line

__all__ = ["CURRENT_CALL", "ToolCalls"]

logger = logging.getLogger(__name__)

#: The call that this task makes, while its MCP server runs it.
CURRENT_CALL: Final[ContextVar[LoggedCall]] = ContextVar("current_call")


class ToolCalls:
    """Runs calls, and records them in the `log`. `on_links` is told which resources a result links to, and which agent
    got it.
    """

    def __init__(
        self,
        manager: MCPServerManager,
        decisions: DecisionStore,
        events: EventHub,
        log: CallLog,
        redaction: Redaction,
        on_links: Callable[[SERVER_NAME, OfficeAgentId, Iterable[str]], None] = ignore,
    ) -> None:
        self._manager = manager
        self._decisions = decisions
        self._events = events
        self._log = log
        self._freed = FreedMemory()
        self._redaction = redaction
        self._on_links = on_links
        self._failures = LimitedLog(logger, per_second=20)

    async def execute(
        self,
        req_id: str,
        name: TOOL_NAME,
        params: Mapping[str, Any],
        timeout: float | None,
        on_progress: OnProgress | None,
        confirmed_by: str | None,
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Run a call and return its result, as `Computer.execute_tool` says."""
        now = asyncio.get_running_loop().time()
        scope = anyio.CancelScope(deadline=math.inf if timeout is None else now + timeout)
        agent, office = CALLING_AGENT.get(None), CALLING_OFFICE.get(None)
        call = LoggedCall(
            *(req_id, agent, name, dict(params), timeout, time.time(), now, scope.cancel, office, confirmed_by),
            caller=CALLER.get(None),
        )
        self._log.start(call)
        wanted = on_progress is not None or self._events.wants(CallProgressed)
        progress = self._progress(call, on_progress) if wanted else None
        result = None
        try:
            tool = self._find(call)
            with scope:
                result = await self._run(call, tool, progress, scope, meta)
                return result
            if call.is_cancelled:
                call.stopped = "cancelled"
                result = cancelled_result("at the computer")
                return result
            raise ToolExecutionTimeoutError(timeout or 0)
        except (ToolError, PayloadTooLargeError) as error:
            whose = "calls of this computer" if call.agent is None else "calls of agents"
            self._failures.warn(whose, "tool call %s failed: %s", in_log(req_id), on_one_line(error))
            call.stopped = _stopped_by(error)
            result = error_result(error)
            return result if call.agent is None else error_result(discreet_error(error))
        except Exception:
            # The caller logs it, and turns it into an answer.
            result = error_result(InternalError("this computer failed to run the call; its log says why"))
            raise
        finally:
            if progress is not None:
                progress.end()
            self._end(call, result)

    def cancel(self, call_id: str, by: str | None) -> bool:
        """Cancel a running call. Returns whether there was one."""
        if (call := self._log.find(call_id)) is None:
            return False
        call.is_cancelled = True
        call.decided_by = by
        call.cancel()
        return True

    # --- one call

    def _find(self, call: LoggedCall) -> ShownTool:
        try:
            tool = self._manager.validate_tool_call(call.name)
            call.server, call.tool = tool.server, tool.original
            return tool
        finally:
            if self._events.wants(CallStarted):
                size = call.size_of_names + weight(call.arguments, BUFFERED_BYTES)
                self._events.publish(CallStarted(call.call), size)

    async def _run(
        self,
        call: LoggedCall,
        tool: ShownTool,
        progress: CallProgress | None,
        scope: anyio.CancelScope,
        meta: Mapping[str, Any] | None,
    ) -> CallToolResult:
        decisions = self._decisions
        is_allowed = decisions.is_allowed(tool.server, tool.original, partial(definition_of, tool))
        approval = approve(
            tool.meta,
            can_ask=decisions.can_answer("confirmation"),
            is_allowed=call.decided_by is not None or is_allowed,
        )
        if isinstance(approval, AskPerson):
            if progress is not None:
                progress.waiting()
            approval = await self._confirm(call, tool, scope)
        if isinstance(approval, Refuse):
            raise approval.error(tool.name)
        result = await self._call(call, tool, progress, meta)
        return with_markers(result, {TOOL_META_MARKER: tool.meta_object} if tool.meta_object is not None else {})

    async def _confirm(self, call: LoggedCall, tool: ShownTool, scope: anyio.CancelScope) -> Run | Refuse:
        """Ask a person, and return the decision. If nobody answers until just before the call's deadline, the call
        is refused.

        A yes is for the tool as it was shown. If its server has changed the description meanwhile, this asks again.
        """
        while True:
            definition = definition_of(tool)
            approval = await self._ask(call, tool, definition, scope)
            if isinstance(approval, Refuse):
                return approval
            # Meanwhile the call may be cancelled, the tool forbidden, or its name taken by another tool.
            await anyio.lowlevel.checkpoint_if_cancelled()
            now = self._manager.validate_tool_call(call.name)
            if (now.server, now.original) != (tool.server, tool.original):
                raise ToolNotFoundError(call.name)
            if definition_of(now).digest == definition.digest:
                return approval
            tool = now

    async def _ask(
        self, call: LoggedCall, tool: ShownTool, definition: ToolDefinition, scope: anyio.CancelScope
    ) -> Run | Refuse:
        # The question ends a moment before the call's deadline. If it ended later, the call would fail with a timeout
        # of the tool.
        expires = anyio.current_effective_deadline() - 0.1
        # A busy event loop may wake after both times. Then the call must still not fail with a timeout of the tool.
        deadline, scope.deadline = scope.deadline, math.inf
        try:
            resolution = await self._decisions.ask_confirmation(call.call, definition, expires=expires)
        finally:
            scope.deadline = deadline
        call.decided_by = resolution.by
        approval = approve_resolution(resolution)
        if isinstance(approval, Refuse) and resolution.error is not None:
            raise approval.error(tool.name) from resolution.error
        return approval

    async def _call(
        self, call: LoggedCall, tool: ShownTool, progress: CallProgress | None, meta: Mapping[str, Any] | None
    ) -> CallToolResult:
        sent_at = time.time()
        current = CURRENT_CALL.set(call)
        try:
            result = await self._manager.call_tool(tool, call.arguments, progress=progress, meta=meta)
        except ServerNotActiveError:
            raise  # it never reached the server
        except (ToolError, PayloadTooLargeError) as error:
            call.reached(sent_at, error.message)
            raise
        except anyio.get_cancelled_exc_class():
            call.reached(sent_at, "cancelled, or out of time")
            raise
        finally:
            CURRENT_CALL.reset(current)
        call.reached(sent_at, self._redaction.quote(text_of(result)) if result.is_error else None)
        if call.agent is not None and (links := _links(result)):
            self._on_links(tool.server, OfficeAgentId(call.office or "", call.agent), links)
        return result

    # --- what is told of it

    def _progress(self, call: LoggedCall, on_progress: OnProgress | None) -> CallProgress:
        """Passes the server's reports on to the caller and to watchers."""

        def tell(progress: float, total: float | None, message: str | None) -> None:
            # Only the agent is told that the call waits for a person: watchers see the decision itself.
            if message != WAITING:
                call.progress = ProgressReport(progress, total, message)
                if self._events.wants(CallProgressed):
                    self._events.publish(CallProgressed(call.id, call.progress))
            if on_progress is not None:
                on_progress(progress, total, message)

        return CallProgress(tell, self._redaction)

    def _end(self, call: LoggedCall, result: CallToolResult | None) -> None:
        if result is None:
            call.stopped, result = "cancelled", cancelled_result()
        call.caller = None
        now = asyncio.get_running_loop().time()
        self._freed.forgot(self._log.end(call, result, now), now)
        if self._events.wants(CallEnded):
            ended = call.ended
            size = call.size_of_names + weight([ended.call.arguments, ended.result], BUFFERED_BYTES)
            self._events.publish(CallEnded(ended), size)


def _links(result: CallToolResult) -> list[str]:
    """The resources that a result links to, the first hundred."""
    return [item.uri for item in result.content if item.type == "resource_link"][:100]


def _stopped_by(error: SMCPError) -> CallOutcome | None:
    """What kept the tool from running to its end; `None` if the tool itself failed."""
    match error:
        case ToolConfirmationError(outcome="nobody" | "unanswered" as outcome):
            return outcome
        case ToolConfirmationError():
            return "refused"
        case ToolExecutionTimeoutError():
            return "timed_out"
    return None
