"""The resources that an office's agent subscribed to, and telling it of their changes at a pace that it can follow.

An office has one agent, and an agent that comes back on a new connection subscribes again. So a second subscription to
a resource changes nothing. If processes share a seat, its holder knows which of them want the resource.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.resources.read_guard import AgentSight, ReadGuard
from a2c_smcp.computer.rules.reads import kind_of
from a2c_smcp.computer.watching.paced_events import ANNOUNCE_SECONDS
from a2c_smcp.errors import (
    BadRequestError,
    ConnectionLostError,
    NotFoundError,
    SMCPError,
    TooManyRequestsError,
)
from a2c_smcp.smcp import MAX_URI
from a2c_smcp.types import SERVER_NAME

__all__ = ["MAX_SUBSCRIPTIONS", "AgentSubscriptions"]

logger = logging.getLogger(__name__)

#: How many resources one office may be subscribed to.
MAX_SUBSCRIPTIONS: Final = 1000
#: How many changes are told at once. Then comes the pause that windows have, too.
_TOLD_AT_ONCE: Final = 20


class AgentSubscriptions:
    """`tell` sends the news that a resource has changed, if the `guard` lets the agent read it. Call `end` when the
    agent leaves, or the Computer does.
    """

    def __init__(self, computer: Computer, tell: Callable[[str], Awaitable[None]], guard: ReadGuard) -> None:
        self._computer = computer
        self._guard = guard
        self._tell = tell
        self._servers: dict[str, SERVER_NAME] = {}
        """The server of each resource that is watched."""
        self._changed: dict[str, None] = {}
        """The resources whose change was not told yet, oldest first."""
        self._wake = asyncio.Event()
        self._era = 0
        """Counts the agents that were here."""

    async def subscribe(self, caller: Asker, uri: str, sight: AgentSight | None = None) -> None:
        """Tell the agent of changes from now on. Raises as `ResourceReader.watch` does, and `TooManyRequestsError`."""
        if len(uri) > MAX_URI:
            raise BadRequestError(f"field 'uri': at most {MAX_URI} characters", {"field": "uri"})
        if uri not in self._servers and len(self._servers) >= MAX_SUBSCRIPTIONS:
            raise TooManyRequestsError(f"at most {MAX_SUBSCRIPTIONS} resources can be subscribed to")
        era = self._era
        server = await self._computer.shared.watch(uri, caller, self._heard, sight)
        if era != self._era:
            if uri not in self._servers:
                self._computer.shared.unwatch(server, uri, self._heard)
            raise NotFoundError("the agent has left")
        before = self._servers.get(uri, server)
        if before != server:  # another server has it now
            self._computer.shared.unwatch(before, uri, self._heard)
        self._servers[uri] = server

    def unsubscribe(self, uri: str) -> None:
        """Undo a subscription. Without one, this does nothing."""
        if uri in self._servers:
            self._stop(uri)

    def end(self) -> None:
        """Undo all subscriptions."""
        self._era += 1
        for uri in tuple(self._servers):
            self._stop(uri)
        self._changed.clear()

    def _stop(self, uri: str) -> None:
        self._changed.pop(uri, None)
        self._computer.shared.unwatch(self._servers.pop(uri), uri, self._heard)

    def _heard(self, uri: str) -> None:
        self._changed[uri] = None
        self._wake.set()

    async def run(self) -> None:
        """Tell changes until cancelled. A resource that changes faster is told once in a while, its last change
        always.
        """
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._changed:
                for uri in tuple(self._changed)[:_TOLD_AT_ONCE]:
                    del self._changed[uri]
                    await self._tell_one(uri)
                await asyncio.sleep(ANNOUNCE_SECONDS)

    async def _tell_one(self, uri: str) -> None:
        sight = self._guard.last_sight()
        if sight is not None and not sight.may_read(kind_of(uri), self._servers.get(uri, ""), uri):
            return  # a rule has come, or its hour: later changes are told if it has gone again
        try:
            await self._tell(uri)
        except ConnectionLostError:
            pass  # the agent hears that this computer has gone, and subscribes again when it is back
        except TooManyRequestsError:
            if uri in self._servers:
                self._changed[uri] = None
            await asyncio.sleep(1.0)
        except SMCPError as error:
            logger.warning("the change of a resource was not announced: %s", error)
