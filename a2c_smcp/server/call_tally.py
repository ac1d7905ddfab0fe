"""Which offices have how many tool calls, and which tools are slow. Pure: the clock is handed in.

Only names are kept, and of a bounded number of offices and tools: those that were called last.
"""

import math
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final, NamedTuple

from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["CallTally", "OfficeTally", "Tally", "ToolName"]

#: Seconds over which a rate is taken: a call counts half as much after 0.7 times as long.
_WINDOW: Final = 60.0
_MOST_OFFICES: Final = 1000
#: In one office.
_MOST_TOOLS: Final = 32


class ToolName(NamedTuple):
    """Which tool of which computer. The names are cut: a peer may send names of any length."""

    office: str
    computer: str
    tool: str


@dataclass(slots=True)
class Tally:
    """The calls of one office or one tool."""

    calls: int = 0
    failed: int = 0
    slowest: float = 0.0
    """Seconds of the slowest call."""
    _recent: float = 0.0
    _recent_seconds: float = 0.0
    _at: float = 0.0

    def add(self, seconds: float, failed: bool, now: float) -> None:
        share = math.exp((self._at - now) / _WINDOW)
        self._at = now
        self.calls += 1
        self.failed += failed
        if seconds > self.slowest:
            self.slowest = seconds
        self._recent = self._recent * share + 1
        self._recent_seconds = self._recent_seconds * share + seconds

    def per_minute(self, now: float) -> float:
        """Calls a minute, lately."""
        return self._recent * math.exp((self._at - now) / _WINDOW) * 60 / _WINDOW

    @property
    def mean(self) -> float:
        """How long a call took, in seconds, lately."""
        return self._recent_seconds / self._recent if self._recent else 0.0


@dataclass(slots=True)
class OfficeTally(Tally):
    """The calls of one office, and of the tools there."""

    tools: BoundedDict[tuple[str, str], Tally] = field(default_factory=lambda: BoundedDict(_MOST_TOOLS))
    """By computer and tool. Each office has a table of its own, so that nobody pushes out the tools of others."""


class CallTally:
    """Counts the tool calls that the agents of this process make."""

    def __init__(self) -> None:
        self._offices: BoundedDict[str, OfficeTally] = BoundedDict(_MOST_OFFICES)

    def note(self, name: ToolName, seconds: float, failed: bool, now: float) -> None:
        """A call of this tool has ended."""
        if (office := self._offices.use(name.office)) is None:
            self._offices.put(name.office, office := OfficeTally())
        key = name.computer, name.tool
        if (tool := office.tools.use(key)) is None:
            office.tools.put(key, tool := Tally())
        for tally in (office, tool):
            tally.add(seconds, failed, now)

    def office(self, office: str) -> Tally | None:
        return self._offices.get(office)

    def busiest_offices(self, most: int, now: float) -> list[tuple[str, Tally]]:
        """The offices with the most calls a minute."""
        offices = zip(self._offices, self._offices.values(), strict=True)
        return nlargest(most, offices, key=lambda pair: pair[1].per_minute(now))

    def slowest_tools(self, most: int) -> list[tuple[ToolName, Tally]]:
        """The tools whose calls take longest, lately."""
        tools = (
            (ToolName(name, *key), tally)
            for name, office in zip(self._offices, self._offices.values(), strict=True)
            for key, tally in zip(office.tools, office.tools.values(), strict=True)
        )
        return nlargest(most, tools, key=lambda pair: pair[1].mean)
