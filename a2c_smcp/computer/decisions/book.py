"""What a person decides, as values, and the book of what is pending. Pure: no event loop, no clock, no terminal.

    Confirmation    may this call run?
    Question        what a tool asks while it runs: a form, or a page to visit
    MissingInput    a value that a config leaves open

A decision is made once, by whoever answers first. The others get an error that says who decided, and how:

    BadRequestError
    ├── AlreadyDecidedError     somebody else was quicker, or nobody answered in time, or it is not needed any more
    └── DecisionChangedError    the answer is for something else than what is asked

The values that people give stay out of everything that is shown: no event and no `repr` has them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

from a2c_smcp.computer.calls.log import WatchedCall, digest_of
from a2c_smcp.computer.mcp_clients.masking import input_view
from a2c_smcp.computer.mcp_clients.model import MCPServerInput
from a2c_smcp.errors import BadRequestError, NotFoundError
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.json_sizes import weight
from a2c_smcp.utils.text import cut, harmless

__all__ = [
    "CALLBACK",
    "KINDS",
    "MAX_REASON",
    "Accepted",
    "AlreadyDecidedError",
    "Confirmation",
    "Decision",
    "DecisionAnswer",
    "DecisionBook",
    "DecisionChangedError",
    "DecisionKind",
    "Declined",
    "Dismissed",
    "MissingInput",
    "Outcome",
    "Question",
    "Resolution",
    "ToolDefinition",
    "check_answer",
    "resolution_by",
    "weight_of_decision",
]

DecisionKind: TypeAlias = Literal["confirmation", "question", "input"]
KINDS: Final[frozenset[DecisionKind]] = frozenset(get_args(DecisionKind))

#: Who decided, if it was a callback of the program that uses the Computer.
CALLBACK: Final = "callback"
#: How many characters of a reason the agent reads.
MAX_REASON: Final = 1000

#: How many decided ones are remembered, so that an answer that comes late is told who decided.
_REMEMBERED: Final = 1000


# --- what is asked


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What an MCP server says of its tool, as the person is shown it beside a call."""

    title: str | None = None
    description: str = ""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """MCP's hints, by their names there: `destructiveHint`, `readOnlyHint`, `openWorldHint`."""
    schema_digest: str = ""
    """Stands for the schema of its arguments."""
    digest: str = ""
    """Stands for all of it, the schema included."""
    is_dangerous: bool = False
    """By its own annotation, or because the person's config has the tag `dangerous` for it."""

    def changes_since(self, before: "ToolDefinition") -> tuple[str, ...]:
        """Which parts are different from what the server said before: for the person who allowed that."""
        parts = {
            "title": self.title != before.title,
            "description": self.description != before.description,
            "hints": self.annotations != before.annotations,
            "arguments": self.schema_digest != before.schema_digest,
        }
        return tuple(part for part, is_different in parts.items() if is_different)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """May this call run? Asked for tools that have no `auto_apply`."""

    kind: ClassVar[DecisionKind] = "confirmation"
    id: str
    asked_at: float
    """Unix time."""
    deadline: float | None
    """Unix time; `None` for no limit."""
    call: WatchedCall
    definition: ToolDefinition = ToolDefinition()
    allowed_before: ToolDefinition | None = None
    """What `always` was said of, if the server describes the tool in another way since."""

    @property
    def digest(self) -> str:
        """Stands for the exact call, and for what the server said of the tool: all that the person is shown."""
        return digest_of([self.call.digest, self.definition.digest])


@dataclass(frozen=True, slots=True)
class Question:
    """What an MCP server asks the person while a tool runs: to fill in a form, or to visit a page.

    A form has a `schema`: an object of plain fields, as MCP's elicitation has it. A page has a `url`.
    """

    kind: ClassVar[DecisionKind] = "question"
    id: str
    asked_at: float
    """Unix time."""
    deadline: float | None
    """Unix time; `None` for no limit."""
    server: SERVER_NAME
    message: str
    schema: Mapping[str, Any] | None
    url: str | None
    call: WatchedCall | None
    """The call that it belongs to, where that is certain."""
    calls: tuple[WatchedCall, ...]
    """The calls that ran on the server when it asked: it belongs to one of them."""

    @property
    def digest(self) -> str:
        """Stands for all that is shown of it: server, message and form or URL."""
        return digest_of([self.server, self.message, self.schema, self.url])


@dataclass(frozen=True, slots=True)
class MissingInput:
    """The value of an input that a server's config needs, and that nothing else has given."""

    kind: ClassVar[DecisionKind] = "input"
    id: str
    asked_at: float
    """Unix time."""
    deadline: float | None
    """Unix time; `None` for no limit."""
    definition: MCPServerInput = field(repr=False)
    """As written, so it may hold a secret default; show `view`."""
    servers: tuple[SERVER_NAME, ...]
    """Those whose configs refer to it."""

    @property
    def input_id(self) -> str:
        """The id in `${input:id}`."""
        return self.definition.id

    @property
    def view(self) -> dict[str, Any]:
        """The definition as it may be shown."""
        return input_view(self.definition)

    @property
    def call(self) -> None:
        """No call asks for an input."""

    @property
    def digest(self) -> str:
        """Stands for all that is shown of it: the input's definition, and who needs it."""
        return digest_of([self.view, self.servers])


Decision: TypeAlias = Confirmation | Question | MissingInput


def weight_of_decision(decision: Decision, most: int) -> int:
    """About how many bytes it holds that somebody else has chosen; of more than `most`, anything above that."""
    match decision:
        case Confirmation():
            return weight(decision.call.arguments, most)
        case Question():
            return weight([decision.message, decision.schema, *(call.arguments for call in decision.calls)], most)
        case MissingInput():
            return 0


