"""Remembers when each line of a text came, so that what is new can be marked. Pure: the time is handed in."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MarkedLines"]


@dataclass(frozen=True, slots=True)
class MarkedLines:
    """The lines of a window, each with the time when it came. A line that only moved is not new."""

    recent: float = 5.0
    """For how many seconds a line is marked."""
    lines: tuple[tuple[str, float], ...] | None = None
    """`None` before the first text: nothing of that is marked."""

    def update(self, lines: Sequence[str], now: float) -> "MarkedLines":
        """The lines that the window has now. Returns the same object if they are those of before."""
        if self.lines is None:
            return MarkedLines(self.recent, tuple((line, now - self.recent) for line in lines))
        if [line for line, _ in self.lines] == list(lines):
            return self
        known: defaultdict[str, list[float]] = defaultdict(list)
        for line, since in reversed(self.lines):
            known[line].append(since)
        return MarkedLines(self.recent, tuple((line, known[line].pop() if known[line] else now) for line in lines))

    def marked(self, now: float) -> list[str]:
        """The lines, with `+ ` before each one that is new and not empty."""
        return [
            f"{'+' if line.strip() and now - since < self.recent else ' '} {line}".rstrip()
            for line, since in self.lines or ()
        ]
