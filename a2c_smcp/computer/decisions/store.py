"""The decisions of one Computer: who asks waits here, whoever can answer says so here, and the first answer counts.

    with computer.decisions.attend("terminal", ask=…): ...      I am here, and can be asked
    computer.decisions.answer(decision_id, Accepted(), by=…)    what a person decided

It knows no terminal and no browser. Everything is called on the event loop of the Computer.
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

__all__ = ["GRACE_SECONDS", "AskHandler", "Attendance", "DecisionStore"]

logger = logging.getLogger(__name__)

#: How long a decision waits for somebody to come when the last one who could answer has gone: a page may be reloading.
GRACE_SECONDS: Final = 30.0

#: Asks a person. Returns `None` if it has no answer: others may have one. It is cancelled when it is not needed any
#: more; `DecisionStore.resolution` then says who decided, and how.
AskHandler: TypeAlias = Callable[[Decision], Awaitable[DecisionAnswer | None]]
_Check: TypeAlias = Callable[[Any], None]
_UNKNOWN: Final = ToolDefinition()


class Attendance:
    """Somebody who can answer, while inside `with`. Made by `DecisionStore.attend`."""

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
        """From now on this one can be asked, also what is pending already."""
        self._store._come(self)

    def end(self) -> None:
        """This one is not there any more. Safe to call twice."""
        self._store._go(self)


@dataclass(slots=True, eq=False)
class _Pending:
    decision: Decision
    check: _Check | None
    expires: float
    """By the loop's clock."""
    decided: asyncio.Future[None]
    context: contextvars.Context
    """Of the task that asks: who is asked may look there for what the asker knows."""
    asking: dict[Attendance, asyncio.Task[None]] = field(default_factory=dict)
    silent: set[Attendance] = field(default_factory=set)
    """They were asked, and have no answer."""
    somebody_went: bool = False
    error: Exception | None = None
    grace: asyncio.TimerHandle | None = None
    resolution: Resolution | None = None


def _ignore(*_: object) -> None:
    pass


