"""How soon a part of a computer may be fetched again, by what its last fetch cost this agent. Pure.

Only what the agent spent itself counts: bytes, and the time of reading them. How long the computer took to answer costs
nobody else anything.
"""

from dataclasses import dataclass
from typing import Final

__all__ = ["SHORT", "Cost"]

#: How many times the time that its reading took a part is left alone.
_TIMES: Final = 40
_BYTES_PER_SECOND: Final = 4 * 2**20
#: As far apart as a computer of ours announces changes; in seconds.
_SHORTEST: Final = 0.1
_LONGEST: Final = 30.0
#: A pause up to this many seconds is one that a caller may wait for.
SHORT: Final = 1.0


@dataclass(slots=True)
class Cost:
    """What one fetch cost: filled in while it is made."""

    seconds: float = 0.0
    """The time of the processor for reading the answer."""
    size: int = 0
    """The characters of the answer."""

    @property
    def pause(self) -> float:
        """How long the next one waits at least, in seconds."""
        return min(max(_SHORTEST, self.seconds * _TIMES, self.size / _BYTES_PER_SECOND), _LONGEST)
