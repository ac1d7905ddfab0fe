"""What a holder and the processes behind it say to each other: frames of a short head and a body. No sockets.

A frame is its length in four bytes, the head as a JSON array on one line, and the body, which is JSON that is passed on
as it is. Only the head of a tool call has `agent` and `req_id`.

    ask     id, event, timeout, agent, req_id   and the event's data
    forget  id                                  nobody waits for that answer any more
    yield                                       give the seat up, if no other process uses it
    kept                                        the answer to it: another process uses the seat
    answer  id                                  and the ack's arguments
    failed  id                                  and the error
    notice  event                               and its data
    state                                       and what `State` has
    lend    secret                              the process is alone: it may take the seat over with this secret
    taken                                       the process has done so
    declined                                    the process has failed to
    recall                                      another process has come: the holder takes the seat back
    back                                        the holder is in the office: use it again
    resume  secret                              said to a new holder: the process has the seat under this secret
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from a2c_smcp.dialects.handshake import Dialect
from a2c_smcp.errors import ConnectionLostError, SMCPError, error_from_payload
from a2c_smcp.link.transports import Way
from a2c_smcp.smcp import QUESTION_NOTIFICATION, TOOL_PROGRESS_NOTIFICATION
from a2c_smcp.wire import codec

__all__ = ["ABOUT_CALLS", "LONGEST_HEAD", "FrameReader", "MalformedFrameError", "State", "frame", "read_error"]

#: These notifications come by the connection that the call went by, whoever has the seat by now.
ABOUT_CALLS: Final = (TOOL_PROGRESS_NOTIFICATION, QUESTION_NOTIFICATION)
#: How many bytes a frame may have beside its body.
LONGEST_HEAD: Final = 64 * 1024
_LENGTH: Final = 4
_HEADS: Final = msgspec.json.Decoder(list[Any])


class MalformedFrameError(ValueError):
    """The bytes are not a frame, or the frame is too long."""


def frame(head: list[Any], body: bytes = b"") -> bytes:
    line = codec.dumps(head).encode()
    return (len(line) + 1 + len(body)).to_bytes(_LENGTH, "big") + line + b"\n" + body


class FrameReader:
    """Takes bytes as they arrive, and returns the head and the body of each complete frame."""

    def __init__(self, take: Callable[[list[Any], bytes], None], longest: int) -> None:
        self._take = take
        self._longest = longest
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Raises `MalformedFrameError`; then the connection is useless."""
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= _LENGTH:
            length = int.from_bytes(buffer[start : start + _LENGTH], "big")
            if length > self._longest:
                raise MalformedFrameError(f"a frame has {length} bytes; {self._longest} are allowed")
            end = start + _LENGTH + length
            if len(buffer) < end:
                break
            whole = bytes(buffer[start + _LENGTH : end])
            start = end
            line, _, body = whole.partition(b"\n")
            try:
                head = _HEADS.decode(line)
            except msgspec.DecodeError as error:
                raise MalformedFrameError(f"the head of a frame is not a list: {error}") from None
            self._take(head, body)
        del buffer[:start]


# --- what the holder says about itself


@dataclass(frozen=True, slots=True)
class State:
    """The state of the seat: sent to every process when it comes, and to all when it changes."""

    name: str
    """The agent's name in the office."""
    connected: bool = False
    joined: bool = False
    way: Way | None = None
    dialect: Dialect = Dialect.OURS
    """What the server speaks."""
    reason: str = ""
    """Why it is no longer connected."""
    problem: SMCPError | None = None
    """Why it is not in the office."""
    is_hopeful: bool = False
    """Whether the problem may pass in a moment: the holder before this one may still have its place."""

    def encode(self) -> bytes:
        way = self.way
        if way is not None and way.proxy is not None:
            way = replace(way, proxy=replace(way.proxy, user="", password=""))
        return codec.dumps(msgspec.to_builtins(replace(self, way=way), enc_hook=SMCPError.payload)).encode()

    @classmethod
    def decode(cls, body: bytes) -> "State":
        return msgspec.convert(codec.loads(body), cls, dec_hook=lambda _, problem: read_error(problem))


def read_error(payload: dict[str, Any]) -> SMCPError:
    """The error with its own class. A lost connection has no code on the wire, but has one here."""
    error = error_from_payload(payload)
    assert error is not None
    if error.code == ConnectionLostError.default_code:
        return ConnectionLostError(error.message, error.details)
    return error
