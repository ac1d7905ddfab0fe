"""The tool calls of a Computer: each is approved, run, logged, and told to those who watch.

Knows no agent and no office. The manager knows which server has a tool, and how to reach it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel
from mcp_types import CallToolResult

from a2c_smcp.computer.asker import ASKER, Asker
from a2c_smcp.computer.calls.freed_memory import FreedMemory
from a2c_smcp.computer.calls.log import CallLog, CallOutcome, LoggedCall, ProgressReport
from a2c_smcp.computer.calls.progress import CallProgress, OnProgress
from a2c_smcp.computer.calls.time_limits import TimeLimits
from a2c_smcp.computer.decisions.approvals import (
    AskPerson,
    Refuse,
    Run,
    approve,
    approve_resolution,
    decided_at,
    decided_before,
    denied,
)
from a2c_smcp.computer.decisions.book import RULE, ToolDefinition
from a2c_smcp.computer.decisions.callers import CALLER
from a2c_smcp.computer.decisions.store import DecisionStore
from a2c_smcp.computer.decisions.tool_definitions import ToolDefinitions
from a2c_smcp.computer.mcp_clients.catalogue import ShownTool
from a2c_smcp.computer.mcp_clients.manager import MCPServerManager
from a2c_smcp.computer.mcp_clients.protocol_requests import BEFORE_CALL
from a2c_smcp.computer.redaction import Redaction, discreet_error
from a2c_smcp.computer.rules.deciding import RuledCall, RuledTool, RuleVerdict
from a2c_smcp.computer.rules.store import RulesInForce
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
from a2c_smcp.smcp import WAITING_FOR_PERSON
from a2c_smcp.types import SERVER_NAME, TOOL_NAME
from a2c_smcp.utils.json_sizes import weight
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.text import in_log, on_one_line

if TYPE_CHECKING:
    from a2c_smcp.computer.recording.recorder import Recorder

__all__ = ["CURRENT_CALL", "ToolCalls"]

logger = logging.getLogger(__name__)

#: The call that this task makes, while its MCP server runs it.
CURRENT_CALL: Final[ContextVar[LoggedCall]] = ContextVar("current_call")


class _ToolChangedError(Exception):
    """Its server has changed the tool, or another server has its name now."""


class _RulesChangedError(Exception):
    """Other rules are in force than those that decided the call."""


class _Ruled:
    """What the rules have had to do with one call so far."""

    __slots__ = ("counted", "in_force")

    def __init__(self) -> None:
        self.in_force: RulesInForce | None = None
        """The rules when it was decided; `None` if they are not asked."""
        self.counted: str | None = None
        """The rule that has counted the call."""


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
        definitions: ToolDefinitions,
        on_links: Callable[[SERVER_NAME, Asker, Iterable[str]], None] = ignore,
        recorder: "Recorder | None" = None,
    ) -> None:
        self._manager = manager
        self._decisions = decisions
        self._events = events
        self._log = log
        self._freed = FreedMemory()
        self._definitions = definitions
        self._redaction = redaction
        self._on_links = on_links
        self._recorder = recorder
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
        approval_timeout: float | None = None,
    ) -> CallToolResult:
        """Run a call and return its result, as `Computer.execute_tool` says."""
        limits = TimeLimits(timeout, approval_timeout)
        call = LoggedCall(
            *(req_id, ASKER.get(None), name, dict(params), timeout, time.time(), limits.began, limits.scope.cancel),
            *(confirmed_by, CALLER.get(None), limits.tool_ends),
        )
        self._log.start(call)
        if self._recorder is not None:
            self._recorder.call_started(call)
        wanted = on_progress is not None or self._events.wants(CallProgressed)
        progress = self._progress(call, on_progress) if wanted else None
        result = None
        try:
            if self._recorder is not None and self._recorder.is_required:
                await self._recorder.written()
            tool = self._find(call)
            with limits.scope:
                result = await self._run(call, tool, progress, limits, meta)
                return result
            if call.is_cancelled:
                call.stopped = "cancelled"
                result = cancelled_result("at the computer")
                return result
            raise ToolExecutionTimeoutError(timeout or 0)
        except (ToolError, PayloadTooLargeError) as error:
            whose = "calls of this computer" if call.asker is None else "calls of agents"
            self._failures.warn(whose, "tool call %s failed: %s", in_log(req_id), on_one_line(error))
            call.stopped, call.code = _stopped_by(error), error.code
            result = error_result(error)
            return result if call.asker is None else error_result(discreet_error(error))
        except InternalError as error:
            call.code, result = error.code, error_result(error)
            raise
        except Exception:
            # The caller logs it, and turns it into an answer.
            call.code = InternalError.default_code
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

    async def test_rules(
        self, tool: ShownTool, arguments: Mapping[str, Any], asker: Asker | None
    ) -> RuleVerdict | None:
        """What the rules say about a call of this tool; `None` if no rule matches."""
        ruled = RuledCall(self._definitions.ruled(tool), arguments, asker)
        return await self._decisions.rules.verdict(ruled, counts=False)

    def as_ruled(self, tool: ShownTool) -> RuledTool:
        """A tool as rules see it now."""
        return self._definitions.ruled(tool)

    def definition(self, tool: ShownTool) -> ToolDefinition:
        """A tool as a person is shown it."""
        return self._definitions.of(tool)

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
        limits: TimeLimits,
        meta: Mapping[str, Any] | None,
    ) -> CallToolResult:
        confirmed_by, ruled, result = call.decided_by, _Ruled(), None
        approved = await self._approve(call, tool, progress, limits, ruled)
        while result is None:
            if isinstance(approved, Refuse):
                raise approved.error(tool.name)
            tool = approved
            call.tool_ends = limits.start_tool()
            # It may wait for its turn now, and what was decided about may change meanwhile.
            try:
                result = await self._call(call, tool, ruled, progress, meta)
            except _ToolChangedError:
                tool = self._manager.validate_tool_call(call.name)
                call.server, call.tool, call.decided_by = tool.server, tool.original, confirmed_by
                approved = await self._approve(call, tool, progress, limits, ruled)
            except _RulesChangedError:
                if call.decided_by is None:
                    approved = await self._approve(call, tool, progress, limits, ruled)
                else:
                    approved = await self._unless_denied(call, tool, ruled)
        return with_markers(result, {TOOL_META_MARKER: tool.meta_object} if tool.meta_object is not None else {})

    async def _approve(
        self, call: LoggedCall, tool: ShownTool, progress: CallProgress | None, limits: TimeLimits, ruled: _Ruled
    ) -> ShownTool | Refuse:
        """The tool that may run: by the rules, by the config, or because a person says so.

        A yes is for the tool as it was shown. If its server has changed the tool meanwhile, this asks again. If a rule
        came meanwhile that covers the call, the rules decide again.
        """
        decisions, confirmed_by = self._decisions, call.decided_by
        while True:
            verdict = None if confirmed_by is not None else await self._rules_say(call, tool, ruled)
            is_allowed = confirmed_by is not None or decisions.allow_all
            can_ask = decisions.can_answer("confirmation")
            approval = approve(tool.meta, can_ask=can_ask, is_allowed=is_allowed, verdict=verdict)
            if not isinstance(approval, AskPerson):
                if isinstance(approval, Run) or approval.outcome == "rule":
                    call.how = decided_before(tool.meta, confirmed_by=confirmed_by, verdict=verdict)
                return tool if isinstance(approval, Run) else approval
            if progress is not None:
                progress.waiting()
            definition = self._definitions.of(tool)
            approval = await self._ask(call, tool, definition, limits, verdict)
            if isinstance(approval, Refuse):
                return approval
            tool = await self._find_again(call, tool)
            if call.decided_by is not RULE and self._definitions.of(tool).digest == definition.digest:
                return await self._unless_denied(call, tool, ruled)
            call.decided_by = None

    async def _unless_denied(self, call: LoggedCall, tool: ShownTool, ruled: _Ruled) -> ShownTool | Refuse:
        """A person said yes. A rule that came after the question may still deny the call."""
        verdict = await self._rules_say(call, tool, ruled, counts=False)
        if verdict is None or verdict.effect != "deny":
            return tool
        call.decided_by, call.how = None, decided_before(None, confirmed_by=None, verdict=verdict)
        return denied(verdict)

    async def _rules_say(
        self, call: LoggedCall, tool: ShownTool, ruled: _Ruled, *, counts: bool = True
    ) -> RuleVerdict | None:
        rules, verdict = self._decisions.rules, None
        if rules.has_rules:
            asked = RuledCall(self._definitions.ruled(tool), call.arguments, call.asker)
            verdict = await rules.verdict(asked, counts=counts, counted=ruled.counted)
            if verdict is not None and counts:
                ruled.counted = verdict.rule.id
        ruled.in_force = rules.in_force
        return verdict

    async def _find_again(self, call: LoggedCall, tool: ShownTool) -> ShownTool:
        """The tool after a person was asked. Meanwhile the call may be cancelled, the tool forbidden, or its name
        taken by another tool.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        now = self._manager.validate_tool_call(call.name)
        if (now.server, now.original) != (tool.server, tool.original):
            raise ToolNotFoundError(call.name)
        return now

    async def _ask(
        self,
        call: LoggedCall,
        tool: ShownTool,
        definition: ToolDefinition,
        limits: TimeLimits,
        verdict: RuleVerdict | None,
    ) -> Run | Refuse:
        """Ask a person, and return the decision. If nobody answers in time, the call is refused."""
        with limits.asking() as expires:
            resolution = await self._decisions.ask_confirmation(call.call, definition, expires=expires, verdict=verdict)
        call.decided_by, call.how = resolution.by, decided_at(resolution.by)
        if resolution.by is RULE:
            return Run()  # the rules decide again
        approval = approve_resolution(resolution)
        if isinstance(approval, Refuse) and resolution.error is not None:
            raise approval.error(tool.name) from resolution.error
        return approval

    async def _call(
        self,
        call: LoggedCall,
        tool: ShownTool,
        ruled: _Ruled,
        progress: CallProgress | None,
        meta: Mapping[str, Any] | None,
    ) -> CallToolResult:
        sent_at = time.time()
        current, before = CURRENT_CALL.set(call), BEFORE_CALL.set(lambda: self._check_unchanged(call, tool, ruled))
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
            BEFORE_CALL.reset(before)
        call.reached(sent_at, self._redaction.quote(text_of(result)) if result.is_error else None)
        if call.asker is not None and (links := _links(result)):
            self._on_links(tool.server, call.asker, links)
        return result

    def _check_unchanged(self, call: LoggedCall, tool: ShownTool, ruled: _Ruled) -> None:
        """Raise if the tool is not the one that was decided about, or if other rules are in force."""
        now = self._manager.validate_tool_call(call.name)
        if now.tool is not tool.tool or now.server != tool.server:
            definitions = self._definitions
            if now.server != tool.server or definitions.of(now).digest != definitions.of(tool).digest:
                raise _ToolChangedError
        if ruled.in_force is not None and self._decisions.rules.have_changed(ruled.in_force):
            raise _RulesChangedError

    # --- what is told of it

    def _progress(self, call: LoggedCall, on_progress: OnProgress | None) -> CallProgress:
        """Passes the server's reports on to the caller and to watchers."""

        def tell(progress: float, total: float | None, message: str | None) -> None:
            # Only the agent is told that the call waits for a person: watchers see the decision itself.
            if message != WAITING_FOR_PERSON:
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
        if self._recorder is not None:
            self._recorder.call_ended(call, result)
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
