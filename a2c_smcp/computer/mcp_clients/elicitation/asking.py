"""The questions that an MCP server asks while its tools run, and their way to a person and back.

Knows MCP's elicitation in both eras, and one session. The `PersonAsker` knows who the person is, and how to ask them.

Before 2026-07-28 a question is a request of the server. It does not say which call it belongs to: that is certain only
if exactly one call runs. Since then a question is the answer to a call, and the call is sent again with what the person
said.

A question ends with the calls that it may belong to, and with the session.
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

import anyio
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ElicitationRequiredErrorData,
    ElicitCompleteNotification,
    ElicitRequest,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequest,
)
from pydantic import ValidationError

from a2c_smcp.computer.calls.progress import CallProgress
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.model import QuestionPlace
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.utils.forms import FieldValue, InvalidFormError, QuestionForm, parse_form
from a2c_smcp.utils.text import first_invisible_character, has_control_characters

__all__ = [
    "ALL_MODES",
    "NO_MODES",
    "AskedCall",
    "GivenAnswer",
    "PersonAsker",
    "QuestionMode",
    "Questions",
    "ServerQuestion",
    "check_question",
    "is_discreet",
]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _QuestionBounds:
    """How many questions a person is asked at most."""

    waiting: int = 16
    """How many questions of one server may wait. Every question above this is answered `cancel`."""
    asked: int = 10
    """How many questions one call may ask before 2026-07-28. The same number holds for all questions without a call."""


_MOST: Final = _QuestionBounds()
#: What a question asks a person to do: fill in a form, or visit a URL.
QuestionMode: TypeAlias = Literal["form", "url"]
ALL_MODES: Final[frozenset[QuestionMode]] = frozenset({"form", "url"})
NO_MODES: Final[frozenset[QuestionMode]] = frozenset()
_RELATED_TASK: Final = "io.modelcontextprotocol/related-task"


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What a person said. `decline` means no; `cancel` means that nobody answered, for any reason."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, FieldValue] | None = field(default=None, repr=False)
    """What was filled in. It is for the server only: not for logs, events or history."""


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """A server's question to the person: a form to fill in, or a URL to visit."""

    server: str
    message: str
    schema: Mapping[str, Any] | None = None
    form: QuestionForm | None = None
    """The checked form of the schema; a URL has none."""
    url: str | None = None
    call: object | None = None
    """The call that the question belongs to, if that is certain."""
    calls: tuple[object, ...] = ()
    """The calls that the question may belong to: those that run on the server."""
    where: QuestionPlace = "here"
    """Where the server's owner wants it to be asked."""
    is_discreet: bool = True
    """Whether its form and its URL hold no secret of the computer. The message never does."""
    key: str | None = None
    """The server's own name for the question, since 2026-07-28."""
    tell_wait: Callable[[], None] = field(default=ignore, repr=False, compare=False)
    """Call this when the person at the computer is asked: the call's agent then hears that its call waits for them."""

    @property
    def mode(self) -> QuestionMode:
        return "form" if self.url is None else "url"


class PersonAsker(Protocol):
    """Puts questions to a person. The asker chooses the values that stand for calls; this module only passes them
    on.
    """

    def modes(self, where: QuestionPlace, call: object | None) -> frozenset[QuestionMode]:
        """The questions that somebody can answer now: at the computer, or where this call came from."""

    async def ask(self, question: ServerQuestion) -> GivenAnswer:
        """The person's answer. Cancelling this withdraws the question."""

    def done(self, question: ServerQuestion) -> None:
        """The server says that the person has done what the question asked for. That answers the question."""


class AskedCall:
    """A call that runs on the server and may ask. `call` is the asker's value for it."""

    __slots__ = ("asked", "call", "ends", "progress", "task_id")

    def __init__(self, call: object | None, progress: CallProgress | None) -> None:
        self.call = call
        self.progress = progress
        self.asked = 0
        self.ends = math.inf
        """When it is out of time, by the clock of the event loop."""
        self.task_id: str | None = None
        """The task as which the server runs the call. Its questions name the task."""


