"""The progress of a call as a line for a terminal. Pure."""

from typing import Final

from a2c_smcp.utils.text import printable

__all__ = ["progress_line"]

_CELLS: Final = 20


def progress_line(progress: float, total: float | None, message: str | None) -> str:
    """A bar and the message, or a number where the total is unknown, if it has begun to count; without what could move
    the cursor.
    """
    if total is not None and total > 0:
        share = min(max(progress / total, 0.0), 1.0)
        filled = int(share * _CELLS)
        shown = f"{'█' * filled}{'░' * (_CELLS - filled)} {int(share * 100):3}%"
    elif message and not progress:
        return printable(message)
    else:
        shown = f"{progress:,.10g}"
    return f"{shown}  {printable(message)}" if message else shown
