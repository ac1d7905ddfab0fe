"""When to announce things that change faster than others can follow. Pure: the time is handed in."""

from dataclasses import dataclass, replace

__all__ = ["Pace"]


@dataclass(frozen=True, slots=True)
class Pace:
    """When to announce one thing: the first change at once, later ones at least `apart` seconds apart, and the last
    one always.

    The shell calls `change` for every change, and announces when `due` has come. It calls `sent` just before, so that a
    change during the announcement is not lost.
    """

    apart: float
    due: float | None = None
    """When to announce; `None` if there is nothing to announce."""
    last: float | None = None

    def change(self, now: float) -> "Pace":
        if self.due is not None:
            return self
        return replace(self, due=now if self.last is None else max(now, self.last + self.apart))

    def sent(self, now: float) -> "Pace":
        return replace(self, due=None, last=now)
