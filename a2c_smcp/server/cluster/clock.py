"""The clock by which leases and deadlines between processes are measured."""

import time
from collections.abc import Callable
from functools import partial

__all__ = ["now"]

#: Seconds that have passed, those included in which the machine slept. The monotonic clock of Linux stops then.
now: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