@dataclass(eq=False, slots=True)
class _Waiting:
    question: ServerQuestion
    elicitation_id: str | None
    calls: set[AskedCall]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class Questions:
    """The questions of one session. `elicit` takes those of MCP's older era."""

    def __init__(
        self,
        server: str,
        asker: PersonAsker | None = None,
        redaction: Callable[[str], str] = str,
        where: QuestionPlace = "here",
    ) -> None:
        self._server = server
        self._asker = asker
        self._where = where
        self._redaction = redaction
        self._calls: list[AskedCall] = []
        self._no_call = AskedCall(None, None)
        self._reads = 0
        self.is_modern = False
        """Whether the server speaks 2026-07-28. Then only calls may ask."""
        self.was_declared = False
        """Whether the handshake declared that somebody answers."""
        self._waiting: set[_Waiting] = set()

    def modes(self, call: object | None) -> frozenset[QuestionMode]:
        """The questions that somebody can answer now, for this call; `None` for a request that belongs to no call."""
        return NO_MODES if self._asker is None else self._asker.modes(self._where, call)

    def declares(self, method: str) -> frozenset[QuestionMode]:
        """The questions for which a request may declare that somebody answers them.

        A handshake of the older era holds for all later calls. If their agents may be asked, it declares all questions:
        one that nobody can answer is answered `cancel`.
        """
        if method == "resources/read":  # windows and documents are read in the background
            return NO_MODES
        if method != "initialize":
            return self.modes(None)
        modes = self.modes(None) if self._where == "here" or self._asker is None else ALL_MODES
        self.was_declared = bool(modes)
        return modes

    def is_missed_by(self, error: MCPError, call: object | None) -> bool:
        """Whether this call failed only because the server was told at its start that nobody answers, and somebody
        answers now.

        Since 2026-07-28 the server is told with every call.
        """
        required = error.data.get("requiredCapabilities") if isinstance(error.data, Mapping) else None
        return (
            error.code == MISSING_REQUIRED_CLIENT_CAPABILITY
            and isinstance(required, Mapping)
            and "elicitation" in required
            and not self.is_modern
            and not self.was_declared
            and bool(self.modes(call))
        )

    # --- what runs

    def begin(self, progress: CallProgress | None, call_of: object | None = None) -> AskedCall:
        """A call that may ask begins. The caller must `end` it. `call_of` is the asker's value for it."""
        call = AskedCall(call_of, progress)
        self._calls.append(call)
        return call

    def end(self, call: AskedCall) -> None:
        """The call has ended: questions that can belong to no other call are withdrawn."""
        self._calls.remove(call)
        for waiting in self._waiting:
            if call in waiting.calls:
                waiting.calls.discard(call)
                if not waiting.calls:
                    waiting.scope.cancel()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Enter this while a resource is read. Nobody is asked about that, because it happens in the background."""
        self._reads += 1
        try:
            yield
        finally:
            self._reads -= 1

    # --- before 2026-07-28

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
        """Answer a request of the server. Raises `MCPError` if it cannot be asked."""
        named = self._named_by(params)
        calls = named or list(self._calls)
        if self.is_modern or (self._reads and not calls):
            return self._unasked("a resource is read, and nobody is asked about that")
        # It is not known which of these calls asks. The question counts for the call that has asked least.
        asking = min(calls, key=lambda each: each.asked, default=self._no_call)
        if asking.asked >= _MOST.asked:
            return self._unasked(f"it has asked {_MOST.asked} times")
        asking.asked += 1
        is_certain = len(calls) == 1 and (bool(named) or not self._reads)
        return await self._ask(params, calls, calls[0] if is_certain else None)

    def _named_by(self, params: ElicitRequestParams) -> list[AskedCall]:
        """The call whose task asks, if the question names one."""
        related: Any = (params.meta or {}).get(_RELATED_TASK)
        task_id = related.get("taskId") if isinstance(related, Mapping) else None
        return [call for call in self._calls if task_id is not None and call.task_id == task_id]

    def on_message(self, message: object) -> None:
        """The server may say that the person has done what they were sent to a URL for."""
        if isinstance(message, ElicitCompleteNotification):
            for waiting in self._waiting:
                if waiting.elicitation_id == message.params.elicitation_id and self._asker is not None:
                    self._asker.done(waiting.question)

    async def visit_required(self, error: MCPError, call: AskedCall) -> None:
        """Have the person visit the URLs that a call was refused for (-32042). Raises `MCPError` if they do not."""
        try:
            required = ElicitationRequiredErrorData.model_validate(error.data).elicitations
        except ValidationError:
            raise error from None
        if not required or "url" not in self.modes(call.call):
            raise error
        requests = {str(number): ElicitRequest(params=visit) for number, visit in enumerate(required)}
        actions = {answer.action for answer in (await self.answer(requests, call)).values()}
        if actions != {"accept"}:
            why = "the person declined" if "decline" in actions else "nobody answered"
            raise MCPError(error.code, f"{error.message}: {why}")

    # --- since 2026-07-28

    async def answer(self, requests: Mapping[str, InputRequest], call: AskedCall) -> dict[str, ElicitResult]:
        """The answers to the questions of a call. All are asked at once. Raises `MCPError` if one cannot be asked."""
        if len(requests) > _MOST.waiting:
            text = f"the tool asks {len(requests)} questions at once; at most {_MOST.waiting} are allowed"
            raise MCPError(INTERNAL_ERROR, text)
        answers: dict[str, ElicitResult] = {}
        refusals: list[MCPError] = []

        async def ask(key: str, params: ElicitRequestParams, scope: anyio.CancelScope) -> None:
            try:
                answers[key] = await self._ask(params, [call], call, key)
            except MCPError as error:
                refusals.append(error)
                scope.cancel()

        asked = {key: request.params for key, request in requests.items() if isinstance(request, ElicitRequest)}
        if other := requests.keys() - asked.keys():
            method = requests[min(other)].method
            raise MCPError(INTERNAL_ERROR, f"the tool asks for {method}, and only forms and URLs can be answered here")
        async with anyio.create_task_group() as tasks:
            for key, params in asked.items():
                tasks.start_soon(ask, key, params, tasks.cancel_scope)
        if refusals:
            raise refusals[0]
        return answers

    # --- both

    async def _ask(
        self,
        params: ElicitRequestParams,
        calls: Sequence[AskedCall],
        call: AskedCall | None,
        key: str | None = None,
    ) -> ElicitResult:
        """The person's answer; `cancel` if nobody is there or too many questions wait. `MCPError` if it is invalid."""
        asker = self._asker
        if asker is None or params.mode not in asker.modes(self._where, None if call is None else call.call):
            return self._unasked("nobody can answer it")
        if len(self._waiting) >= _MOST.waiting:
            return self._unasked("too many of its questions wait already")
        question, elicitation_id = self._question(params, calls, call, key)
        waiting = _Waiting(question, elicitation_id, set(calls))
        self._waiting.add(waiting)
        answer = GivenAnswer("cancel")
        try:
            with waiting.scope:
                answer = await asker.ask(question)
        finally:
            self._waiting.discard(waiting)
        return self._result(question, answer)

    def _question(
        self, params: ElicitRequestParams, calls: Sequence[AskedCall], call: AskedCall | None, key: str | None
    ) -> tuple[ServerQuestion, str | None]:
        question = partial(
            ServerQuestion,
            self._server,
            self._redaction(params.message),
            call=call.call if call is not None else None,
            where=self._where,
            key=key,
            tell_wait=call.progress.waiting if call is not None and call.progress is not None else ignore,
            calls=tuple(each.call for each in calls if each.call is not None),
        )
        form = check_question(params)
        if isinstance(params, ElicitRequestURLParams):
            discreet = is_discreet(params.url, self._redaction)
            return question(url=params.url, is_discreet=discreet), params.elicitation_id
        schema = params.requested_schema
        return question(schema=schema, form=form, is_discreet=is_discreet(schema, self._redaction)), None

    def _unasked(self, why: str) -> ElicitResult:
        logger.debug("a question of MCP server %s is put to nobody: %s", self._server, why)
        return ElicitResult(action="cancel")

    def _result(self, question: ServerQuestion, answer: GivenAnswer) -> ElicitResult:
        logger.info("MCP server %s asked a question (%s): %s", self._server, question.mode, answer.action)
        if answer.action != "accept" or question.form is None:
            return ElicitResult(action=answer.action)
        return ElicitResult(action="accept", content=dict(question.form.check(answer.content)))


