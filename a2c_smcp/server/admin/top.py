"""`a2c server admin top`: what is busy, slow and full, again and again. `q` or Ctrl-C ends it."""

import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from a2c_smcp.errors import SMCPError
from a2c_smcp.server.admin.client import AdminClient
from a2c_smcp.server.admin.tables import member_table, office_table, process_table, silent_lines, tool_table
from a2c_smcp.terminal.screen import cells, console

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["run_top", "top_tables"]


def top_tables(view: Mapping[str, Any], now: float) -> list[tuple[str, Sequence[Sequence[str]]]]:
    """The tables of one look, each with its title."""
    queues = [[row[0], *row[2:4], row[6], row[11]] for row in member_table(view["queues"], now)]
    offices = [[row[0], *row[3:]] for row in office_table(view["offices"])]
    return [
        ("Server processes", process_table(view["processes"], now)),
        ("Offices by calls", offices),
        ("Slowest tools", tool_table(view["tools"])),
        ("Longest queues", queues),
    ]


def run_top(client: AdminClient, every: float) -> None:
    """Show the live view until the person ends it. Raises `SMCPError` if the first look fails."""
    from rich.live import Live

    view, problem = client.get("top"), ""
    with (
        suppress(KeyboardInterrupt),
        _keys() as pressed,
        Live(console=console(), screen=True, auto_refresh=False) as live,
    ):
        while True:
            live.update(_drawn(view, problem), refresh=True)
            if pressed(every) in ("q", "Q"):
                return
            try:
                view, problem = client.get("top"), ""
            except SMCPError as error:
                problem = str(error)  # it may come back: a restart takes a moment


def _drawn(view: Mapping[str, Any], problem: str) -> "RenderableType":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    def line(text: str, style: str = "") -> Text:
        (cell,) = cells([text], sys.stdout)
        cell.stylize(style)
        return cell

    parts: list[RenderableType] = [line(f"{time.strftime('%H:%M:%S')}  q: end", "dim")]
    parts += [line(text, "bold red") for text in ([problem] if problem else []) + silent_lines(view["silent"])]
    for title, (head, *rows) in top_tables(view, time.time()):
        table = Table(*head, title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for row in rows:
            table.add_row(*cells(row, sys.stdout))
        parts += ["", table]
    return Group(*parts)


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """A function that waits for a key for some seconds; it returns an empty text if none was pressed."""
    try:
        import termios
        import tty

        before = termios.tcgetattr(sys.stdin)
    except (ImportError, OSError):  # no terminal to read keys from; Ctrl-C works all the same
        yield _wait
        return
    tty.setcbreak(sys.stdin)
    try:
        yield _wait_for_key
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _wait(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _wait_for_key(seconds: float) -> str:
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return sys.stdin.read(1) if ready else ""
