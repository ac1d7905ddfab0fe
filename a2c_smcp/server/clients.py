"""What a server keeps of each client that it has let in, and of each request of one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from a2c_smcp.errors import TooManyRequestsError
from a2c_smcp.server.call_tally import ToolName
from a2c_smcp.server.envelopes import Message
from a2c_smcp.server.limits import TokenBucket
from a2c_smcp.server.offices import Member
from a2c_smcp.server.port import ClientLine
from a2c_smcp.server.session_record import SessionRecord

if TYPE_CHECKING:
    from a2c_smcp.tracing.spans import OpenSpan

__all__ = ["AgentRequest", "Client"]

#: Joins and leaves of one session that may be under way. All but the first wait for the one before.
_MOST_CHANGES: Final = 8


@dataclass(slots=True, eq=False)
class Client:
    """A session of this process."""

    sid: str = field(init=False)
    line: ClientLine
    bucket: TokenBucket | None
    record: SessionRecord
    mark: str | None = None
    """What computers are told of its dialect; `None` if nothing has to be done for it."""
    retired: bool = False
    """Whether a newer session of the same client has its place. What it sends from now on is refused."""
    gone: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held for a join, a leave or the disconnect of this session, if they have to wait."""
    changes: int = 0
    """Its joins and leaves that have the lock or wait for it."""
    expiry: asyncio.TimerHandle | None = None
    """Ends the session when its token ends."""
    stamp: tuple[Member | None, str] | None = None
    """What computers are told of it, as JSON, and for which membership that was made; `None` if that must be made anew.
    """

    def __post_init__(self) -> None:
        self.sid = self.line.sid

    def begin_change(self) -> None:
        """A join or a leave begins. Raises `TooManyRequestsError` if too many of them are under way."""
        if self.changes >= _MOST_CHANGES:
            raise TooManyRequestsError(f"{_MOST_CHANGES} joins and leaves are under way; wait for some of them")
        self.changes += 1

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        """Hold the lock for a join or a leave that has begun."""
        try:
            async with self.lock:
                yield
        finally:
            self.changes -= 1


@dataclass(slots=True, eq=False)
class AgentRequest:
    """A request of a client of this process to a computer, from its arrival to its answer."""

    client: Client
    ack_id: int | None
    """Under which the client wants its answer; `None` if it wants none."""
    message: Message
    began: float
    tool: ToolName | None = None
    span: "OpenSpan | None" = None
