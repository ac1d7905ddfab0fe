"""The progress of a call as a line for a terminal. Pure."""

from a2c_smcp.utils.text import printable

__all__ = ["progress_line"]


def progress_line(progress: float, total: float | None, message: str | None) -> str:
    """A bar and the message; a number instead of the bar if the total is unknown. It cannot move the cursor."""
    if total is not None and total > 0:
        share = min(max(progress / total, 0.0), 1.0)
        filled = int(share * 20)
        shown = f"{'█' * filled}{'░' * (20 - filled)} {int(share * 100):3}%"
    elif message and not progress:
        return printable(message)
    else:
        shown = f"{progress:,.10g}"
    return f"{shown}  {printable(message)}" if message else shown
