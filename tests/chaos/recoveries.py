"""How long it took until the office was whole again after a kill, and where the seconds went. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["Recovery", "late", "steps_between", "where_the_seconds_go"]


@dataclass(frozen=True)
class Recovery:
    """One kill, and what followed from the moment that its supervisor acted."""

    deed: str
    steps: Mapping[str, float]
    """Seconds, in the order of what happened."""
    busy: float
    """How many seconds the machine took for a second of work of a process that it started: 1 when it is quiet."""

    @property
    def seconds(self) -> float:
        return sum(self.steps.values())


def steps_between(began: float, reached: Iterable[tuple[str, float]]) -> dict[str, float]:
    """How long each step took, from the instants at which it ended."""
    steps: dict[str, float] = {}
    for name, instant in reached:
        steps[name] = instant - began
        began = instant
    return steps


def late(recoveries: Sequence[Recovery], aim: float) -> list[str]:
    """Those that took longer than the aim, which is for a quiet machine."""
    return [
        f"{it.deed}: whole after {it.seconds:.1f} s, more than {aim:g} s times {it.busy:.1f} for a busy machine"
        for it in recoveries
        if it.seconds > aim * it.busy
    ]


def where_the_seconds_go(recoveries: Sequence[Recovery]) -> list[str]:
    """For each kind of kill how long it took, and the median of each of its steps."""
    kinds: dict[str, list[Recovery]] = defaultdict(list)
    for recovery in recoveries:
        kinds[recovery.deed].append(recovery)
    return [_line(deed, those) for deed, those in sorted(kinds.items())]


def _line(deed: str, those: Sequence[Recovery]) -> str:
    spent = [it.seconds for it in those]
    names = dict.fromkeys(name for it in those for name in it.steps)
    steps = ", ".join(f"{name} {median(it.steps.get(name, 0.0) for it in those):.2f}" for name in names)
    whole = f"{deed:16} {len(those):3} times, median {median(spent):5.2f} s, slowest {max(spent):5.2f} s"
    return f"{whole} ({steps}; machine {median(it.busy for it in those):.1f} times busy)"
