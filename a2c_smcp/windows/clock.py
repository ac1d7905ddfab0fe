"""Times as windows show them."""

import time

__all__ = ["clock"]


def clock(at: float) -> str:
    """A time of today as `12:03:04`, in the machine's own zone."""
    return time.strftime("%H:%M:%S", time.localtime(at))
