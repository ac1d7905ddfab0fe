"""Signals as calls of an event loop, also on systems that lack some signals or whose loops take none, such as
Windows.
"""

import asyncio
import signal
from collections.abc import Callable

__all__ = ["call_on_signals", "is_ignored"]


def is_ignored(name: str) -> bool:
    """Whether this process was started with the signal ignored, as `nohup` does with SIGHUP."""
    number = getattr(signal, name, None)
    return number is not None and signal.getsignal(number) == signal.SIG_IGN


def call_on_signals(call: Callable[[], object], *names: str) -> None:
    """Call this in the running loop when one of these signals comes. Signals that the system does not have are
    skipped.
    """
    loop = asyncio.get_running_loop()
    for name in names:
        if (number := getattr(signal, name, None)) is None:
            continue
        try:
            loop.add_signal_handler(number, call)
        except NotImplementedError:  # On Windows the loop wakes up for a handler.
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))
