"""What server processes say to each other, as bytes. Pure: no connection, no clock.

A frame is a header, followed by a text as it came: a request, an answer or a packet. A text that is too large for one
frame is sent in chunks. The first chunk is in the frame itself, and each other chunk is in a `ChunkFrame`.
"""

from typing import Final, TypeAlias

import msgspec

from a2c_smcp.smcp import TOOL_PROGRESS_NOTIFICATION

__all__ = [
    "AgainFrame",
    "AskFrame",
    "BusFrame",
    "ChunkFrame",
    "CreditFrame",
    "FrameText",
    "Gathering",
    "NoticeFrame",
    "OrderFrame",
    "OrderedFrame",
    "PingFrame",
    "PongFrame",
    "ReplyFrame",
    "ReportFrame",
    "WithdrawFrame",
    "decode",
    "encode",
    "from_text",
    "kind_of",
    "to_text",
]

#: Bytes of the length before a header.
_LENGTH: Final = 4


class AskFrame(msgspec.Struct, tag="ask", array_like=True, frozen=True):
    """Asks a computer of the receiver. The request's JSON follows."""

    id: int
    revision: int
    """The revision that the sender's copy of the membership had."""
    instant: float
    """The moment, by the receiver's clock, after which this must not be started. The sender may have given up then."""
    size: int
    """Bytes of the whole text."""
    caller: str
    target: str
    office: str
    computer: str
    event: str
    agent: bytes
    req_id: bytes
    """Encoded by `from_text`, like `agent`: both may have a lone surrogate."""
    timeout: int | None
    reports: bool
    """Whether the caller wants reports of progress."""
    questions: bool = False
    """Whether the caller can answer questions."""
    traceparent: str | None = None
    """The span of the sender, while it makes spans."""


class ReplyFrame(msgspec.Struct, tag="reply", array_like=True, frozen=True):
    """The result of an `AskFrame`. Its text follows, unless there was no answer."""

    id: int
    size: int
    answered: bool = True
    """`False` if the computer acked without an answer."""
    is_error: bool = False
    """Whether the computer answered with an error."""
    refused: bool = False
    """Whether the text is an error of the process that was asked, and not an answer."""


class ChunkFrame(msgspec.Struct, tag="chunk", array_like=True, frozen=True):
    """The next chunk of a text: of an `AskFrame` if `of_ask`, else of a `ReplyFrame`."""

    id: int
    of_ask: bool
    instant: float = 0.0
    """As in `AskFrame`. The instant in the last chunk counts."""


class CreditFrame(msgspec.Struct, tag="credit", array_like=True, frozen=True):
    """Says that a chunk has arrived, so that another one may be sent."""


class WithdrawFrame(msgspec.Struct, tag="withdraw", array_like=True, frozen=True):
    """Says that nobody waits for the answer to an `AskFrame` any more."""

    id: int


class ReportFrame(msgspec.Struct, tag="report", array_like=True, frozen=True):
    """A notification for the caller of an `AskFrame`: a report of progress, or a question. Its JSON follows."""

    id: int
    event: str = TOOL_PROGRESS_NOTIFICATION


class NoticeFrame(msgspec.Struct, tag="notice", array_like=True, frozen=True):
    """Tells the receiver's members of an office something. The packet follows."""

    revision: int
    office: str
    event: str
    sender: str
    collapses: bool


class PingFrame(msgspec.Struct, tag="ping", array_like=True, frozen=True):
    """Asks whether the receiver is there. `waiting` are the `AskFrame`s that have been under way for some time."""

    sent: float
    waiting: tuple[int, ...] = ()


class PongFrame(msgspec.Struct, tag="pong", array_like=True, frozen=True):
    """Answers a `PingFrame`: the sender's clock, and which of the `AskFrame`s the sender does not know."""

    sent: float
    clock: float
    unknown: tuple[int, ...] = ()


class AgainFrame(msgspec.Struct, tag="again", array_like=True, frozen=True):
    """Says that its sender was cut off. The receiver repeats what it announced lately."""


class OrderFrame(msgspec.Struct, tag="order", array_like=True, frozen=True):
    """An operator's order for the receiver. Its JSON follows."""

    id: int


class OrderedFrame(msgspec.Struct, tag="ordered", array_like=True, frozen=True):
    """Answers an `OrderFrame`. The JSON of the answer follows."""

    id: int


BusFrame: TypeAlias = (
    AskFrame
    | ReplyFrame
    | ChunkFrame
    | CreditFrame
    | WithdrawFrame
    | ReportFrame
    | NoticeFrame
    | PingFrame
    | PongFrame
    | AgainFrame
    | OrderFrame
    | OrderedFrame
)
FrameText: TypeAlias = bytes | memoryview

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final[msgspec.msgpack.Decoder[BusFrame]] = msgspec.msgpack.Decoder(BusFrame)


def kind_of(frame: BusFrame | type[BusFrame]) -> str:
    """The kind of a frame in one word, for the metrics."""
    return str(frame.__struct_config__.tag)


def encode(frame: BusFrame, text: FrameText = b"") -> bytes:
    head = _encoder.encode(frame)
    return b"".join((len(head).to_bytes(_LENGTH, "big"), head, text))


def decode(data: bytes) -> tuple[BusFrame, bytes]:
    """A frame and the text after it, or `ValueError`."""
    end = _LENGTH + int.from_bytes(data[:_LENGTH], "big")
    try:
        return _decoder.decode(memoryview(data)[_LENGTH:end]), data[end:]
    except msgspec.DecodeError as error:
        raise ValueError(f"not a frame of ours: {error}") from None


def from_text(text: str) -> bytes:
    # A lone surrogate passes, as elsewhere on the server. The agent or computer that gets it may refuse it.
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


class Gathering:
    """A text that arrives in chunks."""

    __slots__ = ("_chunks", "_missing")

    def __init__(self, size: int) -> None:
        self._missing = size
        self._chunks: list[bytes] = []

    def add(self, chunk: bytes) -> bytes | None:
        """Add a chunk. Returns the whole text if this was the last chunk."""
        self._missing -= len(chunk)
        if self._missing <= 0 and not self._chunks:
            return chunk
        self._chunks.append(chunk)
        return b"".join(self._chunks) if self._missing <= 0 else None
