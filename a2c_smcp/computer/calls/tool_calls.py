"""The tool calls of a Computer: each is approved, run, logged, and told to those who watch.

Knows no agent and no office. The manager knows which server has a tool, and how to reach it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio.lowlevel
import orjson
from mcp_types import CallToolResult

from a2c_smcp.computer.asker import Asker
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
    denied,
)
from a2c_smcp.computer.decisions.book import RULE, ToolDefinition
from a2c_smcp.computer.decisions.store import DecisionStore
from a2c_smcp.computer.decisions.tool_definitions import ToolDefinitions
from a2c_smcp.computer.mcp_clients.catalogue import Catalogue, ShownTool
from a2c_smcp.computer.mcp_clients.manager import MCPServerManager
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
from a2c_smcp.results import TOOL_META_MARKER, cancelled_result, error_result, text_of, to_wire
from a2c_smcp.smcp import WAITING_FOR_PERSON
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.json_sizes import weight
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.text import in_log, on_one_line
from a2c_smcp.wire import codec, encoded

if TYPE_CHECKING:
    from a2c_smcp.computer.recording.recorder import Recorder

__all__ = ["ToolCalls"]

logger = logging.getLogger(__name__)


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
        self._renew()

    async def run(
        self,
        call: LoggedCall,
        limits: TimeLimits,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Run a call in this task and return its result, as `Computer.execute_tool` says. `limits` are those of this
        task.
        """
        if self._events.wanted is not self._wanted:
            self._renew()
        self._log.start(call)
        progress = None
        if on_progress is not None or self._are_reports_wanted:
            progress = self._progress(call, on_progress)
        confirmed_by, sent_at, result = call.decided_by, None, None
        try:
            try:
                tool = self._find(call)
            finally:
                for started in self._when_started:
                    started(call)
            if self._required is not None:
                await self._required.written()
                tool = self._find(call)
            catalogue = self._manager.serving.catalogue
            limits.start()
            approved = await self._approve(call, tool, progress, limits)
            while result is None:
                if isinstance(approved, Refuse):
                    raise approved.error(call.name)
                tool = approved
                if limits.approval_timeout is not None:
                    call.tool_ends = limits.start_tool()
                call.may_start = partial(self._may_start, call, tool, catalogue)
                sent_at = time.time()
                result = await self._manager.call_tool(tool, call.arguments, None, progress, meta, call)
                if result is None:
                    sent_at = None
                    approved = await self._decide_again(call, tool, confirmed_by, progress, limits)
            return self._done(call, tool, result, sent_at or 0.0)
        except asyncio.CancelledError:
            if sent_at is not None:
                call.reached(sent_at, "cancelled, or out of time")
            why = limits.stop()
            if why is None:
                raise
            if why == "timed_out":
                result = self._failed(call, ToolExecutionTimeoutError(call.timeout or 0))
            else:
                call.stopped, result = "cancelled", cancelled_result("at the computer" if why == "here" else "")
            return result
        except (ToolError, PayloadTooLargeError) as error:
            if sent_at is not None and not isinstance(error, ServerNotActiveError):  # those never reached the server
                call.reached(sent_at, error.message)
            result = self._failed(call, error)
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
            limits.stop()
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

    # --- layers

    def _renew(self) -> None:
        """Make the layers of a call: who is told of it, and what is asked about it. Most calls have few of them."""
        events, recorder, rules = self._events, self._recorder, self._decisions.rules.list
        self._wanted, self._rules = events.wanted, rules
        self._in_force = None if rules.has_times else RulesInForce(rules, None)
        self._required = recorder if recorder is not None and recorder.is_required else None
        self._are_reports_wanted = events.wants(CallProgressed)
        self._when_started: list[Callable[[LoggedCall], None]] = []
        self._when_ended: list[Callable[[LoggedCall, CallToolResult], None]] = []
        if recorder is not None:
            self._when_started.append(recorder.call_started)
            self._when_ended.append(recorder.call_ended)
        if events.wants(CallStarted):
            self._when_started.append(self._tell_started)
        if events.wants(CallEnded):
            self._when_ended.append(self._tell_ended)

    # --- one call

    def _find(self, call: LoggedCall) -> ShownTool:
        tool = self._manager.serving.catalogue.shown.get(call.name)
        if tool is None:
            tool = self._manager.validate_tool_call(call.name)  # it knows why there is none
        call.server, call.tool = tool.server, tool.tool.name
        return tool

    def _done(self, call: LoggedCall, tool: ShownTool, result: CallToolResult, sent_at: float) -> CallToolResult:
        """The call has come back from its server."""
        call.reached(sent_at, self._redaction.quote(text_of(result)) if result.is_error else None)
        if (meta := tool.meta_object) is not None:
            result.meta = {**(result.meta or {}), TOOL_META_MARKER: meta}
        if call.asker is not None:
            call.sent = encoded(to_wire(result))
            for item in result.content:
                if item.type == "resource_link":
                    self._on_links(tool.server, call.asker, _links(result))
                    break
        return result

    def _failed(self, call: LoggedCall, error: SMCPError) -> CallToolResult:
        whose = "calls of this computer" if call.asker is None else "calls of agents"
        if self._failures.allows(whose):
            logger.warning("tool call %s failed: %s", in_log(call.req_id), on_one_line(error))
        call.stopped, call.code = _stopped_by(error), error.code
        return error_result(error)

    async def _approve(
        self, call: LoggedCall, tool: ShownTool, progress: CallProgress | None, limits: TimeLimits
    ) -> ShownTool | Refuse:
        """The tool that may run: by the rules, by the config, or because a person says so.

        A yes is for the tool as it was shown. If its server has changed the tool meanwhile, this asks again. If a rule
        came meanwhile that covers the call, the rules decide again.
        """
        decisions, confirmed_by = self._decisions, call.decided_by
        while True:
            verdict = None
            if confirmed_by is None:
                if decisions.rules.list.all:
                    verdict = await self._rules_say(call, tool)
                else:
                    if decisions.rules.list is not self._rules:
                        self._renew()
                    call.rules = self._in_force
            approval = approve(
                tool.meta,
                can_ask="confirmation" in decisions.answerable,
                is_allowed=decisions.allow_all,
                verdict=verdict,
                confirmed_by=confirmed_by,
            )
            if not isinstance(approval, AskPerson):
                if approval.how is not None:
                    call.how = approval.how
                return tool if isinstance(approval, Run) else approval
            if progress is not None:
                progress.waiting()
            call.arguments = _as_sent(call.arguments)
            definition = self._definitions.of(tool)
            asked = await self._ask(call, tool, definition, limits, verdict)
            if isinstance(asked, Refuse):
                return asked
            if limits.why is not None:
                raise asyncio.CancelledError  # cancelled in the moment of the yes
            tool = await self._find_again(call, tool)
            if call.decided_by is not RULE and self._definitions.of(tool).digest == definition.digest:
                return await self._unless_denied(call, tool)
            call.decided_by = None

    async def _decide_again(
        self,
        call: LoggedCall,
        tool: ShownTool,
        confirmed_by: str | None,
        progress: CallProgress | None,
        limits: TimeLimits,
    ) -> ShownTool | Refuse:
        """The tool that may run, after the call has waited for its turn and something has changed meanwhile."""
        now = self._manager.validate_tool_call(call.name)
        if not self._is_same(now, tool):
            call.server, call.tool, call.decided_by = now.server, now.original, confirmed_by
            return await self._approve(call, now, progress, limits)
        if call.decided_by is None:
            return await self._approve(call, tool, progress, limits)
        return await self._unless_denied(call, tool)

    async def _unless_denied(self, call: LoggedCall, tool: ShownTool) -> ShownTool | Refuse:
        """A person said yes. A rule that came after the question may still deny the call."""
        verdict = await self._rules_say(call, tool, counts=False)
        if verdict is None or verdict.effect != "deny":
            return tool
        refusal = denied(verdict)
        call.decided_by, call.how = None, refusal.how or call.how
        return refusal

    async def _rules_say(self, call: LoggedCall, tool: ShownTool, *, counts: bool = True) -> RuleVerdict | None:
        rules, verdict = self._decisions.rules, None
        if rules.has_rules:
            call.arguments = _as_sent(call.arguments)
            asked = RuledCall(self._definitions.ruled(tool), call.arguments, call.asker)
            verdict = await rules.verdict(asked, counts=counts, counted=call.counted_by)
            if verdict is not None and counts:
                call.counted_by = verdict.rule.id
        call.rules = rules.in_force
        return verdict

    def _may_start(self, call: LoggedCall, tool: ShownTool, catalogue: Catalogue) -> bool:
        """Whether the tool is still the one that was decided about, and the same rules are in force. `catalogue` is
        the one in which the tool was found. Raises if the tool is gone.
        """
        has_changed = self._manager.serving.catalogue is not catalogue
        if has_changed and not self._is_same(self._manager.validate_tool_call(call.name), tool):
            return False
        decided, rules = call.rules, self._decisions.rules
        if decided is None or (decided.rules is rules.list and decided.at is None):
            return True
        return not rules.have_changed(decided)

    def _is_same(self, now: ShownTool, tool: ShownTool) -> bool:
        if now.tool is tool.tool and now.server == tool.server:
            return True
        return now.server == tool.server and self._definitions.of(now).digest == self._definitions.of(tool).digest

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

    def _tell_started(self, call: LoggedCall) -> None:
        size = call.size_of_names + weight(call.arguments, BUFFERED_BYTES)
        self._events.publish(CallStarted(call.call), size)

    def _tell_ended(self, call: LoggedCall, _: CallToolResult) -> None:
        ended = call.ended
        size = call.size_of_names + weight([ended.call.arguments, ended.result], BUFFERED_BYTES)
        self._events.publish(CallEnded(ended), size)

    def _end(self, call: LoggedCall, result: CallToolResult | None) -> None:
        if result is None:
            call.stopped, result = "cancelled", cancelled_result()
        call.caller = None
        now = asyncio.get_running_loop().time()
        if forgotten := self._log.end(call, result, now):
            self._freed.forgot(forgotten, now)
        if self._events.wanted is not self._wanted:
            self._renew()
        for ended in self._when_ended:
            ended(call, result)


def _as_sent(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as a server reads them, for those who decide: half characters (lone surrogates) are replaced on the
    way to it.
    """
    try:
        orjson.dumps(arguments)
        return arguments
    except TypeError:
        pass
    try:
        return cast("dict[str, Any]", codec.loads(codec.dumps_well_formed(arguments)))
    except (TypeError, ValueError, RecursionError):  # a call of this program may have values that are not JSON
        return arguments


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
