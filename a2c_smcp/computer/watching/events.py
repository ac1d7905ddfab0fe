"""What happens on a Computer, as values, and the stream that its front ends follow. Knows no sockets and no terminals.

    async with computer.events() as events:
        async for event in events: ...

The Computer waits for no reader: one that falls behind loses the oldest events, and is told how many. Events have
numbers, so that a reader can start from a snapshot:

    async with computer.events() as events:
        snapshot = computer.snapshot()
        async for event in events:
            if isinstance(event, EventsLost):
                snapshot = computer.snapshot()
            elif events.number > snapshot.number: ...

What nobody wants to read is not made: a reader that needs few kinds of events says which.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Final, Literal, NamedTuple, Self, TypeAlias

from a2c_smcp.computer.calls.log import EndedCall, ProgressReport, WatchedCall
from a2c_smcp.computer.decisions.book import Decision, DecisionKind, Outcome
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.errors import ToolNameDuplicatedError
from a2c_smcp.smcp import UPDATE_CONFIG_EVENT, UPDATE_DESKTOP_EVENT, UPDATE_FINDER_EVENT, UPDATE_TOOL_LIST_EVENT
from a2c_smcp.types import SERVER_NAME, TOOL_NAME
from a2c_smcp.utils.bounded import BoundedDict

__all__ = [
    "BUFFERED_BYTES",
    "BUFFERED_EVENTS",
    "AllowedChanged",
    "AnnouncedEvent",
    "AnswerersChanged",
    "CallEnded",
    "CallProgressed",
    "CallStarted",
    "ComputerEvent",
    "ConfigChanged",
    "DecisionAsked",
    "DecisionDecided",
    "DecisionEvent",
    "DesktopChanged",
    "EventHub",
    "EventStream",
    "EventsLost",
    "FinderChanged",
    "OfficeStatus",
    "RestartOffered",
    "ServerLogged",
    "ServerStatus",
    "ToolHidden",
    "ToolInvalid",
    "ToolListChanged",
]

#: How many events wait for a reader, and how many bytes of them, about.
BUFFERED_EVENTS: Final = 256
BUFFERED_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ToolListChanged:
    """`get_available_tools` returns something else than before."""

    announced_by: ClassVar[str] = UPDATE_TOOL_LIST_EVENT


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """`get_config` returns another config than before; how servers do, which is there, too, is in `ServerStatus`."""

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
class ServerStatus:
    """The state that an MCP server is in now, and the reason if there is one to tell."""

    server: SERVER_NAME
    state: ServerState
    reason: str | None = None
    restarts: int = 0
    """How many times in a row it had to be started again."""
    ignored: str | None = None
    """Which of its windows and documents are ignored, and why: there are too many, or their URIs are invalid."""
    waits_for: str | None = None
    """The id of the input that a person is to give before it can start; `reason` says so in words."""


@dataclass(frozen=True, slots=True)
class RestartOffered:
    """A server runs with values that are no longer the configured ones; a restart would take over the new ones."""

    server: SERVER_NAME
    reason: str


@dataclass(frozen=True, slots=True)
class ToolHidden:
    """A running server lists a new tool under a name that is taken. That tool is not shown; its others are."""

    error: ToolNameDuplicatedError


@dataclass(frozen=True, slots=True)
class ToolInvalid:
    """A server lists a tool whose definition breaks MCP's schema. That tool is not shown; its others are."""

    server: SERVER_NAME
    tool: TOOL_NAME
    problem: str

    def __str__(self) -> str:
        return f"Tool {self.tool} of server {self.server} is hidden: its definition is invalid: {self.problem}"


@dataclass(frozen=True, slots=True)
class ServerLogged:
    """A server wrote a line to its log: without secrets, as `server_logs` has it."""

    server: SERVER_NAME
    line: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A tool is called. Perhaps it has to be confirmed first: then a decision is asked for next."""

    call: WatchedCall


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """A tool that runs says how far it is."""

    call_id: str
    progress: ProgressReport


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has its result, or failed, or was refused, or was cancelled."""

    ended: EndedCall


@dataclass(frozen=True, slots=True)
class DecisionAsked:
    """Somebody is to decide something: `Computer.decisions` takes the answer."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class DecisionDecided:
    """A decision was made, or is not needed any more. What was given as a value is never told."""

    decision_id: str
    kind: DecisionKind
    outcome: Outcome
    by: str | None
    """Who decided; `None` if nobody did."""
    always: bool = False
    reason: str = ""
    """Why a person said no, in their words, if they gave some."""


@dataclass(frozen=True, slots=True)
class AnswerersChanged:
    """Somebody who can decide came or went; these are there now."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllowedChanged:
    """`always` was answered for a tool, or taken back; these need no confirmation now."""

    allowed: frozenset[tuple[SERVER_NAME, TOOL_NAME]]


