"""What passes between the server processes of one system, and who takes it. The bus itself is `cluster.nats_bus`.

A shell serves the sessions of its own process without a message. `Member.process` says which process has a session. If
this is another process, the request goes to the bus. The bus of that process hands it to its own shell, its `BusInbox`.
"""

import asyncio
import math
from dataclasses import dataclass
from typing import Protocol

from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Answer, Message
from a2c_smcp.server.offices import Member
from a2c_smcp.server.relays import PassOn

__all__ = ["BusInbox", "BusObserver", "RemoteRequest"]


@dataclass(slots=True, eq=False)
class RemoteRequest:
    """A request on its way to a computer of another process."""

    caller: str
    """The session that asks. The process that is asked calls it `process/session`; its own sessions have no slash."""
    target: Member
    message: Message
    """The event, with `agent`, `req_id`, `timeout`, `progress` and `questions` in its request."""
    pass_on: PassOn | None = None
    """Takes what the call says to its caller."""
    seconds: float = math.inf
    """How long the asking process waits. The process that is asked does not know it."""
    number: int = 0
    """Its id on the bus, once it is sent."""


class BusInbox(Protocol):
    """Takes what other processes ask of this one, and tell it."""

    async def answer(self, remote: RemoteRequest, answer: "asyncio.Future[Answer | None]") -> Answer | None:
        """Ask a computer of this process, and wait for `answer`. If that future fails with `NotInRoomError`, the
        request is withdrawn and the computer is told. An error that this raises goes to the caller.
        """

    def hear(self, notice: Broadcast, text: str) -> None:
        """Tell those members of an office that are connected to this process; `text` is the packet."""


class BusObserver(Protocol):
    """Counts what crosses between processes."""

    def sent_across(self, kind: str) -> None: ...
    def heard_across(self, kind: str) -> None: ...
    def answered_across(self, seconds: float) -> None: ...
    def dropped_across(self, reason: str) -> None: ...
