"""The decisions of one Computer. Callers wait here for a decision; terminals, pages and programs make it here.

    with computer.decisions.attend("terminal", ask=…): ...      be asked, from now on
    computer.decisions.answer(decision_id, Accepted(), by=…)    answer

The first answer counts. This module knows no terminal and no browser. Call everything on the Computer's event loop.
"""

import asyncio
import contextvars
import itertools
import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import anyio

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.decisions.book import (
    KINDS,
    RULE,
    Accepted,
    AlreadyDecidedError,
    Confirmation,
    Decision,
    DecisionAnswer,
    DecisionBook,
    DecisionKind,
    MissingInput,
    MissingSignIn,
    Outcome,
    Question,
    Resolution,
    ToolDefinition,
    check_answer,
    makes_rule,
    resolution_by,
)
from a2c_smcp.computer.decisions.made_rules import made_rule, ruled_call
from a2c_smcp.computer.mcp_clients.model import MCPServerInput
from a2c_smcp.computer.rules.deciding import RuleVerdict
from a2c_smcp.computer.rules.reads import RuledRead
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.computer.rules.store import RuleChange, RuleStore
from a2c_smcp.computer.watching.events import (
    AnswerersChanged,
    DecisionAsked,
    DecisionDecided,
    DecisionEvent,
    QuestionPassedOn,
    RulesChanged,
)
from a2c_smcp.errors import BadRequestError, NotFoundError, SMCPError
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.text import in_log

__all__ = ["AskHandler", "Attendance", "DecisionStore"]

logger = logging.getLogger(__name__)


#: Asks a person. It returns `None` if it has no answer; others may have one. It is cancelled when the decision is made
#: elsewhere: `DecisionStore.resolution` then says by whom, and how.
AskHandler: TypeAlias = Callable[[Decision], Awaitable[DecisionAnswer | None]]
_Check: TypeAlias = Callable[[Any], None]
_UNKNOWN: Final = ToolDefinition()


class Attendance:
    """A place that can answer decisions while inside `with`. `DecisionStore.attend` makes it."""

    def __init__(
        self, store: "DecisionStore", name: str, kinds: frozenset[DecisionKind], ask: AskHandler | None
    ) -> None:
        self._store = store
        self.name = name
        self.kinds = kinds
        self.ask = ask

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()

    def begin(self) -> None:
        """Be asked from now on, also for decisions that are pending already."""
        self._store._come(self)

    def end(self) -> None:
        """Stop being asked. Safe to call twice."""
        self._store._go(self)


@dataclass(slots=True, eq=False)
class _Pending:
    decision: Decision
    check: _Check | None
    expires: float
    """By the loop's clock."""
    decided: asyncio.Future[None]
    context: contextvars.Context
    """The context of the task that waits. Handlers that ask a person run in copies of it."""
    asking: dict[Attendance, asyncio.Task[None]] = field(default_factory=dict)
    silent: set[Attendance] = field(default_factory=set)
    """The places that were asked and had no answer."""
    is_here: bool = True
    """Whether the places of this Computer are asked, and told of it."""
    caller: Attendance | None = None
    """The place that is asked for this decision alone: where its call came from."""
    somebody_went: bool = False
    error: Exception | None = None
    grace: asyncio.TimerHandle | None = None
    resolution: Resolution | None = None


def _ignore(*_: object) -> None:
    pass


