"""The clock by which leases and deadlines between processes are measured."""

import time
from collections.abc import Callable
from functools import partial

__all__ = ["now"]

#: Counts the seconds in which the machine slept, too. The monotonic clock of Linux does not.
now: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
