"""Which seat a holder takes, and for how long. Light: the process that starts a holder needs nothing else of it."""

from dataclasses import dataclass
from typing import Final

from a2c_smcp.agent.seat.pipe import MAX_WAITING
from a2c_smcp.link.interface import LinkOptions, Membership

__all__ = ["FREED_PAUSE", "FREED_SECONDS", "HolderOptions"]

#: The place of an agent that has gone may stay taken for a moment: how many seconds at most, and the pause between two
#: attempts to take it.
FREED_SECONDS: Final = 3.0
FREED_PAUSE: Final = 0.1


@dataclass(frozen=True, slots=True)
class HolderOptions:
    """Which seat to take, and how long to keep it when nobody uses it."""

    link: LinkOptions
    membership: Membership
    linger: float = 10.0
    """How many seconds the seat is kept after the last process has gone: some hosts start a process for every call."""
    lend_after: float = 1.0
    """How many seconds a process must be alone before it may go around the holder. It is doubled each time that another
    process comes, up to a minute."""
    max_waiting: int = MAX_WAITING
    """How many bytes may wait for a process that does not read. Then its connection is cut."""