@dataclass(frozen=True, slots=True)
class OfficeStatus:
    """How a Computer stands with a server: connected or not, in which office, under which name."""

    id: str
    """Which of its connections it is: a Computer may have several."""
    state: Literal["connected", "joined", "disconnected", "closed"]
    """`disconnected` was not wanted, `closed` was: that connection will not come back."""
    url: str
    """Without secrets."""
    office: str | None = None
    """The office it is in, or was in and will join again."""
    name: str | None = None
    """Its name there."""
    reason: str | None = None
    """Why it is disconnected, or not in its office."""
    final: bool = False
    """Whether it will not try again by itself."""


@dataclass(frozen=True, slots=True)
class EventsLost:
    """This reader fell behind: it lost `count` events, which were older than the next one."""

    count: int


#: What a Computer in an office announces to its agent; each names the event that does.
AnnouncedEvent: TypeAlias = ToolListChanged | ConfigChanged | DesktopChanged | FinderChanged

#: What the store of decisions tells.
DecisionEvent: TypeAlias = DecisionAsked | DecisionDecided | AnswerersChanged | AllowedChanged

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
    | OfficeStatus
    | EventsLost
)


class _Sized(NamedTuple):
    event: ComputerEvent
    size: int


class EventStream:
    """Events for one reader, from the moment when it is entered with `async with`; then `async for event in stream`."""

    def __init__(self, hub: "EventHub", limit: int, kinds: frozenset[type] | None) -> None:
        self._hub = hub
        self.kinds = kinds
        """What it reads; `None` for everything."""
        self.number = 0
        """The number of the event that was returned last."""
        # One event alone always fits: it weighs at most as much as all may.
        self._waiting: BoundedDict[int, _Sized] = BoundedDict(
            limit, heaviest=BUFFERED_BYTES, weigh=lambda waiting: min(waiting.size, BUFFERED_BYTES)
        )
        #: The number of the waiting report of each call: only the latest is of use.
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
        self.number, waiting = self._waiting.pop_oldest()
        self._forget_report(self.number, waiting.event)
        return waiting.event

    def put(self, number: int, event: ComputerEvent, size: int) -> None:
        """Add an event for the reader; of more than it may have waiting, the oldest is lost.

        A report of a call's progress takes the place of the one before, if that still waits.
        """
        if isinstance(event, CallProgressed):
            self._waiting.pop(self._reports.get(event.call_id, 0))
            self._reports[event.call_id] = number
        for lost, waiting in self._waiting.put(number, _Sized(event, size)):
            self._lost += 1
            self._forget_report(lost, waiting.event)
        self._wake.set()

    def _forget_report(self, number: int, event: ComputerEvent) -> None:
        if isinstance(event, CallProgressed) and self._reports.get(event.call_id) == number:
            del self._reports[event.call_id]


class EventHub:
    """One writer, any number of readers. `publish` returns at once."""

    def __init__(self) -> None:
        self.number = 0
        """The number of the last event."""
        self._streams: set[EventStream] = set()
        #: What some reader wants; `None` for everything.
        self._wanted: frozenset[type] | None = frozenset()

    def wants(self, kind: type) -> bool:
        """Whether some reader reads events of this class: otherwise there is no need to make one."""
        return self._wanted is None or kind in self._wanted

    def publish(self, event: ComputerEvent, size: int = 0) -> None:
        """Add an event to every stream that is open and reads its kind. `size` is about how many bytes it holds."""
        self.number += 1
        for stream in tuple(self._streams):
            if stream.kinds is None or type(event) in stream.kinds:
                stream.put(self.number, event, size)

    def subscribe(self, limit: int = BUFFERED_EVENTS, kinds: Collection[type] | None = None) -> EventStream:
        """A stream for one reader, which gets events once it is entered."""
        return EventStream(self, limit, None if kinds is None else frozenset(kinds))

    def open(self, stream: EventStream) -> None:
        """From now on this stream gets events."""
        self._streams.add(stream)
        self._count()

    def close(self, stream: EventStream) -> None:
        """This stream gets no more events."""
        self._streams.discard(stream)
        self._count()

    def _count(self) -> None:
        kinds = [stream.kinds for stream in self._streams]
        self._wanted = None if None in kinds else frozenset().union(*(kind for kind in kinds if kind is not None))
