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
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import anyio

from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.decisions.book import (
    KINDS,
    Accepted,
    AlreadyDecidedError,
    Confirmation,
    Decision,
    DecisionAnswer,
    DecisionBook,
    DecisionKind,
    MissingInput,
    Outcome,
    Question,
    Resolution,
    ToolDefinition,
    check_answer,
    resolution_by,
)
from a2c_smcp.computer.mcp_clients.model import MCPServerInput
from a2c_smcp.computer.watching.events import (
    AllowedChanged,
    AnswerersChanged,
    DecisionAsked,
    DecisionDecided,
    DecisionEvent,
)
from a2c_smcp.errors import SMCPError
from a2c_smcp.types import SERVER_NAME, TOOL_NAME
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
    """The pending decisions, the places that can answer them, and the tools that need no confirmation.

    `on_event` is called when a decision is asked for or made, and when a place that can answer comes or goes. It must
    return at once. When the last such place has gone, a decision waits `grace` seconds for another one: a page may be
    reloading.
    """

    def __init__(self, on_event: Callable[[DecisionEvent], None] = _ignore, *, grace: float = 30.0) -> None:
        self.allow_all = False
        """Whether no call needs a confirmation."""
        self._on_event = on_event
        self._grace = grace
        self._book: DecisionBook[_Pending] = DecisionBook()
        self._answerers: list[Attendance] = []
        self._answerable: frozenset[DecisionKind] = frozenset()
        #: How each tool was described when the person answered `always`.
        self._allowed: dict[tuple[SERVER_NAME, TOOL_NAME], ToolDefinition] = {}
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
        self._settle(pending, resolution_by(by, answer))

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
        return kind in self._answerable

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
        self._answerable = frozenset().union(*(answerer.kinds for answerer in self._answerers))
        self._on_event(AnswerersChanged(self.answerers))

    # --- `always`

    @property
    def allowed(self) -> frozenset[tuple[SERVER_NAME, TOOL_NAME]]:
        """The tools, by server and the server's own name for them, for which `always` was answered."""
        return frozenset(self._allowed)

    def allow(self, server: SERVER_NAME, tool: TOOL_NAME, definition: ToolDefinition = _UNKNOWN) -> None:
        """Run this tool without a confirmation, as long as its server describes it like this."""
        if self._allowed.get((server, tool)) != definition:
            self._allowed[server, tool] = definition
            self._on_event(AllowedChanged(self.allowed))

    def ask_again(self, server: SERVER_NAME, tool: TOOL_NAME | None = None) -> None:
        """Take `allow` back for this tool; if no tool is given, for all tools of the server."""
        taken_back = {pair for pair in self._allowed if pair[0] == server and tool in (None, pair[1])}
        if taken_back:
            self._allowed = {pair: said for pair, said in self._allowed.items() if pair not in taken_back}
            self._on_event(AllowedChanged(self.allowed))

    def is_allowed(
        self, server: SERVER_NAME, tool: TOOL_NAME, definition: Callable[[], ToolDefinition] = lambda: _UNKNOWN
    ) -> bool:
        """Whether this tool needs no confirmation. If its server has changed its description, it needs one again.

        `definition` is called only for a tool that was allowed.
        """
        if self.allow_all:
            return True
        said = self._allowed.get((server, tool))
        return said is not None and said.digest == definition().digest

    # --- for those who need a decision

    async def ask_confirmation(
        self, call: WatchedCall, definition: ToolDefinition = _UNKNOWN, *, expires: float = math.inf
    ) -> Resolution:
        """Wait for a person to say whether this call may run. `definition` is the tool's description, which is
        shown.

        At `expires`, by the loop's clock, the decision ends `UNANSWERED`. If nobody can answer, it ends so at once.
        Cancelling the task that waits withdraws the decision.
        """
        said = None if call.server is None or call.tool is None else self._allowed.get((call.server, call.tool))
        before = said if said is not None and said.digest != definition.digest else None
        return await self._ask(
            "confirmation", lambda key, at, until: Confirmation(key, at, until, call, definition, before), None, expires
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
    ) -> Resolution:
        """Wait for the person's answer to a server's question. `check` raises for a value that does not fit.

        `caller` is asked for this decision alone, by its name. Unless the question `is_here`, nobody else is asked or
        told of it. Otherwise like `ask_confirmation`.
        """
        asked = None if caller is None else Attendance(self, caller[0], frozenset({"question"}), caller[1])
        return await self._ask(
            "question",
            lambda key, at, until: Question(key, at, until, server, message, schema, url, call, calls),
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
                    decision.id, decision.kind, resolution.outcome, resolution.by, resolution.always, resolution.reason
                )
            )
        if resolution.always and isinstance(decision, Confirmation):
            self._allow_also(decision, resolution)
        return resolution

    def _allow_also(self, decision: Confirmation, resolution: Resolution) -> None:
        """`always` also allows the pending calls of that tool that show the same description."""
        call, definition = decision.call, decision.definition
        assert call.server is not None
        assert call.tool is not None
        self.allow(call.server, call.tool, definition)
        for other in self._book.pending:
            asked = other.decision
            if not isinstance(asked, Confirmation) or asked.definition.digest != definition.digest:
                continue
            if (asked.call.server, asked.call.tool) == (call.server, call.tool):
                self._settle(other, Resolution(Outcome.ACCEPTED, resolution.by))
