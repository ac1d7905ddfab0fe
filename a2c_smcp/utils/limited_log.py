"""Log lines about peers: a few per second for each peer, then a count. The clock and the timer are handed in."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from a2c_smcp.utils.log_fields import with_fields

__all__ = ["LimitedLog", "SparseFilter"]

#: How many lines per second about one peer, unless told otherwise.
PER_SECOND: Final = 5


class _Second:
    """The lines about one peer in one second."""

    __slots__ = ("began", "left_out", "said")

    def __init__(self, began: float) -> None:
        self.began = began
        self.said = 0
        self.left_out = 0


def _start_timer(seconds: float, call: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()


class LimitedLog:
    """Warnings about peers. No peer can flood the log with them. Safe to use from many threads."""

    def __init__(
        self,
        logger: logging.Logger,
        *,
        per_second: int = PER_SECOND,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], object] = _start_timer,
    ) -> None:
        self._logger = logger
        self._per_second = per_second
        self._clock = clock
        self._later = later
        self._seconds: dict[str, _Second] = {}
        self._lock = threading.Lock()
        self._waiting = False

    def warn(self, peer: str, message: str, *args: object, fields: Mapping[str, object] | None = None) -> None:
        """Log a line about a peer. If there were enough in this second, count it only. `fields` are those of
        `with_fields`.
        """
        self.log(logging.WARNING, peer, message, *args, fields=fields)

    def log(
        self, level: int, peer: str, message: str, *args: object, fields: Mapping[str, object] | None = None
    ) -> None:
        """The same with another level."""
        if self._logger.isEnabledFor(level) and self.allows(peer):
            self._logger.log(level, message, *args, extra=with_fields(**fields or {}))

    def exception(self, peer: str, message: str, *args: object) -> None:
        """The same as an error, with the traceback of the current exception."""
        if self.allows(peer):
            self._logger.exception(message, *args)

    def allows(self, peer: str) -> bool:
        """Count one line about a peer. Returns whether to log it."""
        now = self._clock()
        with self._lock:
            second = self._seconds.get(peer)
            if second is None or (now - second.began >= 1 and not second.left_out):
                # With more peers than this, the counts of earlier seconds are forgotten.
                if len(self._seconds) >= 1000:
                    self._forget(now)
                second = self._seconds[peer] = _Second(now)
            if second.said < self._per_second:
                second.said += 1
                return True
            second.left_out += 1
            wait = not self._waiting
            self._waiting = True
        if wait:
            self._later(1.0, self._count)
        return False

    def _count(self) -> None:
        """Log how many lines were left out."""
        with self._lock:
            self._waiting = False
            counted = [(peer, second.left_out) for peer, second in self._seconds.items() if second.left_out]
            for peer, _ in counted:
                del self._seconds[peer]
        for peer, left_out in counted:
            self._logger.warning("%d more lines about %s were left out", left_out, peer)

    def _forget(self, now: float) -> None:
        self._seconds = {
            peer: second for peer, second in self._seconds.items() if second.left_out or now - second.began < 1
        }


class SparseFilter(logging.Filter):
    """Passes a few lines per second from each place in the code, for libraries that log every mistake of a peer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seconds: dict[Any, _Second] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        # Some libraries put a peer's text into the wording itself, so lines are grouped by their place in the code.
        wording = (record.pathname, record.lineno)
        second = self._seconds.get(wording)
        if second is None or now - second.began >= 1:
            left_out = second.left_out if second else 0
            second = self._seconds[wording] = _Second(now)
            if left_out:
                record.msg = f"{record.msg} ({left_out} more such lines were left out)"
        second.said += 1
        if second.said <= PER_SECOND:
            return True
        second.left_out += 1
        return False
