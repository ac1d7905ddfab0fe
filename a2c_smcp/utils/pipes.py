"""Pipes, read and written from the event loop. Knows bytes and lines, but not their meaning.

Reading and writing happen in callbacks of the loop: no task wakes up for a line that is only passed on, and epoll is
told once. The caller closes the descriptors.
"""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import anyio

__all__ = ["Line", "LineReader", "LineSplitter", "LongLine", "Writer", "known_to_anyio", "read"]

_CHUNK: Final = 65536
_CHUNKS_A_TURN: Final = 4


@dataclass(frozen=True, slots=True)
class LongLine:
    """The kept parts of a line that is too long: its two ends, which may overlap, and its length."""

    head: bytes
    tail: bytes
    size: int


Line: TypeAlias = bytes | LongLine


class LineSplitter:
    """Splits bytes at newlines, in linear time for a line of any length. Of a line over `limit` only its `ends` are
    kept.

    `separator` ends a line. A separator of several bytes must come in one chunk.
    """

    def __init__(self, limit: int, ends: int = 4096, separator: bytes = b"\n") -> None:
        self._limit = limit
        self._ends = ends
        self._separator = separator
        self._parts: list[bytes | bytearray] = []
        self._size = 0
        self._head: bytes | None = None
        """The beginning of a line that is over the limit. Its parts then hold only its end."""

    @property
    def size(self) -> int:
        """The bytes so far of the unfinished line."""
        return self._size

    def feed(self, chunk: bytes) -> list[Line]:
        # Usually a chunk is a piece of one long line, or ends with the only line in it. Checking this is ten times as
        # fast as splitting.
        end = chunk.find(self._separator)
        if not self._size and 0 <= end <= self._limit and end == len(chunk) - len(self._separator):
            return [chunk[:end]]
        if end < 0:
            self._append(chunk)
            return []
        if end == len(chunk) - len(self._separator):
            self._append(chunk[:end])
            return [self.rest()]
        first, *others = chunk.split(self._separator)
        self._append(first)
        lines: list[Line] = []
        for part in others:
            lines.append(self.rest())
            self._append(part)
        return lines

    def rest(self) -> Line:
        line = self._joined()
        head, size = self._head, self._size
        self._parts, self._size, self._head = [], 0, None
        return line if head is None else LongLine(head, line, size)

    def _joined(self) -> bytes:
        match self._parts:
            case [bytes(only)]:
                return only
        return b"".join(self._parts)

    def _append(self, part: bytes) -> None:
        if part:
            self._keep(part)
            self._size += len(part)
            if self._size > self._limit:
                self._keep_ends()

    def _keep(self, part: bytes) -> None:
        """Join small parts: a line that comes byte by byte would need fifty times its size."""
        if not self._parts or len(self._parts[-1]) >= _CHUNK or len(part) >= _CHUNK:
            self._parts.append(part)
            return
        last = self._parts[-1]
        if not isinstance(last, bytearray):
            last = self._parts[-1] = bytearray(last)
        last += part

    def _keep_ends(self) -> None:
        kept = self._joined()
        if self._head is None:
            self._head = kept[: self._ends]
        self._parts = [kept[-self._ends :]]


async def read(fd: int) -> bytes:
    """Read the available bytes, as soon as there are some; empty at the end."""
    while True:
        # Yield before every read, so that a server that floods us does not stop the loop.
        await anyio.wait_readable(fd)
        with suppress(BlockingIOError):
            return os.read(fd, _CHUNK)


def known_to_anyio(callback: Callable[[], None]) -> Callable[[], None]:
    """A callback of the loop in which anyio knows that asyncio runs.

    If sniffio is installed, which many packages bring, anyio asks it, and sniffio knows tasks only. In a callback anyio
    would then start no task.
    """
    sniffio = sys.modules.get("sniffio")  # anyio has imported it if it is there
    if sniffio is None:
        return callback
    context = copy_context()
    context.run(sniffio.current_async_library_cvar.set, "asyncio")
    return partial(context.run, callback)


