"""What passes between the server processes of one system, and who takes it. The bus itself is `cluster.nats_bus`.

A shell performs what concerns its own sessions without a message. `Member.process` says which process has the other
sessions. Requests to those go to the bus; the bus of the other process hands them to its own shell, its `BusInbox`.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Answer
from a2c_smcp.server.offices import Member

__all__ = ["BusInbox", "BusObserver", "RemoteRequest"]


@dataclass(slots=True, eq=False)
class RemoteRequest:
    """A request on its way to a computer of another process."""

    caller: str
    """The session that asks. To the process that is asked it is `process/session`, which no session of its own is."""
    target: Member
    event: str
    agent: str
    req_id: str
    timeout: int | None
    """That of a tool call, in seconds."""
    body: str
    """The event's JSON as it came. `take_body` gives it away, so that it is freed as soon as it is sent."""
    report: Callable[[str], None] | None = None
    """Where the progress of the call goes, as JSON; `None` when the caller did not ask for it."""
    seconds: float = math.inf
    """How long it is waited for in the process that asks; not known to the one that is asked."""
    number: int = 0
    """Its id on the bus, from the moment at which it is sent."""

    def take_body(self) -> str:
        body, self.body = self.body, ""
        return body


class BusInbox(Protocol):
    """What other processes ask of this one."""

    async def answer(self, remote: RemoteRequest, answer: "asyncio.Future[Answer | None]") -> Answer | None:
        """Ask a computer of this process, and wait for `answer`. Who fails that future with `NotInRoomError` withdraws
        the request: the computer is told. What is raised goes to the caller.
        """

    def hear(self, notice: Broadcast, text: str) -> None:
        """Tell the members of an office that are here; `text` is the packet."""


class BusObserver(Protocol):
    """Is told what crosses between processes, to count it."""

    def sent_across(self, kind: str) -> None: ...
    def heard_across(self, kind: str) -> None: ...
    def answered_across(self, seconds: float) -> None: ...
    def dropped_across(self, reason: str) -> None: ...
