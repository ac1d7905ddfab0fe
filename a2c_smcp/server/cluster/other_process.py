"""What the bus knows of one other process, and what it uses of the registry."""

import logging
from collections import deque
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Protocol

from a2c_smcp.errors import SMCPError
from a2c_smcp.server.cluster.incoming import IncomingRequests
from a2c_smcp.server.cluster.line import ProcessLine
from a2c_smcp.server.cluster.outgoing import OutgoingRequests
from a2c_smcp.server.cluster.seal import Arrivals
from a2c_smcp.server.offices import Member

__all__ = ["BusMembership", "Lane", "OtherProcess"]

logger = logging.getLogger(__name__)


class BusMembership(Protocol):
    """What the bus uses of the registry."""

    @property
    def revision(self) -> int: ...
    @property
    def processes(self) -> Collection[str]: ...
    async def reached(self, revision: int) -> None: ...
    def holders(self, office_id: str) -> Collection[str]: ...
    def seat(self, office_id: str) -> Member | None: ...
    def check(self) -> None: ...


class Lane:
    """Acts on the messages of one process in their order. Each message waits until this process knows the membership
    that its sender knew. `start` runs a task.
    """

    def __init__(
        self, process: str, membership: BusMembership, start: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._process = process
        self._membership = membership
        self._start = start
        self._acts: deque[tuple[int, Callable[[], object]]] = deque()

    def put(self, revision: int, act: Callable[[], object]) -> None:
        """Act after all earlier messages, as soon as this revision is known here."""
        waits = bool(self._acts)
        self._acts.append((revision, act))
        if not waits:
            if revision <= self._membership.revision:
                self._act()
            else:
                self._start(self._run())

    def clear(self) -> None:
        self._acts.clear()

    async def _run(self) -> None:
        while self._acts:
            acts = 1
            try:
                await self._membership.reached(self._acts[0][0])
            except SMCPError as error:
                # A request is too late by now, and its answer says so. A late announcement is better than none. The
                # next messages do not wait again.
                logger.warning("acting on another server process's message without the latest members: %s", error)
                acts = len(self._acts)
            for _ in range(min(acts, len(self._acts))):
                self._act()

    def _act(self) -> None:
        """Act on the first message, unless its process has lost its lease: its members may be elsewhere then."""
        _, act = self._acts.popleft()
        if self._process in self._membership.processes:
            act()


class OtherProcess:
    """One other process: what this process asks it, and what it asks this process."""

    def __init__(
        self, line: ProcessLine, outgoing: OutgoingRequests, incoming: IncomingRequests, arrivals: Arrivals, lane: Lane
    ) -> None:
        self.line = line
        self.outgoing = outgoing
        self.incoming = incoming
        self.arrivals = arrivals
        self.lane = lane
        self.was_seen = False
        """Whether the registry has ever known this process."""
        self.quiet = 0
        """Ticks since something was heard from it."""
        self.probing = False
