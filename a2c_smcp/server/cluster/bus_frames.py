"""What server processes say to each other, as bytes. Pure: no connection, no clock.

A frame is a header and, after it, a text as it came: a request, an answer, a packet. A text that is larger than one
frame may be goes in chunks; the first is in the frame that begins it, and each other one in a `ChunkFrame`.
"""

from typing import Final, TypeAlias

import msgspec

__all__ = [
    "CHUNK_BYTES",
    "MOST_WHOLE",
    "AgainFrame",
    "AskFrame",
    "BusFrame",
    "ChunkFrame",
    "CreditFrame",
    "FrameText",
    "Gathering",
    "NoticeFrame",
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

#: Of one text in one frame. A small frame waits for those before it on the same connection: for 16 MB in one piece
#: that took 100 ms.
CHUNK_BYTES: Final = 128 * 1024
#: Of what is not cut into chunks. NATS takes 1 MiB.
MOST_WHOLE: Final = 512 * 1024
_LENGTH: Final = 4


class AskFrame(msgspec.Struct, tag="ask", array_like=True, frozen=True):
    """Please ask one of your computers; the request's JSON follows."""

    id: int
    revision: int
    """What the sender's copy of the membership had seen."""
    instant: float
    """The moment, by the receiver's clock, after which this must not be started: the sender may have given up."""
    size: int
    """Bytes of the whole text."""
    caller: str
    target: str
    office: str
    computer: str
    event: str
    agent: bytes
    req_id: bytes
    """These two as `from_text` has them: they may have a lone surrogate."""
    timeout: int | None
    reports: bool
    """Whether the caller wants to hear of progress."""


class ReplyFrame(msgspec.Struct, tag="reply", array_like=True, frozen=True):
    """What came of an `AskFrame`; the text follows, unless there was no answer at all."""

    id: int
    size: int
    answered: bool = True
    """False for a computer that acked without an answer."""
    is_error: bool = False
    """Whether the answer, which the computer gave, is an error."""
    refused: bool = False
    """Whether the text is an error of the process that was asked, not an answer."""


class ChunkFrame(msgspec.Struct, tag="chunk", array_like=True, frozen=True):
    """The next part of a text; `of_ask` says whether that of an `AskFrame` or of a `ReplyFrame`."""

    id: int
    of_ask: bool
    instant: float = 0.0
    """As in `AskFrame`; the last one counts."""


class CreditFrame(msgspec.Struct, tag="credit", array_like=True, frozen=True):
    """A chunk of yours has been taken in: another may be on its way."""


class WithdrawFrame(msgspec.Struct, tag="withdraw", array_like=True, frozen=True):
    """Nobody waits for the answer to this `AskFrame` any more."""

    id: int


class ReportFrame(msgspec.Struct, tag="report", array_like=True, frozen=True):
    """The progress of an `AskFrame`; its JSON follows."""

    id: int


class NoticeFrame(msgspec.Struct, tag="notice", array_like=True, frozen=True):
    """Please tell the members of an office that you hold; the packet follows."""

    revision: int
    office: str
    event: str
    sender: str
    collapses: bool


class PingFrame(msgspec.Struct, tag="ping", array_like=True, frozen=True):
    """Are you there? `waiting` are the `AskFrame`s that have been under way for some time."""

    sent: float
    waiting: tuple[int, ...] = ()


class PongFrame(msgspec.Struct, tag="pong", array_like=True, frozen=True):
    """The answer to a `PingFrame`: what the clock says here, and which of the `AskFrame`s are not known here."""

    sent: float
    clock: float
    unknown: tuple[int, ...] = ()


class AgainFrame(msgspec.Struct, tag="again", array_like=True, frozen=True):
    """I was cut off. Please repeat what you announced lately."""


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
    # A lone surrogate passes here as it does elsewhere on the server: it is the receiver's to refuse.
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
        """The whole text, when this is the last of it."""
        self._missing -= len(chunk)
        if self._missing <= 0 and not self._chunks:
            return chunk
        self._chunks.append(chunk)
        return b"".join(self._chunks) if self._missing <= 0 else None
