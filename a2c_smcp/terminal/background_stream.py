"""A terminal or a pipe that never holds its writer up: a thread writes to it.

If the reader stops (Ctrl-S, a terminal that hangs, a log collector that stands still), only this thread waits. Texts
that do not fit meanwhile are dropped and counted.
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
from typing import TextIO, cast

__all__ = ["BackgroundStream", "Backlog", "ReaderLimits", "background_stderr"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """How many bytes may wait for a reader. A text that comes while nothing waits is always taken."""

    slow: int = 32 * 1024 * 1024
    """Bytes that may wait while the reader reads."""
    stopped: int = 64 * 1024
    """Bytes that may wait while it has stopped. It gets all of them when it goes on."""
    seconds: float = 1.0
    """A reader that took nothing for this many seconds has stopped."""
    last_seconds: float = 5.0
    """How long the writing of the rest may take at the end."""
    chunk: int = 4096
    """Bytes of one write."""


class Backlog:
    """What waits for a reader. When a text does not fit, this text and all later ones are dropped, until `resume`.

    Texts are dropped whole: a part of a text could end in the middle of an escape sequence.
    """

    def __init__(self, limits: ReaderLimits, now: float) -> None:
        self._limits = limits
        self._parts: deque[memoryview] = deque()
        self._read_at = now
        self.size = 0
        """How many bytes wait."""
        self.taken = 0
        """How many bytes were added so far. Dropped bytes do not count."""
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
        """The next bytes to write, at most a chunk."""
        return self._parts[0][: self._limits.chunk] if self._parts else memoryview(b"")

    def wrote(self, count: int, now: float) -> None:
        """Note that `count` bytes of the head were written."""
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
    """Writes to the file of another stream, from a thread. Call `finish` at the end.

    `on_drained` is called in that thread when something was dropped and there is room again. It must make sure that
    `resume` is called.
    """

    def __init__(self, stream: TextIO, on_drained: Callable[[], None], limits: ReaderLimits | None = None) -> None:
        self._stream = stream
        self._fd = stream.fileno()
        self._on_drained = on_drained
        self._limits = limits or ReaderLimits()
        self._backlog = Backlog(self._limits, time.monotonic())
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
        """Does nothing: the thread writes every text."""

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override] # nobody writes this attribute
        return self._stream.encoding

    # --- how much was written

    @property
    def position(self) -> int:
        """The position after the last text that was taken, for `has_written`."""
        return self._backlog.taken

    def has_written(self, position: int) -> bool:
        """Whether everything up to this position was written. False while texts are dropped."""
        with self._changed:
            return self._backlog.has_written(position)

    def resume(self) -> int:
        """Take texts again; returns how many lines were dropped."""
        with self._changed:
            return self._backlog.resume()

    def finish(self) -> None:
        """Write what waits, unless the reader has stopped. Later texts are written at once, or dropped."""
        deadline = time.monotonic() + self._limits.last_seconds
        with self._changed:
            while self._backlog.size and (left := deadline - time.monotonic()) > 0:
                if not self._changed.wait(min(left, self._limits.seconds)):
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
        except BlockingIOError:  # another program has made this terminal non-blocking
            select.select((), (self._fd,), (), 1.0)
            return 0
        except OSError:
            return len(chunk)  # the reader has gone; a signal ends the program


@contextmanager
def background_stderr(limits: ReaderLimits | None = None) -> Iterator[None]:
    """While inside, nobody who writes to stderr waits for its reader. A file has no reader, and is written at once."""
    stderr = sys.stderr
    if stderr is None or not _has_reader(stderr):
        yield
        return

    def tell() -> None:
        logger.warning("%d lines of this log were dropped: nobody read it", stream.resume())

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
    except (OSError, ValueError):  # closed, or not a file at all, as in a test
        return False
    return stream.isatty() or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