class DecisionStore:
    """What waits for a person's decision, whoever can make it, and `always`.

    `on_event` is called for what is asked and decided, and for who comes and goes; it must return at once.
    """

    def __init__(
        self,
        on_event: Callable[[DecisionEvent], None] = _ignore,
        *,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self.allow_all = False
        """Whether every call may run without a confirmation."""
        self._on_event = on_event
        self._grace = grace
        self._book = DecisionBook()
        self._pending: dict[str, _Pending] = {}
        self._answerers: list[Attendance] = []
        self._answerable: frozenset[DecisionKind] = frozenset()
        #: What each tool was when `always` was said of it.
        self._allowed: dict[tuple[SERVER_NAME, TOOL_NAME], ToolDefinition] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._prefix = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    # --- for whoever answers

    @property
    def pending(self) -> tuple[Decision, ...]:
        """What waits to be decided, oldest first."""
        return self._book.pending

    def answer(self, decision_id: str, answer: DecisionAnswer, *, by: str, digest: str | None = None) -> None:
        """Decide. The first answer counts: a later one raises `AlreadyDecidedError`, which says who decided and how.

        `by` is a name for people: `terminal`, `browser`. With the `digest` of what was shown, an answer for something
        else raises `DecisionChangedError`. `NotFoundError` if no decision has this id. A value that is not allowed
        raises what is wrong with it, and nothing is decided.
        """
        decision = self._book.find(decision_id)
        pending = self._pending[decision_id]
        if asyncio.get_running_loop().time() >= pending.expires:
            self._settle(pending, Resolution(Outcome.UNANSWERED))
            self._book.find(decision_id)  # raises
        check_answer(decision, answer, digest)
        if pending.check is not None and isinstance(answer, Accepted):
            pending.check(answer.value)
        self._settle(pending, resolution_by(by, answer))

    def withdraw(self, decision_id: str) -> None:
        """End a decision that is not needed any more; raises like `answer`."""
        self._book.find(decision_id)
        self._settle(self._pending[decision_id], Resolution(Outcome.WITHDRAWN))

    def resolution(self, decision_id: str) -> Resolution | None:
        """How one of the last decisions ended, without the value that was given; `None` while it is pending."""
        return self._book.resolution(decision_id)

    def attend(self, name: str, kinds: Collection[DecisionKind] = KINDS, ask: AskHandler | None = None) -> Attendance:
        """Somebody who can answer decisions of these kinds: `with store.attend("terminal", ask=ask):`.

        `ask` is called in a task of its own for each of them, also for those that are pending, and is cancelled when
        somebody else was quicker. Without it, follow the Computer's events and call `answer`.
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
        for pending in tuple(self._pending.values()):
            if pending.decision.kind in answerer.kinds:
                self._put_to(pending, answerer)
                self._look_after(pending)
        self._tell()

    def _go(self, answerer: Attendance) -> None:
        if answerer not in self._answerers:
            return
        self._answerers.remove(answerer)
        for pending in tuple(self._pending.values()):
            if pending.decision.kind in answerer.kinds:
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
        """Run this tool without a confirmation from now on, as long as its server describes it like this."""
        if self._allowed.get((server, tool)) != definition:
            self._allowed[server, tool] = definition
            self._on_event(AllowedChanged(self.allowed))

    def ask_again(self, server: SERVER_NAME, tool: TOOL_NAME | None = None) -> None:
        """Take `allow` back; without a tool, for all of the server."""
        taken_back = {pair for pair in self._allowed if pair[0] == server and tool in (None, pair[1])}
        if taken_back:
            self._allowed = {pair: said for pair, said in self._allowed.items() if pair not in taken_back}
            self._on_event(AllowedChanged(self.allowed))

    def is_allowed(
        self, server: SERVER_NAME, tool: TOOL_NAME, definition: Callable[[], ToolDefinition] = lambda: _UNKNOWN
    ) -> bool:
        """Whether this tool needs no confirmation. `definition` is only called for a tool that was allowed: `always` is
        for what the person was shown, and not for what the server makes of it later.
        """
        if self.allow_all:
            return True
        said = self._allowed.get((server, tool))
        return said is not None and said.digest == definition().digest

    # --- for whoever asks

    async def ask_confirmation(
        self, call: WatchedCall, definition: ToolDefinition = _UNKNOWN, *, expires: float = math.inf
    ) -> Resolution:
        """Whether this call may run. Until `expires`, by the loop's clock; then it is `UNANSWERED`.

        `definition` is what the server says of the tool: the person is shown it, and the answer is for it.
        Cancelling the task that waits withdraws the decision. With nobody there it is `UNANSWERED` at once.
        """
        return await self._ask(
            lambda decision_id, asked_at, deadline: Confirmation(
                decision_id, asked_at, deadline, call, definition, self._allowed_before(call, definition)
            ),
            "confirmation",
            None,
            expires,
        )

    def _allowed_before(self, call: WatchedCall, definition: ToolDefinition) -> ToolDefinition | None:
        said = None if call.server is None or call.tool is None else self._allowed.get((call.server, call.tool))
        return said if said is not None and said.digest != definition.digest else None

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
    ) -> Resolution:
        """What the person answers to a server's question; its value fits `check`, which raises if one does not.

        Otherwise like `ask_confirmation`.
        """
        return await self._ask(
            lambda decision_id, asked_at, deadline: Question(
                decision_id, asked_at, deadline, server, message, schema, url, call, calls
            ),
            "question",
            check,
            expires,
        )

    async def ask_input(
        self,
        definition: MCPServerInput,
        servers: tuple[SERVER_NAME, ...],
        *,
        check: Callable[[Any], None] | None = None,
        expires: float = math.inf,
    ) -> Resolution:
        """The value of an input that these servers need. Otherwise like `ask_question`."""
        return await self._ask(
            lambda decision_id, asked_at, deadline: MissingInput(decision_id, asked_at, deadline, definition, servers),
            "input",
            check,
            expires,
        )

    async def _ask(
        self,
        made: Callable[[str, float, float | None], Decision],
        kind: DecisionKind,
        check: _Check | None,
        expires: float,
    ) -> Resolution:
        if not self.can_answer(kind):
            return Resolution(Outcome.UNANSWERED)
        loop = asyncio.get_running_loop()
        asked_at = time.time()
        deadline = None if math.isinf(expires) else asked_at + expires - loop.time()
        decision = made(f"{self._prefix}-{next(self._numbers)}", asked_at, deadline)
        pending = _Pending(decision, check, expires, loop.create_future(), contextvars.copy_context())
        self._book.open(decision)
        self._pending[decision.id] = pending
        self._on_event(DecisionAsked(decision))
        for answerer in tuple(self._answerers):
            if kind in answerer.kinds:
                self._put_to(pending, answerer)
        try:
            with anyio.CancelScope(deadline=expires):
                await pending.decided
            # The answer may have come in the same turn of the loop as the deadline: then it counts.
            return pending.resolution or self._settle(pending, Resolution(Outcome.UNANSWERED))
        finally:
            if pending.resolution is None:
                # A call's end cancels its question, too: a busy loop may get to that first, after both deadlines.
                outcome = Outcome.WITHDRAWN if loop.time() < expires else Outcome.UNANSWERED
                self._settle(pending, Resolution(outcome))

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
            # It has no deadline of its own: it is cancelled when the decision is settled, and can say what came of it.
            answer = await ask(decision)
            if answer is not None:
                self.answer(decision.id, answer, by=answerer.name)
        except AlreadyDecidedError:
            return
        except SMCPError as error:
            pending.error = error
        except Exception as error:
            # A boundary: whoever asks the person is not ours.
            about = decision.id if decision.call is None else in_log(decision.call.req_id)
            logger.exception("asking %s for the %s of %s failed", answerer.name, decision.kind, about)
            pending.error = error
        if pending.resolution is None:
            pending.silent.add(answerer)
            self._look_after(pending)

    def _look_after(self, pending: _Pending) -> None:
        """Whoever can answer came, went, or has no answer: end what nobody can answer any more."""
        if pending.grace is not None:
            pending.grace.cancel()
            pending.grace = None
        if any(pending.decision.kind in it.kinds and it not in pending.silent for it in self._answerers):
            return
        outcome = Outcome.UNANSWERED if pending.error is None else Outcome.FAILED
        resolution = Resolution(outcome, error=pending.error)
        if pending.somebody_went:
            loop = asyncio.get_running_loop()
            pending.grace = loop.call_later(self._grace, self._settle, pending, resolution)
        else:
            self._settle(pending, resolution)

    def _settle(self, pending: _Pending, resolution: Resolution) -> Resolution:
        """The one place where a decision is made."""
        decision = pending.decision
        self._book.settle(decision.id, resolution)
        del self._pending[decision.id]
        pending.resolution = resolution
        if pending.grace is not None:
            pending.grace.cancel()
        for task in pending.asking.values():
            if task is not asyncio.current_task():
                task.cancel()
        if not pending.decided.done():
            pending.decided.set_result(None)
        self._on_event(
            DecisionDecided(
                decision.id, decision.kind, resolution.outcome, resolution.by, resolution.always, resolution.reason
            )
        )
        if resolution.always and isinstance(decision, Confirmation):
            self._allow_also(decision, resolution)
        return resolution

    def _allow_also(self, decision: Confirmation, resolution: Resolution) -> None:
        """`always` is also the answer for the calls of that tool that wait already, shown with the same words."""
        call, definition = decision.call, decision.definition
        assert call.server is not None
        assert call.tool is not None
        self.allow(call.server, call.tool, definition)
        for other in tuple(self._pending.values()):
            asked = other.decision
            if not isinstance(asked, Confirmation) or asked.definition.digest != definition.digest:
                continue
            if (asked.call.server, asked.call.tool) == (call.server, call.tool):
                self._settle(other, Resolution(Outcome.ACCEPTED, resolution.by))
