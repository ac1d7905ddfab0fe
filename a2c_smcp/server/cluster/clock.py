"""The clock by which leases and deadlines between processes are measured."""

import time

__all__ = ["now"]


def now() -> float:
    """Seconds that have passed, those included in which the machine slept. The monotonic clock of Linux stops then."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
