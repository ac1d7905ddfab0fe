"""Websocket frames (RFC 6455, 5): whole texts are read and written here. Pure.

`websockets` does the handshake and the control frames; whatever is not data is handed on to it as bytes. Its own parser
costs several Python calls for every frame.
"""

from enum import Enum
from typing import Final, TypeAlias

# Not documented: the version of `websockets.utils` in C, if there is one. In Python it takes 200 times as long.
from websockets.frames import apply_mask  # type: ignore[attr-defined]

from a2c_smcp.engine.errors import PeerError, TooLargeError

__all__ = ["Arrived", "Special", "WebSocketReader", "masked_frame", "message_frame", "text_frame"]

_TEXT: Final = 0x81
_MESSAGE: Final = b"4"


class Special(Enum):
    """What arrives that is no text."""

    BINARY = "a binary message"


Arrived: TypeAlias = str | bytes | Special
"""A text, bytes for `websockets`, or a binary message, whose data is dropped."""


class WebSocketReader:
    """Takes bytes, and gives messages in their order. Parts of a message are added up, however many there are."""

    __slots__ = ("_at", "_chunks", "_data", "_kind", "_masked", "_missing", "_parts", "_parts_size", "limit")

    def __init__(self, limit: int, *, from_client: bool) -> None:
        self.limit = limit
        """Bytes that a message may have. A longer one is refused as soon as its header is there."""
        self._masked = from_client
        self._data = b""
        self._at = 0
        self._chunks: list[bytes] = []
        self._missing = 0
        # A message that comes in parts.
        self._kind = 0
        self._parts: list[bytes] | None = None
        self._parts_size = 0

    @property
    def waiting_bytes(self) -> int:
        """What has arrived and was not given yet."""
        return len(self._data) - self._at + sum(map(len, self._chunks))

    def feed(self, data: bytes) -> None:
        """Bytes have arrived. Call `next_arrived` until it returns `None`."""
        if self._missing > 0:
            # A large frame is on its way. Its parts are put together once.
            self._chunks.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = b"".join(self._chunks)
            self._chunks.clear()
            self._missing = 0
        elif self._at < len(self._data):
            data = self._data[self._at :] + data
        self._data, self._at = data, 0

    def next_arrived(self) -> Arrived | None:
        """The next message; `None` if it is not there yet. Raises `TooLargeError`, and `PeerError` for text that is not
        UTF-8 and for parts that do not belong together. After an error nothing more may be read.
        """
        while True:
            data, at = self._data, self._at
            size = len(data)
            if self._missing > 0 or at + 2 > size:
                return None
            head, length = data[at], data[at + 1]
            masked = length >= 0x80
            length &= 0x7F
            start = at + 2
            if length > 125:
                start += 2 if length == 126 else 8
                if start > size:
                    return None
                length = int.from_bytes(data[at + 2 : start], "big")
            if head & 0x0F >= 8 or head & 0x70 or masked is not self._masked or head & 0x0F > 2:
                return self._for_websockets(at, min(length, 125), start)
            if length + self._parts_size > self.limit:
                raise TooLargeError(self.limit)
            if masked:
                start += 4
            if (end := start + length) > size:
                self._missing = end - size
                self._chunks.append(data[at:] if at else data)
                self._data, self._at = b"", 0
                return None
            self._at = end
            payload = data[start:end]
            if masked:
                payload = apply_mask(payload, data[start - 4 : start])
            if head == _TEXT and self._parts is None:
                return _text(payload)
            if (whole := self._part(head, payload)) is not None:
                return whole

    def _for_websockets(self, at: int, length: int, start: int) -> bytes | None:
        """A control frame, or something that is no frame: `websockets` knows what to do about it."""
        end = start + length + (4 if self._masked else 0)
        if end > len(self._data):
            return None
        self._at = end
        return self._data[at:end]

    def _part(self, head: int, payload: bytes) -> Arrived | None:
        kind, final = head & 0x0F, head & 0x80
        if (kind == 0) is (self._parts is None):
            raise PeerError("parts that do not belong together")
        if self._parts is None:
            self._kind, self._parts = kind, []
        if payload and self._kind == 1:
            self._parts.append(payload)
        self._parts_size += len(payload)
        if not final:
            return None
        parts, self._parts, self._parts_size = self._parts, None, 0
        return _text(b"".join(parts)) if self._kind == 1 else Special.BINARY


def _text(payload: bytes) -> str:
    try:
        return str(payload, "utf-8")
    except UnicodeDecodeError as error:
        raise PeerError(f"text that is not UTF-8: {error.reason}") from None


def _head(size: int, mask: int = 0) -> bytes:
    if size < 126:
        return bytes((_TEXT, mask | size))
    if size < 65536:
        return bytes((_TEXT, mask | 126, size >> 8, size & 255))
    return bytes((_TEXT, mask | 127)) + size.to_bytes(8, "big")


def text_frame(text: str) -> bytes:
    """The frame of a text, as servers send it."""
    payload = text.encode()
    return _head(len(payload)) + payload


def message_frame(text: str) -> bytes:
    """The frame of an Engine.IO message with this text, as servers send it."""
    payload = text.encode()
    return b"".join((_head(len(payload) + 1), _MESSAGE, payload))


def masked_frame(text: str, mask: bytes) -> bytes:
    """The frame of a text, as clients send it. The four bytes of the mask must be unpredictable."""
    payload = text.encode()
    return b"".join((_head(len(payload), 0x80), mask, apply_mask(payload, mask)))
