"""The one place where a command prints. Words of others cannot control the terminal, and nothing in them is hidden.

A pipe and a file get every character as it is, and so does a terminal with `--raw`. Tables are for people, wherever
they go: they show control characters as escapes, also in a pipe, unless `--raw` is given. Stdout and stderr are treated
separately: one may be a pipe while the other is a terminal.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import IO, TYPE_CHECKING

from a2c_smcp.utils.text import harmless, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["aligned", "cells", "console", "say"]


def say(text: str, *, err: bool = False, raw: bool = False, one_line: bool = False, end: str = "\n") -> None:
    """Print a text on stdout or stderr at once. Raises `OSError` if the reader has gone or the disk is full.

    `one_line` is for a line with words of others in it: they cannot add a line that looks like ours.
    With an empty `end` the text is a piece of a line.
    """
    stream = sys.stderr if err else sys.stdout
    if not _as_it_is(stream, raw):
        text = printable(text) if one_line else harmless(text)
    stream.write(f"{text}{end}")
    stream.flush()


def console(*, stderr: bool = False, soft_wrap: bool = False) -> "Console":
    """Where rich prints. With `NO_COLOR` it prints no styles at all; rich itself would still print bold."""
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))
    return Console(stderr=stderr, highlight=False, soft_wrap=soft_wrap, color_system=None if plain else "auto")


def aligned(rows: Sequence[Sequence[str]], *, raw: bool = False) -> Iterator[str]:
    """The lines of a table for a pipe or a file. Columns are aligned and nothing is wrapped, so that a program finds
    each name whole. Only the last cell of a row may take several lines; with `raw`, any cell may.
    """
    from rich.cells import cell_len

    shown = rows if raw else [[*map(printable, row[:-1]), *map(harmless, row[-1:])] for row in rows]
    split = [[cell.split("\n") for cell in row] for row in shown]
    widths = [max(cell_len(line) for cell in column for line in cell) for column in zip(*split, strict=True)]
    for row in split:
        for line in zip_longest(*row, fillvalue=""):
            padded = (part + " " * (width - cell_len(part)) for part, width in zip(line, widths, strict=True))
            yield "  ".join(padded).rstrip()


def cells(row: Sequence[str], stream: IO[str], *, raw: bool = False) -> "list[Text]":
    """The cells of a row for a table of rich, which would read a plain string as markup.

    Only the last cell may have several lines: in another column, a second line could look like a row.
    """
    from rich.text import Text

    if _as_it_is(stream, raw):
        return [Text(cell) for cell in row]
    *names, last = row
    return [*(Text(printable(name)) for name in names), Text(harmless(last))]


def _as_it_is(stream: IO[str], raw: bool) -> bool:
    return raw or not stream.isatty()
