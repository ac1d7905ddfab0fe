"""What happens on a Computer, as values, and the streams of these events. Knows no sockets and no terminals.

    async with computer.events() as events:
        async for event in events: ...

The Computer waits for no reader. A reader that falls behind loses the oldest events, and is told how many. Events have
numbers, so that a reader can begin with a snapshot:

    async with computer.events() as events:
        snapshot = computer.snapshot()
        async for event in events:
            if isinstance(event, EventsLost):
                snapshot = computer.snapshot()
            elif events.number > snapshot.number: ...

A reader that needs only some kinds of events says which: an event that nobody reads is not made.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from types import TracebackType
from typing import ClassVar, Final, Literal, Protocol, Self, TypeAlias

from a2c_smcp.computer.calls.log import EndedCall, ProgressReport, WatchedCall
from a2c_smcp.computer.decisions.book import Decision, DecisionKind, Outcome
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.errors import ToolNameDuplicatedError
from a2c_smcp.smcp import (
    UPDATE_CONFIG_EVENT,
    UPDATE_DESKTOP_EVENT,
    UPDATE_FINDER_EVENT,
    UPDATE_PROMPTS_EVENT,
    UPDATE_RESOURCES_EVENT,
    UPDATE_TOOL_LIST_EVENT,
)
from a2c_smcp.types import SERVER_NAME, TOOL_NAME
from a2c_smcp.utils.bounded import BoundedDict

__all__ = [
    "BUFFERED_BYTES",
    "BUFFERED_EVENTS",
    "AnnouncedEvent",
    "AnswerersChanged",
    "CallEnded",
    "CallProgressed",
    "CallStarted",
    "ComputerEvent",
    "ConfigChanged",
    "ConsoleSignIn",
    "DecisionAsked",
    "DecisionDecided",
    "DecisionEvent",
    "DesktopChanged",
    "EventHub",
    "EventReader",
    "EventStream",
    "EventsLost",
    "FinderChanged",
    "OfficeStatus",
    "QuestionPassedOn",
    "RestartOffered",
    "RulesChanged",
    "ServerLogged",
    "ServerStatus",
    "SharedPromptsChanged",
    "SharedResourcesChanged",
    "ToolHidden",
    "ToolInvalid",
    "ToolListChanged",
]

#: How many events may wait for one reader, and about how many bytes they may have together.
BUFFERED_EVENTS: Final = 256
BUFFERED_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ToolListChanged:
    """`get_available_tools` returns other tools than before."""

    announced_by: ClassVar[str] = UPDATE_TOOL_LIST_EVENT


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """`get_config` returns another config than before. `ServerStatus` tells of the servers' states in it."""

    announced_by: ClassVar[str] = UPDATE_CONFIG_EVENT


@dataclass(frozen=True, slots=True)
class DesktopChanged:
    """Windows came or went, or the content of one changed."""

    announced_by: ClassVar[str] = UPDATE_DESKTOP_EVENT


@dataclass(frozen=True, slots=True)
class FinderChanged:
    """Documents came or went, or the content of one changed."""

    announced_by: ClassVar[str] = UPDATE_FINDER_EVENT


@dataclass(frozen=True, slots=True)
class SharedResourcesChanged:
    """The resources or templates that agents may read came, went, or are described in another way."""

    announced_by: ClassVar[str] = UPDATE_RESOURCES_EVENT


@dataclass(frozen=True, slots=True)
class SharedPromptsChanged:
    """The prompts that agents may use came, went, or are described in another way."""

    announced_by: ClassVar[str] = UPDATE_PROMPTS_EVENT


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of an MCP server, and sometimes the reason for it."""

    server: SERVER_NAME
    state: ServerState
    reason: str | None = None
    restarts: int = 0
    """How many times in a row it had to be started again."""
    ignored: str | None = None
    """Which of its windows and documents are ignored because there are too many, or because their URIs are invalid."""
    waits_for: str | None = None
    """The id of the input that a person must give before it can start; `reason` says so in words."""
    sign_in_failed: bool = False
    """In the state `sign_in`: the last try has failed, and `reason` says why."""
    is_remote: bool = False
    """Whether it is reached over a network, so that somebody may be signed in there."""


@dataclass(frozen=True, slots=True)
class RestartOffered:
    """A server runs with old values of its config. A restart would use the new ones."""

    server: SERVER_NAME
    reason: str


@dataclass(frozen=True, slots=True)
class ToolHidden:
    """A running server lists a new tool under a name that is taken. Only that tool is not shown."""

    error: ToolNameDuplicatedError


@dataclass(frozen=True, slots=True)
class ToolInvalid:
    """A server lists a tool whose definition breaks MCP's schema. Only that tool is not shown."""

    server: SERVER_NAME
    tool: TOOL_NAME
    problem: str

    def __str__(self) -> str:
        return f"Tool {self.tool} of server {self.server} is hidden, because its definition is invalid: {self.problem}"


