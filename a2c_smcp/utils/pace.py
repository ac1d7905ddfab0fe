"""When to say what happens faster than others can follow. Pure: the time is handed in."""

from dataclasses import dataclass, replace

__all__ = ["Pace"]


@dataclass(frozen=True, slots=True)
class Pace:
    """When one thing is to be said: the first time at once, then `apart` seconds later at the earliest, and the last
    time always.

    The shell calls `change` for every change, and speaks when `due` has come. It calls `sent` just before, so that a
    change while it speaks is not lost either.
    """

    apart: float
    due: float | None = None
    """When to speak; `None` when there is nothing to say."""
    last: float | None = None

    def change(self, now: float) -> "Pace":
        if self.due is not None:
            return self
        return replace(self, due=now if self.last is None else max(now, self.last + self.apart))

    def sent(self, now: float) -> "Pace":
        return replace(self, due=None, last=now)