class DecisionStore:
    """The pending decisions, the places that can answer them, and the rules that people make with their answers.

    `on_event` is called when a decision is asked for or made, and when a place that can answer comes or goes. It must
    return at once. When the last such place has gone, a decision waits `grace` seconds for another one: a page may be
    reloading.
    """

    def __init__(self, on_event: Callable[[DecisionEvent], None] = _ignore, *, grace: float = 30.0) -> None:
        self.allow_all = False
        """Whether no call needs a confirmation. Rules come first."""
        self.rules = RuleStore(self._rules_changed)
        self._on_event = on_event
        self._grace = grace
        self._book: DecisionBook[_Pending] = DecisionBook()
        self._answerers: list[Attendance] = []
        self.answerable: frozenset[DecisionKind] = frozenset()
        """The kinds of decisions that somebody is there to answer."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._prefix = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    # --- for those who answer

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions that nobody has made yet, oldest first."""
        return tuple(pending.decision for pending in self._book.pending if pending.is_here)

    @property
    def pending_anywhere(self) -> tuple[Decision, ...]:
        """The pending decisions, also those that only the caller of a call is asked for."""
        return tuple(pending.decision for pending in self._book.pending)

    def answer(self, decision_id: str, answer: DecisionAnswer, *, by: str, digest: str | None = None) -> None:
        """Decide. The first answer counts: a later one raises `AlreadyDecidedError`, which says who decided and how.

        `by` names the place for people: `terminal`, `browser`. Give the `digest` of what was shown; if something else
        is asked, this raises `DecisionChangedError`. An unknown id raises `NotFoundError`. A value that is not allowed
        raises an error that says why. After an error nothing is decided.
        """
        pending = self._book.find(decision_id)
        if asyncio.get_running_loop().time() >= pending.expires:
            self._settle(pending, Resolution(Outcome.UNANSWERED))
            self._book.find(decision_id)  # raises
        check_answer(pending.decision, answer, digest)
        if pending.check is not None and isinstance(answer, Accepted):
            pending.check(answer.value)
        rule = self._make_rule(pending.decision, answer)
        self._settle(pending, resolution_by(by, answer, None if rule is None else rule.id))
        if rule is not None and isinstance(pending.decision, Confirmation):
            self._add_rule(rule, pending.decision, by)

    def withdraw(self, decision_id: str) -> None:
        """End a decision that is not needed any more. Raises like `answer`."""
        self._settle(self._book.find(decision_id), Resolution(Outcome.WITHDRAWN))

    def resolution(self, decision_id: str) -> Resolution | None:
        """How one of the last decisions ended, without the given value; `None` while it is pending."""
        return self._book.resolution(decision_id)

    def attend(self, name: str, kinds: Collection[DecisionKind] = KINDS, ask: AskHandler | None = None) -> Attendance:
        """Answer decisions of these kinds from now on: `with store.attend("terminal", ask=ask):`.

        `ask` is called for each decision, pending ones included, in a task of its own. It is cancelled when somebody
        else was quicker. Without `ask`, follow the Computer's events and call `answer`.
        """
        return Attendance(self, name, frozenset(kinds), ask)

    # --- who is there

    @property
    def answerers(self) -> tuple[str, ...]:
        """Who can answer now, in the order in which they came."""
        return tuple(answerer.name for answerer in self._answerers)

    def can_answer(self, kind: DecisionKind) -> bool:
        """Whether somebody is there who can answer decisions of this kind."""
        return kind in self.answerable

    def _come(self, answerer: Attendance) -> None:
        self._answerers.append(answerer)
        for pending in self._book.pending:
            if pending.is_here and pending.decision.kind in answerer.kinds:
                self._put_to(pending, answerer)
                self._look_after(pending)
        self._tell()

    def _go(self, answerer: Attendance) -> None:
        if answerer not in self._answerers:
            return
        self._answerers.remove(answerer)
        for pending in self._book.pending:
            if pending.is_here and pending.decision.kind in answerer.kinds:
                if (task := pending.asking.pop(answerer, None)) is not None:
                    task.cancel()
                pending.somebody_went |= answerer not in pending.silent
                self._look_after(pending)
        self._tell()

    def _tell(self) -> None:
        self.answerable = frozenset().union(*(answerer.kinds for answerer in self._answerers))
        self._on_event(AnswerersChanged(self.answerers))

    # --- rules

    def _make_rule(self, decision: Decision, answer: DecisionAnswer) -> Rule | None:
        if not makes_rule(answer) or not isinstance(decision, Confirmation):
            return None
        return made_rule(decision, answer, f"card-{secrets.token_hex(4)}")

    def _add_rule(self, rule: Rule, decision: Confirmation, by: str) -> None:
        """Add a rule that was made on a card. An `allow` comes before the rule that asked, so that it decides; a `deny`
        comes first. A rule for this tool that was asleep is replaced by it.
        """
        comment = f"made on {time.strftime('%Y-%m-%d %H:%M')} by {by}"
        seen = asdict(decision.definition) if rule.digest else None
        self.rules.add(rule, decision.asked_by, comment, seen, is_first=rule.effect == "deny", by=by)
        if decision.allowed_before is not None and decision.asked_by is not None and rule.effect == "allow":
            with suppress(NotFoundError, BadRequestError):  # it is gone, or stands in a config file
                self.rules.remove(decision.asked_by, by=by)

    def _rules_changed(self, change: RuleChange) -> None:
        """Decide the pending calls that a rule covers now. The call itself asks the rules once more."""
        self._on_event(RulesChanged(change.outcome, change.rule, change.says, change.by, change.denies))
        for pending in self._book.pending:
            decision = pending.decision
            if not isinstance(decision, Confirmation) or pending.resolution is not None:
                continue
            if decision.reads is not None:
                verdict = self.rules.likely_read(decision.reads)
            else:
                verdict = self.rules.likely(ruled_call(decision.call, decision.definition))
            if verdict is not None and verdict.effect != "ask":
                outcome = Outcome.ACCEPTED if verdict.effect == "allow" else Outcome.DECLINED
                self._settle(pending, Resolution(outcome, RULE, reason=verdict.rule.reason, rule=verdict.rule.id))

    def seen_by(self, verdict: RuleVerdict | None) -> ToolDefinition | None:
        """The tool that a sleeping rule was made for; empty if nobody remembers it, `None` if no rule sleeps."""
        if verdict is None or not verdict.is_asleep:
            return None
        found = self.rules.seen(verdict.rule.digest or "")
        try:
            return _UNKNOWN if found is None else ToolDefinition(**found)
        except TypeError:  # written by another version
            return _UNKNOWN

    # --- for those who need a decision

    async def ask_confirmation(
        self,
        call: WatchedCall,
        definition: ToolDefinition = _UNKNOWN,
        *,
        expires: float = math.inf,
        verdict: RuleVerdict | None = None,
        reads: RuledRead | None = None,
    ) -> Resolution:
        """Wait for a person to say whether this call may run. `definition` is the tool's description, which is
        shown. `verdict` is that of the rule that asks, if one does. `reads` is what an agent wants to read, if the call
        only stands for that.

        At `expires`, by the loop's clock, the decision ends `UNANSWERED`. If nobody can answer, it ends so at once.
        Cancelling the task that waits withdraws the decision.
        """
        before, asked_by = self.seen_by(verdict), None if verdict is None else verdict.rule.id
        return await self._ask(
            "confirmation",
            lambda key, at, until: Confirmation(key, at, until, call, definition, before, asked_by, reads),
            None,
            expires,
        )

    async def ask_question(
        self,
        server: SERVER_NAME,
        message: str,
        *,
        schema: Mapping[str, Any] | None = None,
        url: str | None = None,
        call: WatchedCall | None = None,
        calls: tuple[WatchedCall, ...] = (),
        check: Callable[[Any], None] | None = None,
        expires: float = math.inf,
        caller: tuple[str, AskHandler] | None = None,
        is_here: bool = True,
        key: str | None = None,
    ) -> Resolution:
        """Wait for the person's answer to a server's question. `check` raises for a value that does not fit.

        `caller` is asked for this decision alone, by its name. Unless the question `is_here`, nobody else is asked or
        told of it. Otherwise like `ask_confirmation`.
        """
        asked = None if caller is None else Attendance(self, caller[0], frozenset({"question"}), caller[1])
        return await self._ask(
            "question",
            lambda id, at, until: Question(id, at, until, server, message, schema, url, call, calls, key),
            check,
            expires,
            asked,
            is_here=is_here,
        )

    async def ask_input(
        self,
        definition: MCPServerInput,
        servers: tuple[SERVER_NAME, ...],
        *,
        check: Callable[[Any], None] | None = None,
        expires: float = math.inf,
    ) -> Resolution:
        """Wait for the value of an input that these servers need. Otherwise like `ask_question`."""
        return await self._ask(
            "input", lambda key, at, until: MissingInput(key, at, until, definition, servers), check, expires
        )

    async def ask_sign_in(
        self,
        server: SERVER_NAME,
        url: str,
        scopes: tuple[str, ...] = (),
        *,
        is_step_up: bool = False,
        check: Callable[[Any], None] | None = None,
    ) -> Resolution:
        """Wait until the person has signed in at this address. Otherwise like `ask_question`, without a time limit."""
        return await self._ask(
            "sign_in",
            lambda key, at, until: MissingSignIn(key, at, until, server, url, scopes, is_step_up),
            check,
            math.inf,
        )

    async def _ask(
        self,
        kind: DecisionKind,
        made: Callable[[str, float, float | None], Decision],
        check: _Check | None,
        expires: float,
        caller: Attendance | None = None,
        *,
        is_here: bool = True,
    ) -> Resolution:
        if caller is None and not (is_here and self.can_answer(kind)):
            return Resolution(Outcome.UNANSWERED)
        loop = asyncio.get_running_loop()
        asked_at = time.time()
        deadline = None if math.isinf(expires) else asked_at + expires - loop.time()
        decision = made(f"{self._prefix}-{next(self._numbers)}", asked_at, deadline)
        pending = _Pending(decision, check, expires, loop.create_future(), contextvars.copy_context())
        pending.is_here, pending.caller = is_here, caller
        self._book.open(decision.id, pending)
        if is_here:
            self._on_event(DecisionAsked(decision))
        for answerer in self._asked(pending):
            self._put_to(pending, answerer)
        try:
            with anyio.CancelScope(deadline=expires):
                await pending.decided
            # An answer in the same turn of the loop as the deadline counts.
            return pending.resolution or self._settle(pending, Resolution(Outcome.UNANSWERED))
        finally:
            if pending.resolution is None:
                # The end of a call cancels its question. If both are out of time, a busy loop may cancel the question
                # first.
                outcome = Outcome.WITHDRAWN if loop.time() < expires else Outcome.UNANSWERED
                self._settle(pending, Resolution(outcome))

    def _asked(self, pending: _Pending) -> list[Attendance]:
        """The places that can answer this decision."""
        here = self._answerers if pending.is_here else []
        places = [*here, *([] if pending.caller is None else [pending.caller])]
        return [place for place in places if pending.decision.kind in place.kinds]

    def _put_to(self, pending: _Pending, answerer: Attendance) -> None:
        if answerer.ask is None:
            return
        asking = self._run(pending, answerer, answerer.ask)
        task = asyncio.get_running_loop().create_task(asking, context=pending.context.copy())
        pending.asking[answerer] = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, pending: _Pending, answerer: Attendance, ask: AskHandler) -> None:
        decision = pending.decision
        try:
            # No deadline here: the handler is cancelled when the decision is made, and can then say how it ended.
            answer = await ask(decision)
            if answer is not None:
                self.answer(decision.id, answer, by=answerer.name)
        except AlreadyDecidedError:
            return
        except SMCPError as error:
            pending.error = error
        except Exception as error:
            # A boundary: the handler is not ours.
            about = decision.id if decision.call is None else in_log(decision.call.req_id)
            logger.exception("%s could not be asked for the %s of %s", answerer.name, decision.kind, about)
            pending.error = error
        if pending.resolution is None:
            pending.silent.add(answerer)
            self._look_after(pending)

    def _look_after(self, pending: _Pending) -> None:
        """After somebody came, went, or had no answer: end the decision if nobody can answer it any more."""
        if pending.grace is not None:
            pending.grace.cancel()
            pending.grace = None
        if any(place not in pending.silent for place in self._asked(pending)):
            return
        outcome = Outcome.UNANSWERED if pending.error is None else Outcome.FAILED
        resolution = Resolution(outcome, error=pending.error)
        if pending.somebody_went:
            loop = asyncio.get_running_loop()
            pending.grace = loop.call_later(self._grace, self._settle, pending, resolution)
        else:
            self._settle(pending, resolution)

    def _settle(self, pending: _Pending, resolution: Resolution) -> Resolution:
        """Every decision ends here."""
        decision = pending.decision
        self._book.settle(decision.id, resolution)
        pending.resolution = resolution
        if pending.grace is not None:
            pending.grace.cancel()
        for task in pending.asking.values():
            if task is not asyncio.current_task():
                task.cancel()
        if not pending.decided.done():
            pending.decided.set_result(None)
        if pending.is_here:
            self._on_event(
                DecisionDecided(
                    decision.id,
                    decision.kind,
                    resolution.outcome,
                    resolution.by,
                    resolution.always,
                    resolution.reason,
                    resolution.rule,
                )
            )
        elif isinstance(decision, Question) and pending.caller is not None:
            about = decision.id if decision.call is None else decision.call.id
            asker = (decision.call and decision.call.asker) or Asker(pending.caller.name)
            said = (asker.name, resolution.outcome.value, decision.message)
            self._on_event(QuestionPassedOn(about, decision.server, *said, asker.office, asker.key, asker.is_claimed))
        return resolution