@dataclass(frozen=True, slots=True)
class ServerLogged:
    """A server wrote a line to its log. Secrets are taken out of it, as in `server_logs`."""

    server: SERVER_NAME
    line: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A tool is called. If the call needs a confirmation, `DecisionAsked` comes next."""

    call: WatchedCall


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """A tool reports the progress of a call."""

    call_id: str
    progress: ProgressReport


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has succeeded or failed, or was refused or cancelled."""

    ended: EndedCall


@dataclass(frozen=True, slots=True)
class DecisionAsked:
    """A decision is needed: `Computer.decisions` takes the answer."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class DecisionDecided:
    """A decision was made, or is not needed any more. The given value is never in it."""

    decision_id: str
    kind: DecisionKind
    outcome: Outcome
    by: str | None
    """Who decided; `None` if nobody did."""
    always: bool = False
    reason: str = ""
    """Why the person said no, in their words; may be empty."""
    rule: str | None = None
    """The rule that was made with the answer, by its id. It can be undone. Or the rule that decided."""


@dataclass(frozen=True, slots=True)
class QuestionPassedOn:
    """A question of a tool was put to the agent that made the call, and to nobody here. This is how it ended."""

    recorded_as: ClassVar[str] = "question"
    about: str
    """The id of the call, or of the question if its call is not certain."""
    server: SERVER_NAME
    agent: str
    outcome: str
    """One of the values of `Outcome`."""
    message: str
    office: str = ""
    key: str | None = None
    """The name of the agent's key."""
    claimed: bool = True
    """Whether no key is bound to the agent's name."""


@dataclass(frozen=True, slots=True)
class ConsoleSignIn:
    """A page of the console was let in, was refused, is remembered from now on, or was locked out."""

    recorded_as: ClassVar[str] = "sign-in"
    outcome: Literal["entered", "refused", "remembered", "revoked"]
    place: str | None
    """The name under which the page decides; `None` for one that was refused."""
    by: Literal["link", "device"]
    """What it came with: a link that works once, or the key of a remembered browser."""
    address: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerersChanged:
    """A place that can decide came or went. `names` are the places now."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RulesChanged:
    """A rule was added or undone, or the rules file has changed or has a mistake. `Computer.decisions.rules` has the
    rules.
    """

    recorded_as: ClassVar = "rule"
    outcome: Literal["added", "undone", "read", "written", "problem", "gone"]
    rule: str | None = None
    """The id of the rule that was added or undone."""
    says: str = ""
    """That rule in words, the mistake in the file, or how many rules that forbid something are gone from it."""
    by: str | None = None
    """Where a person added or undid it: `terminal`, or the name of a page."""
    denies: int | None = None
    """How many rules that forbid something are gone."""


@dataclass(frozen=True, slots=True)
class OfficeStatus:
    """The state of a Computer's connection to a server: connected or not, in which office, under which name."""

    id: str
    """The connection: a Computer may have several."""
    state: Literal["connected", "joined", "disconnected", "closed"]
    """`disconnected`: the connection was lost. `closed`: it was closed on purpose, and will not come back."""
    url: str
    """Without secrets."""
    office: str | None = None
    """The office that it is in, or that it will join again."""
    name: str | None = None
    """Its name there."""
    reason: str | None = None
    """Why it is disconnected, or could not join again."""
    final: bool = False
    """Whether it will not try again by itself."""
    since: float = field(default=0.0, compare=False)
    """When it came into this state, in Unix time."""


@dataclass(frozen=True, slots=True)
class EventsLost:
    """This reader was too slow, and lost `count` events. The next event is newer than these."""

    count: int


#: What a Computer announces to the agent in its office. `announced_by` is the event that does so.
AnnouncedEvent: TypeAlias = (
    ToolListChanged | ConfigChanged | DesktopChanged | FinderChanged | SharedResourcesChanged | SharedPromptsChanged
)

