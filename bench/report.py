"""The figures as tables for a terminal, and as `docs/benchmarks.md` with bars."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rich.table import Table

Figures = Mapping[str, Mapping[str, float | None]]

_BAR = 40
DOCUMENTS_BEGIN: Final = "<!-- make bench-docs writes from here -->"
DOCUMENTS_END: Final = "<!-- to here -->"


@dataclass(frozen=True, slots=True)
class Group:
    """One case: what each contestant needed for it."""

    title: str
    figures: Figures
    beside: str = "existing"
    """Whose figures ours are compared with."""
    ours: str = "ours"
    """Whose figures are compared."""

    @property
    def metrics(self) -> list[str]:
        return list(dict.fromkeys(metric for each in self.figures.values() for metric in each))

    def value(self, contestant: str, metric: str) -> float | None:
        return self.figures.get(contestant, {}).get(metric)

    def ratio(self, metric: str) -> float | None:
        """Ours by the other's; below 1 is better, except for rates."""
        return self.share(self.ours, metric)

    def share(self, contestant: str, metric: str) -> float | None:
        """A contestant's figure by the one that it is compared with."""
        mine, other = self.value(contestant, metric), self.value(self.beside, metric)
        return mine / other if mine is not None and other is not None and other > 0 else None


@dataclass(frozen=True, slots=True)
class Aim:
    """What a figure should come to; `measure` finds it among the groups by title."""

    what: str
    bound: float
    measure: Callable[[Mapping[str, Group]], float | None]
    at_least: bool = False
    unit: str = "×"

    def reached(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound


def table(group: Group) -> Table:
    made = Table("what", *group.figures, "ratio", title=group.title, title_justify="left")
    for cells in _rows(group):
        made.add_row(*cells)
    return made


def aims_table(groups: Iterable[Group], aims: Iterable[Aim]) -> Table:
    made = Table("what we aim at", "aim", "this run", "", title="Aims", title_justify="left")
    for cells in _aim_rows(groups, aims):
        made.add_row(*cells)
    return made


def document(groups: Iterable[Group], machine: str, aims: Iterable[Aim] = ()) -> str:
    """`docs/benchmarks.md`: what was reached, the tables, and a chart of every ratio."""
    groups = list(groups)
    parts = [
        "# Benchmarks",
        "Ours beside the existing implementation (`a2c-smcp` 0.1.2), on the same work, in one run on one machine, "
        "every role its own process. Ratios are what counts: the times belong to the machine. `make bench` draws "
        "this page again.",
        f"Measured on {machine}.",
    ]
    if rows := list(_aim_rows(groups, aims)):
        parts += ["## What we aim at", _markdown(["what", "aim", "this run", ""], rows)]
    for group in groups:
        parts += [f"## {group.title}", _markdown(["what", *group.figures, "ratio"], _rows(group)), _chart(group)]
    return "\n\n".join(filter(None, parts)) + "\n"


def documents_part(page: str) -> str:
    """What `make bench-docs` has written into a page, with its marks; empty if it has written nothing."""
    start, end = page.find(DOCUMENTS_BEGIN), page.find(DOCUMENTS_END)
    return page[start : end + len(DOCUMENTS_END)] if 0 <= start < end else ""


def _rows(group: Group) -> Iterator[list[str]]:
    for metric in group.metrics:
        ratio = group.ratio(metric)
        values = [_number(group.value(each, metric)) for each in group.figures]
        yield [metric, *values, f"{ratio:.2f}×" if ratio else ""]


def _aim_rows(groups: Iterable[Group], aims: Iterable[Aim]) -> Iterator[list[str]]:
    by_title = {group.title: group for group in groups}
    for aim in aims:
        if (value := aim.measure(by_title)) is not None:
            sign = "≥" if aim.at_least else "≤"
            said = "reached" if aim.reached(value) else "missed"
            yield [aim.what, f"{sign} {aim.bound:g}{aim.unit}", f"{value:.2f}{aim.unit}", said]


def _markdown(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    return "\n".join(lines + [f"| {' | '.join(cells)} |" for cells in rows])


def _chart(group: Group) -> str:
    lines = []
    width = max(len(group.ours), len(group.beside)) + 1
    for metric in group.metrics:
        if (ratio := group.ratio(metric)) is None:
            continue
        longest = max(ratio, 1.0)
        lines.append(metric)
        for name, share in ((group.ours, ratio), (group.beside, 1.0)):
            lines.append(f"  {name:<{width}}{'█' * max(1, round(share / longest * _BAR))} {share:.2f}")
    return "```\n" + "\n".join(lines) + "\n```" if lines else ""


def _number(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
