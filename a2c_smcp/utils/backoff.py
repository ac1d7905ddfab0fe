"""How long to wait before the next attempt. Pure: no clock, no chance."""

__all__ = ["backoff"]


def backoff(failures: int, first: float, longest: float) -> float:
    """The pause after so many failures in a row: `first` after one, then twice as long each time, `longest` at most."""
    # Doubling more often than this would be too large for a float, and is over any longest pause by then.
    return min(longest, first * 2.0 ** min(max(failures - 1, 0), 64))
