"""An event stream of an MCP server over HTTP, cut into events, and how fast they may come. Pure: no clock."""

import re

from a2c_smcp.utils.pipes import Line, LineSplitter, LongLine

__all__ = ["EventPace", "EventSplitter", "as_event", "message_in"]

_END = b"\n\n"
#: The pause that the server wants before a stream is opened again, in milliseconds, if that is 100 s or more.
_LONG_PAUSE = re.compile(rb"^retry: ?\d{6,}$", re.MULTILINE)
_LONGEST_PAUSE = b"retry: 60000"
_OTHER_FIELDS = (b"id:", b"event:", b"retry:", b":")


class EventSplitter:
    """Cuts bytes into whole events. SSE has three ways to end a line: in these events it is always `\\n`.

    Of an event over `limit` bytes only the ends are kept. Events that are only a comment are left out. A long pause
    becomes a minute.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._events = LineSplitter(limit, separator=_END)
        self._after_cr = False
        self._held = b""

    @property
    def size(self) -> int:
        """How many bytes of the unfinished event have come."""
        return self._events.size

    def feed(self, chunk: bytes) -> list[Line]:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        chunk = self._held + chunk
        self._held = b"\n" if chunk.endswith(b"\n") and not chunk.endswith(_END) else b""
        found = self._events.feed(chunk[: -len(self._held) or None])
        return [event for event in map(self._readable, found) if event and not _is_comment(event)]

    def _readable(self, event: Line) -> Line:
        """An event in valid UTF-8. Each invalid byte becomes three bytes, so the event may become larger than the
        limit.
        """
        if isinstance(event, LongLine):
            return event
        event = event.lstrip(b"\n")  # left over from several blank lines
        if b"retry:" in event:
            # mcp would wait for this whole pause, even if the call is over.
            event = _LONG_PAUSE.sub(_LONGEST_PAUSE, event)
        if event.isascii():
            return event
        text = event.decode("utf-8", "replace").encode()
        return text if len(text) <= self._limit else LongLine(text[:4096], text[-4096:], len(text))


def _is_comment(event: Line) -> bool:
    return not isinstance(event, LongLine) and event.startswith(b":") and b"\n" not in event


def as_event(message: bytes) -> bytes:
    """A message of one line as an event."""
    return b"data: " + message + _END


def message_in(event: LongLine) -> LongLine:
    """The ends of the message in an event, without the other fields of the event."""
    _, found, head = (b"\n" + event.head).partition(b"\ndata:")
    tail = event.tail.split(b"\n")
    while len(tail) > 1 and tail[-1].startswith(_OTHER_FIELDS):
        tail.pop()
    return LongLine(head if found else event.head, b"\n".join(tail), event.size)


class EventPace:
    """How many bytes of events one server may send in a second, on average. A second's worth may come at once."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._left = per_second
        self._at = 0.0

    def spend(self, size: float, now: float) -> float:
        """Count these bytes. Returns for how many seconds nothing more should be read."""
        self._left = min(self._per_second, self._left + (now - self._at) * self._per_second) - size
        self._at = now
        return max(0.0, -self._left / self._per_second)
