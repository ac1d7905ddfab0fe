"""The figures as a table of `docs/benchmarks.md`, between two marks. Pure."""

from collections.abc import Sequence
from typing import Final

from bench.documents.measuring import Measured
from bench.documents.reading import OURS
from bench.report import DOCUMENTS_BEGIN, DOCUMENTS_END, documents_part

__all__ = ["markdown_table", "with_table"]

_HEAD: Final = [
    "format",
    "files",
    "not read",
    "failures",
    "5-grams found",
    "markitdown",
    "best other",
    "s a file",
    "s at most",
    "MiB at most",
]
_WORDS: Final = """## What is read of foreign documents

Files from source packages of public projects, read by us and by other readers; `make bench-docs` measures again. Some
are broken or encrypted on purpose, and nobody reads them: a failure is a file that we cannot read, although two others
can. "5-grams found" is our share of those five words in a
row that at least two other readers find: the mean over the files that have 30 or more of them. The definitions are in
`bench/documents/__init__.py`. Time and memory are those of our worker process."""

_BUSY: Final = """The machine was busy with other work: {load:.0f} processes shared {cores}
cores, so the seconds are longer than on a quiet machine."""


def markdown_table(rows: Sequence[Measured]) -> str:
    lines = [f"| {' | '.join(_HEAD)} |", "|" + " --- |" * len(_HEAD)]
    return "\n".join(lines + [f"| {' | '.join(_cells(row))} |" for row in rows])


def _cells(row: Measured) -> list[str]:
    others = {name: value for name, value in row.recalls.items() if name != OURS}
    best = max(others, key=lambda name: others[name], default="")
    return [
        row.kind,
        f"{row.files:,}",
        str(row.unread),
        str(row.failures.get(OURS, 0)),
        f"{_share(row.recalls.get(OURS))} of {row.counted}" if row.counted else "–",
        _share(row.recalls.get("markitdown")),
        f"{best} {_share(others[best])}" if best else "–",
        f"{row.seconds:.2f}",
        f"{row.slowest:.1f}",
        f"{row.mib:.0f}",
    ]


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def with_table(page: str, rows: Sequence[Measured], load: float = 0.0, cores: int = 1) -> str:
    """The page with this table in the place of the one that it had, or at its end.

    `load` is how many processes wanted to run. If they were more than the cores, the page says so beside the seconds.
    """
    words = f"{_WORDS} {_BUSY.format(load=load, cores=cores)}" if load > cores else _WORDS
    made = f"{DOCUMENTS_BEGIN}\n\n{words}\n\n{markdown_table(rows)}\n\n{DOCUMENTS_END}"
    old = documents_part(page)
    return page.replace(old, made) if old else f"{page.rstrip()}\n\n{made}\n"
