"""What happens on a Computer, as values, and the stream that its front ends follow. Knows no sockets and no terminals.

    async with computer.events() as events:
        async for event in events: ...

The Computer waits for no reader: one that falls behind loses the oldest events, and is told how many.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Final, Self, TypeAlias

from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.errors import ToolNameDuplicatedError
from a2c_smcp.smcp import UPDATE_CONFIG_EVENT, UPDATE_DESKTOP_EVENT, UPDATE_FINDER_EVENT, UPDATE_TOOL_LIST_EVENT
from a2c_smcp.types import SERVER_NAME, TOOL_NAME

__all__ = [
    "BUFFERED_EVENTS",
    "AnnouncedEvent",
    "ComputerEvent",
    "ConfigChanged",
    "DesktopChanged",
    "EventHub",
    "EventStream",
    "EventsLost",
    "FinderChanged",
    "RestartOffered",
    "ServerStatus",
    "ToolHidden",
    "ToolInvalid",
    "ToolListChanged",
]

#: How many events wait for a reader.
BUFFERED_EVENTS: Final = 256


@dataclass(frozen=True, slots=True)
class ToolListChanged:
    """`get_available_tools` returns something else than before."""

    announced_by: ClassVar[str] = UPDATE_TOOL_LIST_EVENT


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """`get_config` returns something else than before."""

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
class EventsLost:
    """This reader fell behind: it lost `count` events, which were older than the next one."""

    count: int


#: What a Computer in an office announces to its agent; each names the event that does.
AnnouncedEvent: TypeAlias = ToolListChanged | ConfigChanged | DesktopChanged | FinderChanged

ComputerEvent: TypeAlias = AnnouncedEvent | ServerStatus | RestartOffered | ToolHidden | ToolInvalid | EventsLost


class EventStream:
    """Events for one reader, from the moment when it is entered with `async with`; then `async for event in stream`."""

    def __init__(self, streams: "set[EventStream]", limit: int) -> None:
        self._streams = streams
        self._waiting: deque[ComputerEvent] = deque(maxlen=limit)
        self._lost = 0
        self._wake = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._streams.add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._streams.discard(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ComputerEvent:
        while not self._waiting:
            self._wake.clear()
            await self._wake.wait()
        if self._lost:
            lost, self._lost = self._lost, 0
            return EventsLost(lost)
        return self._waiting.popleft()

    def put(self, event: ComputerEvent) -> None:
        """Add an event for the reader; of more than it may have waiting, the oldest is lost."""
        self._lost += len(self._waiting) == self._waiting.maxlen
        self._waiting.append(event)
        self._wake.set()


class EventHub:
    """One writer, any number of readers. `publish` returns at once."""

    def __init__(self) -> None:
        self._streams: set[EventStream] = set()

    def publish(self, event: ComputerEvent) -> None:
        """Add an event to every stream that is open."""
        for stream in tuple(self._streams):
            stream.put(event)

    def subscribe(self, limit: int = BUFFERED_EVENTS) -> EventStream:
        """A stream for one reader, which gets events once it is entered."""
        return EventStream(self._streams, limit)
