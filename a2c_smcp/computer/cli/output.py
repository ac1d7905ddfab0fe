"""What the command line says: text and tables for people, and `@a2c` lines for programs. Knows no terminal.

A line for programs is `@a2c ` and one compact JSON object, `type` first. It starts in column 0. Nothing that others
wrote can look like it: their words are indented, or stand inside a line of ours, and cannot control the terminal.
"""

import io
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from a2c_smcp.utils.text import harmless, printable, quoted

__all__ = ["Output", "printable", "quoted", "table"]


class Output:
    """Writes both kinds of output with one function."""

    def __init__(self, write: Callable[[str], None], *, json_lines: bool = True) -> None:
        self._write = write
        self.has_lines = json_lines
        """Whether programs get a line for each event."""

    def event(self, kind: str, text: str = "", /, **fields: Any) -> None:
        """Write an event in one piece: the text for a person, then the line for programs."""
        line = ""
        if self.has_lines:
            # ASCII only, so that no encoding, wide character or unusual line break can break the line.
            line = f"@a2c {json.dumps({'type': kind, **fields}, separators=(',', ':'), default=str)}\n"
        if text or line:
            self._write((f"{harmless(text)}\n" if text else "") + line)

    def text(self, text: str) -> None:
        self._write(f"{harmless(text)}\n")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> str:
    """A table for people, at most `width` columns wide; `(none)` if there are no rows."""
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