class LineReader:
    """Hands every line of a descriptor to `on_line`, a few chunks per turn of the loop, then calls `on_end`.

    For a line over `limit` it hands over the ends. While it is paused, it leaves the rest in the pipe. Close it before
    the descriptor.
    """

    def __init__(self, fd: int, limit: int, on_line: Callable[[Line], None], on_end: Callable[[], None]) -> None:
        self._fd = fd
        self._lines = LineSplitter(limit)
        self._on_line = on_line
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._turn = known_to_anyio(self._read)
        self._reading = False
        self.ended = False
        self.resume()

    def pause(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if not self._reading and not self.ended:
            self._reading = True
            self._loop.add_reader(self._fd, self._turn)

    def close(self) -> None:
        self.pause()
        self.ended = True

    def _read(self) -> None:
        for _ in range(_CHUNKS_A_TURN):
            try:
                chunk = os.read(self._fd, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                chunk = b""
            if not chunk:
                self.close()
                self._on_end()
                return
            for line in self._lines.feed(chunk):
                self._on_line(line)
            if len(chunk) < _CHUNK or not self._reading:
                return


class Writer:
    """Writes whole messages in order. It writes at once if the pipe has room; the rest waits for the reader.

    Of one turn of the loop, the first message is written at once, and the others together after it.

    `on_broken` is called once, when the other end has closed the pipe. Close it before the descriptor.
    """

    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        self._fd = fd
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._turn: asyncio.Handle | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self._open = True
        self.is_blocked = False
        """Whether the pipe is full. New messages are kept; a writer that can wait should wait until it is flushed."""

    def write(self, data: bytes) -> None:
        if not self._open:
            return
        if self._turn is None and not self._waiting:
            # In most cases there is one message in a turn of the loop, and the pipe takes it.
            self._turn = self._loop.call_soon(self._end_turn)
            try:
                written = os.write(self._fd, data)
            except BlockingIOError:
                written = 0
            except OSError:
                self.close()
                self._on_broken()
                return
            if written == len(data):
                return
            self._empty.clear()
            self._waiting.append(memoryview(data)[written:])
            self._settle()
            return
        self._waiting.append(memoryview(data))
        self._waiting_bytes += len(data)
        self._empty.clear()
        if self.is_blocked:
            return
        if self._turn is None:
            self._turn = self._loop.call_soon(self._end_turn)
        if self._waiting_bytes >= _CHUNK:
            self._flush()

    async def flushed(self) -> None:
        """Wait until the pipe has taken everything, or is broken."""
        await self._empty.wait()

    def close(self) -> None:
        """Drop what is not written yet."""
        self._open = False
        if self._turn is not None:
            self._turn.cancel()
        self._waiting.clear()
        self._settle()

    def _end_turn(self) -> None:
        self._turn = None
        if self._waiting and not self.is_blocked:
            self._flush()

    def _flush(self) -> None:
        try:
            while self._waiting:
                data = self._waiting.popleft()
                if self._waiting and len(data) < _CHUNK:
                    data = memoryview(b"".join((data, *self._waiting)))
                    self._waiting.clear()
                try:
                    written = os.write(self._fd, data)
                except BlockingIOError:
                    written = 0
                if written < len(data):
                    self._waiting.appendleft(data[written:])
                    break
        except OSError:
            self.close()
            self._on_broken()
        else:
            self._settle()

    def _settle(self) -> None:
        self._waiting_bytes = sum(map(len, self._waiting))
        blocked = bool(self._waiting)
        if blocked and not self.is_blocked:
            self._loop.add_writer(self._fd, self._flush)
        elif self.is_blocked and not blocked:
            self._loop.remove_writer(self._fd)
        self.is_blocked = blocked
        if not blocked:
            self._empty.set()
