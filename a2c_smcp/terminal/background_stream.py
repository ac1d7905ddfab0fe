"""A terminal or a pipe that never holds its writer up: a thread of its own writes. Knows text, nothing of what it says.

A reader that stops reading (Ctrl-S, a terminal that hangs, a log collector that stands still) stops that thread, and
nobody else. What does not fit in the meantime is dropped and counted.
"""

import io
import logging
import os
import select
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TextIO, cast

__all__ = ["BackgroundStream", "Backlog", "ReaderLimits", "background_stderr"]

logger = logging.getLogger(__name__)

_CHUNK: Final = 4096
#: At the end: how long a reader may take nothing, and how long all of it may take.
_LAST_SILENCE: Final = 1.0
_LAST_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """How many bytes may wait for a reader. A text that comes while nothing waits is always taken."""

    slow: int = 32 * 1024 * 1024
    """While it reads."""
    stopped: int = 64 * 1024
    """While it does not. It will be shown all of this when it reads on."""
    seconds: float = 1.0
    """It has stopped when it took nothing for so long."""


class Backlog:
    """What waits for a reader. The first text that does not fit, and all that follow until `resume`, are dropped.

    Texts are dropped whole: a part of one could be half an escape sequence.
    """

    def __init__(self, limits: ReaderLimits, now: float) -> None:
        self._limits = limits
        self._parts: deque[memoryview] = deque()
        self._read_at = now
        self.size = 0
        """How many bytes wait."""
        self.taken = 0
        """How many bytes were added so far, without those that were dropped."""
        self.is_losing = False
        self._lost_lines = 0

    def add(self, data: bytes, now: float) -> None:
        if not self.size:
            self._read_at = now
        if self.is_losing or (self.size and self.size + len(data) > self._limit(now)):
            self.is_losing = True
            self._lost_lines += data.count(b"\n")
        elif data:
            self._parts.append(memoryview(data))
            self.size += len(data)
            self.taken += len(data)

    def _limit(self, now: float) -> int:
        return self._limits.slow if now - self._read_at < self._limits.seconds else self._limits.stopped

    def head(self) -> memoryview:
        """What comes next, at most a chunk."""
        return self._parts[0][:_CHUNK] if self._parts else memoryview(b"")

    def wrote(self, count: int, now: float) -> None:
        """So many bytes of the head were read."""
        if not count:
            return
        rest = self._parts.popleft()[count:]
        if rest:
            self._parts.appendleft(rest)
        self.size -= count
        self._read_at = now

    def has_written(self, position: int) -> bool:
        """Whether everything up to this value of `taken` was written, and nothing is being dropped."""
        return not self.is_losing and self.taken - self.size >= position

    def resume(self) -> int:
        """Take texts again; returns how many lines were dropped."""
        lost, self._lost_lines, self.is_losing = self._lost_lines, 0, False
        return lost


class BackgroundStream(io.TextIOBase):
    """Writes to the file of another stream, from a thread. To be finished.

    `on_drained` is called in that thread when something was dropped and there is room again. It sees to it that
    somebody calls `resume`.
    """

    def __init__(self, stream: TextIO, on_drained: Callable[[], None], limits: ReaderLimits | None = None) -> None:
        self._stream = stream
        self._fd = stream.fileno()
        self._on_drained = on_drained
        self._backlog = Backlog(limits or ReaderLimits(), time.monotonic())
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_finished = False

    # --- as a stream

    def write(self, text: str) -> int:
        data = text.encode(self._stream.encoding, "replace")
        with self._changed:
            if self._is_finished:
                self._write_last(data)
            else:
                self._backlog.add(data, time.monotonic())
                self._changed.notify_all()
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="a2c background stream", daemon=True)
                    self._thread.start()
        return len(text)

    def flush(self) -> None:
        """Does nothing: every text is on its way."""

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override] # a writable attribute there, and never written
        return self._stream.encoding

    # --- how far it is

    @property
    def position(self) -> int:
        """The end of what was taken, for `has_written`."""
        return self._backlog.taken

    def has_written(self, position: int) -> bool:
        """Whether the reader could see everything up to this position; not while something is dropped."""
        with self._changed:
            return self._backlog.has_written(position)

    def resume(self) -> int:
        """Take texts again; returns how many lines were dropped."""
        with self._changed:
            return self._backlog.resume()

    def finish(self) -> None:
        """Write what waits, unless its reader has stopped. What comes later is written at once, or dropped then."""
        deadline = time.monotonic() + _LAST_SECONDS
        with self._changed:
            while self._backlog.size and (left := deadline - time.monotonic()) > 0:
                if not self._changed.wait(min(left, _LAST_SILENCE)):
                    break
            self._is_finished = True
            self._changed.notify_all()
        if self._thread is not None and not self._backlog.size:
            self._thread.join(max(0.0, deadline - time.monotonic()))

    def _write_last(self, data: bytes) -> None:
        if not self._backlog.size:
            with suppress(OSError):
                os.write(self._fd, data)

    # --- the thread

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._backlog.size or self._is_finished)
                chunk = self._backlog.head()
                if not chunk:
                    return
            count = self._write(chunk)
            with self._changed:
                self._backlog.wrote(count, time.monotonic())
                has_lost = self._backlog.is_losing and not self._backlog.size
                self._changed.notify_all()
            if has_lost:
                self._on_drained()

    def _write(self, chunk: memoryview) -> int:
        try:
            return os.write(self._fd, chunk)
        except BlockingIOError:  # another program that has this terminal made it non-blocking
            select.select((), (self._fd,), (), _LAST_SILENCE)
            return 0
        except OSError:
            return len(chunk)  # nobody reads it ever again; the signal that says so ends the program


@contextmanager
def background_stderr(limits: ReaderLimits | None = None) -> Iterator[None]:
    """While inside, nobody who writes to stderr waits for its reader. A file has none, and is written at once."""
    stderr = sys.stderr
    if stderr is None or not _has_reader(stderr):
        yield
        return

    def tell() -> None:
        logger.warning("%d lines of this log are lost: nobody read it", stream.resume())

    stream = BackgroundStream(stderr, tell, limits)
    sys.stderr = cast(TextIO, stream)
    try:
        yield
    finally:
        sys.stderr = stderr
        stream.finish()


def _has_reader(stream: TextIO) -> bool:
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):  # closed, or not a file at all: a test's
        return False
    return stream.isatty() or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
