"""Between the server processes of one system: ask a session that another process holds, and tell an office whose
members other processes hold. Here are the interface, and the one for a process that is alone.

A shell performs what concerns its own sessions by itself, without a message. It knows by `Member.process` who has the
others, and hands those to its bus; the bus of another process hands them to that process's shell, its `BusInbox`.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from a2c_smcp.errors import NotFoundError
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Answer
from a2c_smcp.server.offices import Member

__all__ = ["Bus", "BusInbox", "BusObserver", "LocalBus", "RemoteRequest"]


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


class Bus(Protocol):
    """What the asyncio shell asks of the way to other processes."""

    def serve(self, inbox: BusInbox) -> None:
        """Hand what arrives to this inbox. Called once, before anything arrives."""

    async def began(self, process: str) -> None:
        """From now on this process is known by this name."""

    def ended(self, process: str) -> None:
        """This process is no longer known by this name. What it waits for across fails."""

    async def ask(self, remote: RemoteRequest, answer: "asyncio.Future[Answer | None]") -> None:
        """Send a request; it is sent when this returns, and `answer` gets what comes of it. Raises a coded error when
        it cannot be sent. `forget` must follow in any case.
        """

    def forget(self, remote: RemoteRequest) -> None:
        """Nobody waits for the answer any more. If none came, the request is withdrawn."""

    def publish(self, notice: Broadcast, text: str) -> None:
        """Tell the other processes that hold members of the office; `text` is the packet."""


class LocalBus:
    """The bus of a process that is alone. Everything is here, so nothing crosses it."""

    def serve(self, inbox: BusInbox) -> None:
        pass

    async def began(self, process: str) -> None:
        pass

    def ended(self, process: str) -> None:
        pass

    async def ask(self, remote: RemoteRequest, answer: "asyncio.Future[Answer | None]") -> None:
        raise NotFoundError("the computer has gone")

    def forget(self, remote: RemoteRequest) -> None:
        pass

    def publish(self, notice: Broadcast, text: str) -> None:
        pass