def check_question(params: ElicitRequestParams) -> QuestionForm | None:
    """The form of a question; a URL has none. Raises `MCPError` if a person cannot be shown it."""
    if isinstance(params, ElicitRequestURLParams):
        if (problem := _url_problem(params.url)) is not None:
            raise MCPError(INVALID_PARAMS, f"the URL of a question {problem}")
        return None
    try:
        return parse_form(params.requested_schema)
    except InvalidFormError as problem:
        raise MCPError(INVALID_PARAMS, f"the form of a question cannot be shown: {problem}") from None


def is_discreet(value: object, redaction: Callable[[str], str]) -> bool:
    """Whether this holds no secret of the computer. A checked form is not too deep for this."""
    match value:
        case str():
            return redaction(value) == value
        case Mapping():
            return all(is_discreet(each, redaction) for each in (*value.keys(), *value.values()))
        case list():
            return all(is_discreet(each, redaction) for each in value)
    return True


def _url_problem(url: str) -> str | None:
    """Why a person cannot be sent to this URL; `None` if they can. They must see exactly what they would open."""
    if len(url) > 8192:
        return f"has {len(url)} characters; at most 8192 are allowed"
    if has_control_characters(url) or first_invisible_character(url) or any(map(str.isspace, url)):
        return "has characters that are not allowed in URLs"
    try:
        parts = urlsplit(url)
    except ValueError:
        return "cannot be parsed"
    return (
        None
        if parts.scheme in ("http", "https") and parts.hostname
        else "is not an http:// or https:// URL with a host"
    )
