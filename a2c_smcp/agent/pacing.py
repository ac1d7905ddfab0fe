"""How soon a part of a computer may be fetched again, decided by the cost of its last fetch. Pure.

Only the agent's own cost counts: the bytes of the answer, and the time to read them. The time that the computer took to
answer does not count.
"""

from dataclasses import dataclass
from typing import Final

__all__ = ["SHORT", "Cost"]

#: Callers may wait for a pause of up to this many seconds.
SHORT: Final = 1.0


@dataclass(slots=True)
class Cost:
    """The cost of one fetch. It is filled in during the fetch."""

    seconds: float = 0.0
    """Processor time for reading the answer."""
    size: int = 0
    """The characters of the answer."""

    @property
    def pause(self) -> float:
        """How many seconds the next fetch waits at least."""
        # Forty times the reading, or a second for each 4 MiB. Our computers announce ten changes a second at most.
        return min(max(0.1, self.seconds * 40, self.size / (4 * 2**20)), 30.0)
