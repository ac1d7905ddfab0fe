"""Who has the seat: the holder, or a process that uses it alone. Pure: the caller has the clock and the links.

      ┌─────────declined────────┐
      ▼                         │
    HELD ────lend────► OFFERED ─┴──taken──► LENT
    ▲  ▲                  │                   │
    │  │                recall              recall
    │  │                  ▼                   ▼
    │  └───declined─── UNWANTED ──taken──► RETURNING
    └───────────────────────────back──────────┘

The holder and the process each keep a state, and move it with every frame that they send or receive. `recall` may cross
`taken` or `declined` on the way. Then the ends take the two steps in different orders, and arrive at the same state.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Generic, TypeVar

__all__ = ["Lending", "Seat", "moved"]

S = TypeVar("S", bound=Hashable)

#: The longest time that a process must be alone, in seconds.
_LONGEST: Final = 60.0


class Seat(Enum):
    HELD = auto()
    """The holder has it."""
    OFFERED = auto()
    """The process is about to take it over. Nobody else is offered it before the process has answered."""
    UNWANTED = auto()
    """The same, but another process has come: the holder takes the seat back as soon as it was taken."""
    LENT = auto()
    """The process has it. If its connection is lost, the process joins again, and the holder does not."""
    RETURNING = auto()
    """The holder joins, and says `back` then. The process uses its connection until then, but does not join again."""


_MOVES: Final = {
    (Seat.HELD, "lend"): Seat.OFFERED,
    (Seat.HELD, "resume"): Seat.RETURNING,
    (Seat.OFFERED, "taken"): Seat.LENT,
    (Seat.OFFERED, "declined"): Seat.HELD,
    (Seat.OFFERED, "recall"): Seat.UNWANTED,
    (Seat.UNWANTED, "taken"): Seat.RETURNING,
    (Seat.UNWANTED, "declined"): Seat.HELD,
    (Seat.LENT, "recall"): Seat.RETURNING,
    (Seat.LENT, "resume"): Seat.RETURNING,
    (Seat.RETURNING, "back"): Seat.HELD,
}


def moved(seat: Seat, word: str) -> Seat:
    """The state after a frame. A frame that means nothing in this state changes nothing."""
    return _MOVES.get((seat, word), seat)


@dataclass(slots=True)
class Lending(Generic[S]):
    """The holder's side: which process the state is about, and when the seat is offered."""

    after: float
    """How many seconds a process must be alone."""
    alone_since: float = 0.0
    seat: Seat = Seat.HELD
    who: S | None = None
    """`None` while the seat is held."""
    failures: int = 0
    """How many times the seat was recalled or declined."""

    def changed(self, now: float) -> None:
        """A process has come or gone."""
        self.alone_since = now

    def offer(self, who: S, users: int, now: float) -> bool:
        """Whether to offer the seat to the process that calls a tool now. It is not offered again before it is back."""
        pause = min(self.after * 2.0**self.failures, max(self.after, _LONGEST))
        if users != 1 or self.seat is not Seat.HELD or now - self.alone_since < pause:
            return False
        self.move("lend", who)
        return True

    def move(self, word: str, who: S | None) -> Seat | None:
        """Follow a frame from or to this process. Returns the new state, or `None` if the frame means nothing now."""
        if self.who not in (None, who) or (seat := moved(self.seat, word)) is self.seat:
            return None
        if word != "taken" and self.seat in (Seat.OFFERED, Seat.LENT):
            self.failures = min(self.failures + 1, 16)
        self.seat, self.who = seat, None if seat is Seat.HELD else who
        return seat

    def gone(self, who: S) -> Seat:
        """A process has gone. Returns what it had: `HELD` if it had nothing."""
        if who != self.who:
            return Seat.HELD
        seat, self.seat, self.who = self.seat, Seat.HELD, None
        return seat