# --- what is answered


@dataclass(frozen=True, slots=True)
class Accepted:
    """A yes: the call may run, the form is filled in, the page was visited, the input has this value."""

    value: Any = field(default=None, repr=False)
    """The form's fields, or the input's value; may be a secret."""
    always: bool = False
    """Of a confirmation: yes for this tool from now on, as long as the Computer lives and the server's config stays."""


@dataclass(frozen=True, slots=True)
class Declined:
    """A person's no."""

    reason: str = ""
    """Why, in the person's words: the agent reads them. Of more than 1,000 characters the beginning."""


@dataclass(frozen=True, slots=True)
class Dismissed:
    """A person closed the question without an answer."""


DecisionAnswer: TypeAlias = Accepted | Declined | Dismissed


# --- what came of it


class Outcome(StrEnum):
    """How a decision ended."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    """A person said no."""
    DISMISSED = "dismissed"
    """A person closed it without an answer."""
    UNANSWERED = "unanswered"
    """Nobody answered in time, or nobody was there any more. Not a refusal."""
    WITHDRAWN = "withdrawn"
    """It is not needed any more: the call was cancelled, or the server stopped."""
    FAILED = "failed"
    """The only place that could have answered failed."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """How a decision ended, and by whom: `terminal`, `browser`, `callback`, or nobody."""

    outcome: Outcome
    by: str | None = None
    always: bool = False
    value: Any = field(default=None, repr=False)
    """What was given, for the one who asked; may be a secret."""
    error: Exception | None = field(default=None, repr=False)
    """Why asking failed."""
    reason: str = ""
    """Why the person said no, in their words, if they gave some."""

    def __str__(self) -> str:
        if self.by is None:
            return _BY_NOBODY.get(self.outcome, self.outcome.value)
        return f"{self.outcome.value}{' always' if self.always else ''} by {self.by}"


_BY_NOBODY: Final = {
    Outcome.UNANSWERED: "nobody answered in time",
    Outcome.WITHDRAWN: "it is not needed any more",
    Outcome.FAILED: "asking for it failed",
}


class AlreadyDecidedError(BadRequestError):
    """This was decided before the answer came; the message says by whom, and how."""

    title = "Already Decided"

    def __init__(self, decision_id: str, resolution: Resolution) -> None:
        super().__init__(
            f"This was decided already: {resolution}",
            {"decision_id": decision_id, "outcome": resolution.outcome.value, "by": resolution.by},
        )

    @property
    def decision_id(self) -> str | None:
        """Which decision it was."""
        return self.details.get("decision_id")

    @property
    def outcome(self) -> str | None:
        """One of the values of `Outcome`."""
        return self.details.get("outcome")

    @property
    def by(self) -> str | None:
        """Who decided; `None` if nobody did."""
        return self.details.get("by")


class DecisionChangedError(BadRequestError):
    """The digest in an answer is not that of what is asked: the person was shown something else."""

    title = "Decision Changed"

    def __init__(self, decision_id: str) -> None:
        super().__init__(
            "What was shown is not what is asked; nothing was decided. Look at it again", {"decision_id": decision_id}
        )


def check_answer(decision: Decision, answer: DecisionAnswer, digest: str | None = None) -> None:
    """Raise if the answer is for something else than this, or makes no sense for it."""
    if digest is not None and digest != decision.digest:
        raise DecisionChangedError(decision.id)
    if isinstance(answer, Accepted) and answer.always and not isinstance(decision, Confirmation):
        raise BadRequestError("`always` is for confirmations only", {"decision_id": decision.id})


def resolution_by(by: str, answer: DecisionAnswer) -> Resolution:
    """What an answer makes of a decision."""
    match answer:
        case Accepted(value=value, always=always):
            return Resolution(Outcome.ACCEPTED, by, always, value)
        case Declined(reason=reason):
            return Resolution(Outcome.DECLINED, by, reason=_plain_words(reason))
        case Dismissed():
            return Resolution(Outcome.DISMISSED, by)


def _plain_words(text: str) -> str:
    """What a person gave as a reason: bounded, and without control characters but line breaks."""
    return cut(harmless(text.replace("\t", " ")).strip(), MAX_REASON - 1)


class DecisionBook:
    """What is pending, and how the last ones ended."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._pending: dict[str, Decision] = {}
        self._decided: BoundedDict[str, Resolution] = BoundedDict(remembered)

    @property
    def pending(self) -> tuple[Decision, ...]:
        """Oldest first."""
        return tuple(self._pending.values())

    def open(self, decision: Decision) -> None:
        """A new one."""
        self._pending[decision.id] = decision

    def find(self, decision_id: str) -> Decision:
        """A pending one, or `AlreadyDecidedError`, or `NotFoundError`."""
        if (decision := self._pending.get(decision_id)) is not None:
            return decision
        if (resolution := self._decided.get(decision_id)) is not None:
            raise AlreadyDecidedError(decision_id, resolution)
        raise NotFoundError("no decision has this id", {"decision_id": decision_id})

    def settle(self, decision_id: str, resolution: Resolution) -> None:
        """A pending one is decided, once: the second time this raises like `find`, and changes nothing."""
        self.find(decision_id)
        del self._pending[decision_id]
        # An error, too, holds on to values: those in the frames of its traceback.
        self._decided.put(decision_id, replace(resolution, value=None, error=None))

    def resolution(self, decision_id: str) -> Resolution | None:
        """How one ended, without value and error; `None` for one that is pending, or that is not remembered."""
        return self._decided.get(decision_id)
