"""What `a2c docs check` prints: a line a file, with its pages and how long it took."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from a2c_smcp.docs.describing import Facts
from a2c_smcp.docs.library import Library
from a2c_smcp.docs.limits import Unreadable
from a2c_smcp.docs.walking import FoundFile, walk
from a2c_smcp.terminal import screen

__all__ = ["print_check"]

#: Stands for the number of pages of a file that cannot be read.
_NO_PAGES: Final = "-"


async def print_check(library: Library, *, raw: bool = False) -> int:
    """Print the table, and return the exit code: 1 if a file cannot be read."""
    console = screen.console(soft_wrap=True)
    rows: list[tuple[str, ...]] = []
    served = unreadable = others = 0
    started = time.monotonic()
    async with library.workers:
        for folder in library.folders:
            found = await asyncio.to_thread(walk, folder.root, folder.limits.files)
            for file in found.files.values():
                begun = time.monotonic()
                facts = await _look_at(library, folder.root, file)
                took = f"{time.monotonic() - begun:.3f}"
                if facts is None:
                    others += 1
                    continue
                served += 1
                if problem := facts.get("problem"):
                    unreadable += 1
                    row = (file.path, _NO_PAGES, took, f"{problem['code']} {problem['reason']}")
                else:
                    row = (file.path, str(facts["page_count"]), took, facts["title"])
                rows.append(row)
    if rows:
        _print_table(rows, console, raw)
    console.print(
        f"{served} documents in {time.monotonic() - started:.1f} s; "
        f"{unreadable} cannot be read; {others} files are no documents"
    )
    return 1 if unreadable else 0


def _print_table(rows: Sequence[tuple[str, ...]], console: Console, raw: bool) -> None:
    header = ("file", "pages", "seconds", "title")
    if not console.file.isatty():
        for line in screen.aligned([header, *rows]):
            console.file.write(f"{line}\n")
        return
    table = Table(*header, box=None, pad_edge=False)
    for row in rows:
        shown = screen.cells(row, console.file, raw=raw)
        if row[1] == _NO_PAGES:
            shown[-1].stylize("red", 0, row[-1].index(" "))
        table.add_row(*shown)
    console.print(table)


async def _look_at(library: Library, root: str, file: FoundFile) -> dict[str, Any] | None:
    [answer] = await library.workers.describe([[root, file.path, file.size, file.mtime_ns]])
    if "facts" in answer:
        found: dict[str, Any] | None = answer["facts"]
        return found
    problem = Unreadable.from_json(answer["problem"]) if "problem" in answer else Unreadable(answer["changed"])
    return Facts.unreadable(file.path, problem).to_json()