#: The events of `DecisionStore`.
DecisionEvent: TypeAlias = DecisionAsked | DecisionDecided | QuestionPassedOn | AnswerersChanged | RulesChanged

ComputerEvent: TypeAlias = (
    AnnouncedEvent
    | ServerStatus
    | RestartOffered
    | ToolHidden
    | ToolInvalid
    | ServerLogged
    | CallStarted
    | CallProgressed
    | CallEnded
    | DecisionEvent
    | ConsoleSignIn
    | OfficeStatus
    | EventsLost
)


class EventReader(Protocol):
    """What is told of events at once. `put` must return at once."""

    @property
    def kinds(self) -> frozenset[type] | None:
        """The classes of events that it reads; `None` for all."""

    def put(self, number: int, event: ComputerEvent, size: int) -> None:
        """Take the event with this number, which has about `size` bytes."""


class EventStream:
    """Events for one reader: enter it with `async with`, then `async for event in stream`."""

    def __init__(self, hub: "EventHub", limit: int, kinds: frozenset[type] | None) -> None:
        self._hub = hub
        self.kinds = kinds
        """The classes of events that it reads; `None` for all."""
        self.number = 0
        """The number of the event that was returned last."""
        # A single event always fits: its size counts as at most `BUFFERED_BYTES`.
        self._waiting: BoundedDict[int, tuple[ComputerEvent, int]] = BoundedDict(
            limit, heaviest=BUFFERED_BYTES, weigh=lambda waiting: min(waiting[1], BUFFERED_BYTES)
        )
        #: The number of the progress report that waits, for each call. Only the latest report is of use.
        self._reports: dict[str, int] = {}
        self._lost = 0
        self._wake = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._hub.open(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._hub.close(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ComputerEvent:
        while not self._waiting:
            self._wake.clear()
            await self._wake.wait()
        if self._lost:
            lost, self._lost = self._lost, 0
            self.number = next(iter(self._waiting)) - 1
            return EventsLost(lost)
        self.number, (event, _) = self._waiting.pop_oldest()
        self._forget_report(self.number, event)
        return event

    def put(self, number: int, event: ComputerEvent, size: int) -> None:
        """Add an event for the reader. If too many wait, the oldest is lost.

        A report of a call's progress replaces the report before, if that still waits.
        """
        if isinstance(event, CallProgressed):
            self._waiting.pop(self._reports.get(event.call_id, 0))
            self._reports[event.call_id] = number
        for lost, (old, _) in self._waiting.put(number, (event, size)):
            self._lost += 1
            self._forget_report(lost, old)
        self._wake.set()

    def _forget_report(self, number: int, event: ComputerEvent) -> None:
        if isinstance(event, CallProgressed) and self._reports.get(event.call_id) == number:
            del self._reports[event.call_id]


class EventHub:
    """One writer, any number of readers. `publish` returns at once."""

    def __init__(self) -> None:
        self.number = 0
        """The number of the last event."""
        self._streams: set[EventReader] = set()
        self.wanted: frozenset[type] | None = frozenset()
        """The classes that at least one reader reads; `None` if a reader reads all. Another object after every change
        of the readers."""

    def wants(self, kind: type) -> bool:
        """Whether somebody reads events of this class. Otherwise there is no need to make one."""
        return self.wanted is None or kind in self.wanted

    def publish(self, event: ComputerEvent, size: int = 0) -> None:
        """Add an event to every open stream that reads its class. It has about `size` bytes."""
        self.number += 1
        for stream in tuple(self._streams):
            if stream.kinds is None or type(event) in stream.kinds:
                stream.put(self.number, event, size)

    def subscribe(self, limit: int = BUFFERED_EVENTS, kinds: Collection[type] | None = None) -> EventStream:
        """A stream for one reader. It gets events once it is entered."""
        return EventStream(self, limit, None if kinds is None else frozenset(kinds))

    def open(self, stream: EventReader) -> None:
        """Give this stream events from now on."""
        self._streams.add(stream)
        self._count()

    def close(self, stream: EventReader) -> None:
        """Give this stream no more events."""
        self._streams.discard(stream)
        self._count()

    def _count(self) -> None:
        kinds = [stream.kinds for stream in self._streams]
        self.wanted = None if None in kinds else frozenset().union(*(kind for kind in kinds if kind is not None))
