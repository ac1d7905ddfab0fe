"""What the command line says: text and tables for people, and `@a2c` lines for programs. Knows no terminal.

A line is `@a2c `, then one compact JSON object, `type` first. It starts in column 0, and nothing else does that starts
like it: whatever others wrote is indented, or on a line of ours. Here it loses its power over the terminal.
"""

import io
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from a2c_smcp.utils.text import harmless, printable

__all__ = ["Output", "printable", "quoted", "table"]

_MAX_SHOWN: Final = 4000


class Output:
    """Both kinds of output through one function that puts text on the screen."""

    def __init__(self, write: Callable[[str], None], *, json_lines: bool = True) -> None:
        self._write = write
        self.has_lines = json_lines
        """Whether programs get a line for each event."""

    def event(self, kind: str, text: str = "", /, **fields: Any) -> None:
        """Something that a program may wait for, in one piece: what a person reads, then its line."""
        line = ""
        if self.has_lines:
            # ASCII only: no encoding, no width and no exotic line break can break the line.
            line = f"@a2c {json.dumps({'type': kind, **fields}, separators=(',', ':'), default=str)}\n"
        if text or line:
            self._write((f"{harmless(text)}\n" if text else "") + line)

    def text(self, text: str) -> None:
        self._write(f"{harmless(text)}\n")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> str:
    """A table for people, at most this wide; `(none)` when it would be empty."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=True)
    for header in headers:
        drawn.add_column(header, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    if not drawn.row_count:
        return "  (none)"
    page = io.StringIO()
    Console(file=page, width=max(width, 40), color_system=None).print(drawn)
    return page.getvalue().rstrip("\n")


def quoted(text: str) -> str:
    """A text from outside, for `Output`: indented, and cut if it is long."""
    if len(text) > _MAX_SHOWN:
        text = f"{text[:_MAX_SHOWN]}… ({len(text)} characters)"
    return "\n".join(f"  {line}" for line in text.split("\n"))
