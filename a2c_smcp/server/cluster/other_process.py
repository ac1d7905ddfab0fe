"""What the bus knows of one other process, and what it uses of the connection and of the registry."""

from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Protocol

from a2c_smcp.server.cluster.incoming import IncomingRequests
from a2c_smcp.server.cluster.line import ProcessLine
from a2c_smcp.server.cluster.outgoing import OutgoingRequests
from a2c_smcp.server.cluster.seal import Arrivals

__all__ = ["BusConnection", "BusMembership", "OtherProcess"]


class BusConnection(Protocol):
    """What the bus uses of the connection to NATS."""

    @property
    def client(self) -> Any: ...
    def check(self) -> None: ...


class BusMembership(Protocol):
    """What the bus uses of the registry."""

    @property
    def revision(self) -> int: ...
    @property
    def processes(self) -> Collection[str]: ...
    async def reached(self, revision: int) -> None: ...
    def holders(self, office_id: str) -> Collection[str]: ...
    def check(self) -> None: ...


class OtherProcess:
    """One other process: what we ask it, what it asks us."""

    def __init__(
        self, line: ProcessLine, outgoing: OutgoingRequests, incoming: IncomingRequests, arrivals: Arrivals
    ) -> None:
        self.line = line
        self.outgoing = outgoing
        self.incoming = incoming
        self.arrivals = arrivals
        self.was_seen = False
        """Whether the registry knew it at some time."""
        self.quiet = 0
        """Ticks since something was heard."""
        self.probing = False
        self.lane: deque[tuple[int, Callable[[], object]]] = deque()
        """What it sent, and what our copy of the membership must have seen before."""
