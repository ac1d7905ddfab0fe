"""The one place where a command prints: words of others have no power over a terminal, and hide nothing there.

A pipe and a file get every character as it is, and so does a terminal whose person asked for that with `--raw`. Tables
are for people, wherever they go: in them, control characters are shown as escapes, in a pipe too, unless `--raw` is
given. Each stream is looked at by itself: stdout may be a pipe while stderr is a terminal.
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


def say(text: str, *, err: bool = False, raw: bool = False, one_line: bool = False) -> None:
    """Print a text on stdout, or on stderr; at once. Raises `OSError` when nobody reads it, or the disk is full.

    `one_line` is for a line of ours with words of others in it: they cannot add a line that looks like ours.
    """
    stream = sys.stderr if err else sys.stdout
    if not _as_it_is(stream, raw):
        text = printable(text) if one_line else harmless(text)
    stream.write(f"{text}\n")
    stream.flush()


def console(*, stderr: bool = False, soft_wrap: bool = False) -> "Console":
    """Where rich prints. With `NO_COLOR` it prints no styles at all: to rich itself that means colours, not bold."""
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))
    return Console(stderr=stderr, highlight=False, soft_wrap=soft_wrap, color_system=None if plain else "auto")


def aligned(rows: Sequence[Sequence[str]], *, raw: bool = False) -> Iterator[str]:
    """The lines of a table for a pipe or a file. Columns are aligned, and nothing is wrapped: a program finds each name
    whole. A last cell of several lines takes as many; so does any cell with `raw`.
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
    """The cells of a row for a table of rich's, which would take a text for markup.

    Only the last one may have several lines: in any other column the second line could be taken for a row.
    """
    from rich.text import Text

    if _as_it_is(stream, raw):
        return [Text(cell) for cell in row]
    *names, last = row
    return [*(Text(printable(name)) for name in names), Text(harmless(last))]


def _as_it_is(stream: IO[str], raw: bool) -> bool:
    return raw or not stream.isatty()
