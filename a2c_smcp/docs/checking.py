"""What `a2c docs check` prints: every file, with its pages and how long it took, or the reason why it is not served."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console
from rich.table import Table

from a2c_smcp.docs.describing import Facts
from a2c_smcp.docs.folder import NOT_A_DOCUMENT, Folder, facts_of
from a2c_smcp.docs.library import Library
from a2c_smcp.docs.served import request_for
from a2c_smcp.docs.walking import MAY_HOLD_SECRET, FoundFile
from a2c_smcp.terminal import screen

__all__ = ["print_check"]

#: Stands for the number of pages of a file that cannot be read, and of one that is not served.
_NO_PAGES: Final = "-"
_NOT_SERVED: Final = "not served: "


@dataclass(slots=True)
class _Report:
    rows: list[tuple[str, ...]] = field(default_factory=list)
    served: int = 0
    unreadable: int = 0
    not_served: int = 0
    secret: bool = False
    """Whether a file is left out because it may hold a secret."""

    def add(self, file: str, facts: Facts | None, seconds: float) -> None:
        took = f"{seconds:.3f}"
        if facts is None:
            self.leave_out(file, NOT_A_DOCUMENT)
            return
        self.served += 1
        if facts.problem is not None:
            self.unreadable += 1
            self.rows.append((file, _NO_PAGES, took, f"{facts.problem['code']} {facts.problem['reason']}"))
        else:
            self.rows.append((file, str(facts.page_count), took, facts.title))

    def leave_out(self, path: str, reason: str) -> None:
        self.not_served += 1
        self.secret = self.secret or reason == MAY_HOLD_SECRET
        self.rows.append((path, _NO_PAGES, _NO_PAGES, f"{_NOT_SERVED}{reason}"))


async def print_check(library: Library, *, raw: bool = False) -> int:
    """Print the table, and return the exit code: 1 if a file cannot be read."""
    console = screen.console(soft_wrap=True)
    report = _Report()
    started = time.monotonic()
    async with library.workers:
        for folder in library.folders:
            await _check_folder(library, folder, report)
    if report.rows:
        _print_table(sorted(report.rows), console, raw)
    if report.secret:
        console.print(
            "What may hold a secret is served only on purpose: --include NAME, or --include with a pattern for such "
            "files, such as '*.pem'."
        )
    console.print(
        f"{report.served} documents in {time.monotonic() - started:.1f} s; "
        f"{report.unreadable} cannot be read; {report.not_served} files or folders are not served"
    )
    return 1 if report.unreadable else 0


async def _check_folder(library: Library, folder: Folder, report: _Report) -> None:
    found = await asyncio.to_thread(folder.walk)
    files = list(found.files.values())
    with _progress(len(files)) as shown:
        for file in files:
            shown(file.path)
            begun = time.monotonic()
            facts = await _look_at(library, folder.root, file)
            report.add(file.path, facts, time.monotonic() - begun)
    for path, reason in found.left_out.reasons.items():
        report.leave_out(path, reason)
    if more := found.left_out.total - len(found.left_out.reasons):
        report.rows.append((f"… {more} more", _NO_PAGES, _NO_PAGES, f"{_NOT_SERVED}they are too many to be named"))
        report.not_served += more


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """Shows which file is read, on stderr: at a terminal only."""
    if not sys.stderr.isatty():
        yield lambda path: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("reading"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[file]}", markup=False),
    )
    with Progress(*columns, console=screen.console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=total, file="")

        def show(path: str) -> None:
            bar.update(task, advance=1, file=screen.cells([path, ""], sys.stderr)[0].plain)

        yield show


def _print_table(rows: Sequence[tuple[str, ...]], console: Console, raw: bool) -> None:
    header = ("file", "pages", "seconds", "title")
    if not console.file.isatty():
        for line in screen.aligned([header, *rows], raw=raw):
            console.file.write(f"{line}\n")
        return
    table = Table(box=None, pad_edge=False)
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        shown = screen.cells(row, console.file, raw=raw)
        if row[1] == _NO_PAGES:
            not_served = row[-1].startswith(_NOT_SERVED)
            shown[-1].stylize("dim" if not_served else "red", 0, None if not_served else row[-1].index(" "))
        table.add_row(*shown)
    console.print(table)


async def _look_at(library: Library, root: str, file: FoundFile) -> Facts | None:
    [answer] = await library.workers.describe([request_for(root, file)])
    facts = facts_of(file, answer)
    return None if facts is None else Facts(**facts)
