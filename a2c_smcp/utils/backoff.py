"""How long to wait before the next attempt. Pure: no clock, no chance."""

__all__ = ["backoff"]


def backoff(failures: int, first: float, longest: float) -> float:
    """The pause after this many failures in a row: `first` after one failure, then twice as long each time, at most
    `longest`.
    """
    # More doublings would overflow a float, and exceed every longest pause anyway.
    return min(longest, first * 2.0 ** min(max(failures - 1, 0), 64))
