"""What a person decides, as values, and the book of pending decisions. Pure: no event loop, no clock, no terminal.

    Confirmation    may this call run?
    Question        a tool that runs asks the person to fill in a form, or to visit a page
    MissingInput    a server's config needs a value
    MissingSignIn   a remote server wants the person to sign in

The first answer decides. A later answer raises an error:

    BadRequestError
    ├── AlreadyDecidedError     it was decided before, or nobody answered in time, or it is not needed any more
    └── DecisionChangedError    the person was shown something else

Values that people give may be secrets: no event and no `repr` shows them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, get_args
from urllib.parse import urlsplit

from a2c_smcp.computer.calls.log import WatchedCall, digest_of
from a2c_smcp.computer.mcp_clients.masking import input_view
from a2c_smcp.computer.mcp_clients.model import MCPServerInput
from a2c_smcp.computer.rules.reads import RuledRead
from a2c_smcp.errors import BadRequestError, NotFoundError
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.json_sizes import weight
from a2c_smcp.utils.text import cut, harmless

__all__ = [
    "CALLBACK",
    "KINDS",
    "MAX_REASON",
    "RULE",
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
    "MissingSignIn",
    "Outcome",
    "Question",
    "Resolution",
    "ToolDefinition",
    "check_answer",
    "makes_rule",
    "plain_reason",
    "resolution_by",
    "weight_of_decision",
]

DecisionKind: TypeAlias = Literal["confirmation", "question", "input", "sign_in"]
KINDS: Final[frozenset[DecisionKind]] = frozenset(get_args(DecisionKind))

#: The name of a program's callbacks among the places that decide.
CALLBACK: Final = "callback"


class _DecidedByRule(str):
    """An object of its own: the name of a place may have the same letters."""

    __slots__ = ()


#: Who decided, if a rule did while a person was asked. Compare with `is`.
RULE: Final = _DecidedByRule("rule")
#: How many characters of a person's reason the agent reads.
MAX_REASON: Final = 1000


# --- what is asked


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """How an MCP server describes its tool. The person sees this description beside a call."""

    title: str | None = None
    description: str = ""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """MCP's hints, by MCP's names: `destructiveHint`, `readOnlyHint`, `openWorldHint`."""
    schema_digest: str = ""
    """The digest of the schema of its arguments."""
    digest: str = ""
    """The digest of the whole tool: its names, its description, that schema, and where its server comes from."""
    schema: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The schema of its arguments."""
    server: SERVER_NAME = ""
    source: str = field(default="", repr=False)
    """Where its server comes from, as JSON without secrets: a command, or a URL."""
    source_digest: str = ""
    """The digest of the same with secrets."""
    is_dangerous: bool = False
    """Whether the tool is dangerous, by its hints or by the tag `dangerous` in the person's config."""

    def changes_since(self, before: "ToolDefinition") -> tuple[str, ...]:
        """The parts that differ from an earlier description, for the person who allowed the tool with that
        description.
        """
        parts = {
            "title": self.title != before.title,
            "description": self.description != before.description,
            "hints": self.annotations != before.annotations,
            "arguments": self.schema_digest != before.schema_digest,
            "server": self.server != before.server,
            "source": self.source_digest != before.source_digest,
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
    """The tool that a rule was made for, if it has changed since. It is empty if nobody remembers that tool."""
    asked_by: str | None = None
    """The rule that says that a person must be asked, by its id."""
    reads: RuledRead | None = None
    """What an agent wants to read. Then the `call` stands for the read, and no tool runs."""

    @property
    def digest(self) -> str:
        """The digest of all that the person is shown: the exact call, and the tool's description."""
        return digest_of([self.call.digest, self.definition.digest])


@dataclass(frozen=True, slots=True)
class Question:
    """An MCP server asks the person, while a tool runs, to fill in a form or to visit a page.

    A form has a `schema`, an object of plain fields as in MCP's elicitation. A page has a `url`.
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
    """The call that it belongs to; `None` if that is not certain."""
    calls: tuple[WatchedCall, ...]
    """The calls that ran on the server when it asked. The question belongs to one of them."""
    key: str | None = None
    """The server's own name for the question, which people are not shown."""

    @property
    def digest(self) -> str:
        """The digest of all that the person is shown: server, message, and form or URL."""
        return digest_of([self.server, self.message, self.schema, self.url])


@dataclass(frozen=True, slots=True)
class MissingInput:
    """A server's config needs the value of an input, and only a person can give it."""

    kind: ClassVar[DecisionKind] = "input"
    id: str
    asked_at: float
    """Unix time."""
    deadline: float | None
    """Unix time; `None` for no limit."""
    definition: MCPServerInput = field(repr=False)
    """As written, perhaps with a secret default; show `view` instead."""
    servers: tuple[SERVER_NAME, ...]
    """The servers whose configs refer to it."""

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
        """The digest of all that the person is shown: the input's definition, and the servers that need it."""
        return digest_of([self.view, self.servers])


@dataclass(frozen=True, slots=True)
class MissingSignIn:
    """A remote server wants the person to sign in. The person opens the address in a browser.

    The decision is made when the browser comes back to this computer. If it cannot, because it runs elsewhere, the
    answer is the address that it ended up at.
    """

    kind: ClassVar[DecisionKind] = "sign_in"
    id: str
    asked_at: float
    """Unix time."""
    deadline: float | None
    """Unix time; `None` for no limit."""
    server: SERVER_NAME
    url: str = field(repr=False)
    """The address to open, as it is."""
    scopes: tuple[str, ...] = ()
    """The rights that are asked for, by the issuer's names."""
    is_step_up: bool = False
    """Whether a running call needs more rights than the last sign-in gave."""

    @property
    def host(self) -> str:
        """Where the person signs in."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def call(self) -> None:
        """It belongs to a server, not to a call."""

    @property
    def digest(self) -> str:
        """The digest of all that the person is shown: server, address and rights."""
        return digest_of([self.server, self.url, self.scopes, self.is_step_up])


Decision: TypeAlias = Confirmation | Question | MissingInput | MissingSignIn


def weight_of_decision(decision: Decision, most: int) -> int:
    """About how many bytes servers, agents and files have put into it. May stop counting above `most`."""
    match decision:
        case Confirmation():
            return weight(decision.call.arguments, most)
        case Question():
            return weight([decision.message, decision.schema, *(call.arguments for call in decision.calls)], most)
        case MissingInput():
            return 0
        case MissingSignIn():
            return len(decision.url)


# --- what is answered


@dataclass(frozen=True, slots=True)
class Accepted:
    """The person said yes: run the call, take the form or the value; or the page was visited."""

    value: Any = field(default=None, repr=False)
    """The form's fields, or the input's value. It may be a secret."""
    always: bool = False
    """For a confirmation: a rule allows this tool from now on, as long as it stays as it was shown."""
    widths: tuple[int, ...] | None = None
    """For a confirmation: a rule allows calls like this one. The numbers say how far each part of the proposed rule is
    widened.
    """


@dataclass(frozen=True, slots=True)
class Declined:
    """The person said no."""

    reason: str = ""
    """Why, in the person's words. The agent reads the first 1,000 characters."""
    never: bool = False
    """For a confirmation: a rule denies this tool from now on."""


@dataclass(frozen=True, slots=True)
class Dismissed:
    """The person closed the question and did not answer it."""


DecisionAnswer: TypeAlias = Accepted | Declined | Dismissed


# --- what came of it


class Outcome(StrEnum):
    """How a decision ended."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    """The person said no."""
    DISMISSED = "dismissed"
    """The person closed it and did not answer."""
    UNANSWERED = "unanswered"
    """Nobody answered in time, or nobody was there any more. This is no refusal."""
    WITHDRAWN = "withdrawn"
    """It is not needed any more: the call was cancelled, or the server stopped."""
    FAILED = "failed"
    """Nobody could be asked: the code that asks failed."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """How a decision ended, and by whom: `terminal`, `browser`, `callback`, or nobody."""

    outcome: Outcome
    by: str | None = None
    always: bool = False
    value: Any = field(default=None, repr=False)
    """The given value. It may be a secret."""
    error: Exception | None = field(default=None, repr=False)
    """Why asking failed."""
    reason: str = ""
    """Why the person said no, in their words; may be empty."""
    rule: str | None = None
    """The rule that was made with the answer, or that decided, by its id."""

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
    """The decision was made before this answer came. The message says by whom, and how."""

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
    """The answer has another digest than the decision: the person was shown something else."""

    title = "Decision Changed"

    def __init__(self, decision_id: str) -> None:
        super().__init__(
            "What was shown is not what is asked now. Nothing was decided; look at it again",
            {"decision_id": decision_id},
        )


def check_answer(decision: Decision, answer: DecisionAnswer, digest: str | None = None) -> None:
    """Raise if the answer is for something else, or makes no sense for this decision."""
    if digest is not None and digest != decision.digest:
        raise DecisionChangedError(decision.id)
    if makes_rule(answer) and not isinstance(decision, Confirmation):
        raise BadRequestError("`always` is for confirmations only", {"decision_id": decision.id})


def makes_rule(answer: DecisionAnswer) -> bool:
    """Whether the answer is for later calls, too."""
    match answer:
        case Accepted(always=always, widths=widths):
            return always or widths is not None
        case Declined(never=never):
            return never
    return False


def resolution_by(by: str, answer: DecisionAnswer, rule: str | None = None) -> Resolution:
    """How a decision ends with this answer, and with the rule that was made of it."""
    always = makes_rule(answer)
    match answer:
        case Accepted(value=value):
            return Resolution(Outcome.ACCEPTED, by, always, value, rule=rule)
        case Declined(reason=reason):
            return Resolution(Outcome.DECLINED, by, always, reason=plain_reason(reason), rule=rule)
        case Dismissed():
            return Resolution(Outcome.DISMISSED, by)


def plain_reason(reason: str) -> str:
    """A person's words without control characters other than line breaks, cut to their limit."""
    return cut(harmless(reason.replace("\t", " ")).strip(), MAX_REASON - 1)


P = TypeVar("P")


class DecisionBook(Generic[P]):
    """The one register of decisions. It has the caller's entry for each pending decision, and how the last decisions
    ended.
    """

    def __init__(self, remembered: int = 1000) -> None:
        self._pending: dict[str, P] = {}
        self._decided: BoundedDict[str, Resolution] = BoundedDict(remembered)

    @property
    def pending(self) -> tuple[P, ...]:
        """The entries of pending decisions, oldest first."""
        return tuple(self._pending.values())

    def open(self, decision_id: str, entry: P) -> None:
        """Add a new decision."""
        self._pending[decision_id] = entry

    def find(self, decision_id: str) -> P:
        """The entry of a pending decision. Raises `AlreadyDecidedError`, or `NotFoundError` for an unknown id."""
        if (entry := self._pending.get(decision_id)) is not None:
            return entry
        if (resolution := self._decided.get(decision_id)) is not None:
            raise AlreadyDecidedError(decision_id, resolution)
        raise NotFoundError("no decision has this id", {"decision_id": decision_id})

    def settle(self, decision_id: str, resolution: Resolution) -> None:
        """End a pending decision, once. A second time raises like `find`, and changes nothing."""
        self.find(decision_id)
        del self._pending[decision_id]
        # An error keeps values, too: those in the frames of its traceback.
        self._decided.put(decision_id, replace(resolution, value=None, error=None))

    def resolution(self, decision_id: str) -> Resolution | None:
        """How a decision ended, without value and error; `None` if it is pending or forgotten."""
        return self._decided.get(decision_id)
