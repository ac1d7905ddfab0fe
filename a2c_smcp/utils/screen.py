"""The one place where a command prints: words of others have no power over a terminal, and hide nothing there.

A pipe and a file get every character as it is, and so does a terminal whose person asked for that with `--raw`. Each
stream is looked at by itself: stdout may be a pipe while stderr is a terminal.
"""

import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from a2c_smcp.utils.text import harmless, printable

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["cells", "say"]


def say(text: str, *, err: bool = False, raw: bool = False, one_line: bool = False) -> None:
    """Print a text on stdout, or on stderr; at once. Raises `OSError` when nobody reads it, or the disk is full.

    `one_line` is for a line of ours with words of others in it: they cannot add a line that looks like ours.
    """
    stream = sys.stderr if err else sys.stdout
    if not _as_it_is(stream, raw):
        text = printable(text) if one_line else harmless(text)
    stream.write(f"{text}\n")
    stream.flush()


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
