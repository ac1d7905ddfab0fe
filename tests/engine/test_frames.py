"""Websocket frames: whatever way the bytes are cut, the same messages come out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from a2c_smcp.engine.errors import PeerError, TooLargeError
from a2c_smcp.engine.frames import Arrived, Special, WebSocketReader, masked_frame, message_frame, text_frame

MASK = b"\x01\x80\xff\x00"


def frame(data: bytes, opcode: Opcode = Opcode.TEXT, *, fin: bool = True, mask: bool = True) -> bytes:
    """By the library that others use."""
    return Frame(opcode, data, fin=fin).serialize(mask=mask)


def read(reader: WebSocketReader, *pieces: bytes) -> list[Arrived]:
    found: list[Arrived] = []
    for piece in pieces:
        reader.feed(piece)
        while (each := reader.next_arrived()) is not None:
            found.append(each)
    return found


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 100_000])
def test_a_text_of_any_size_is_written_and_read(size: int) -> None:
    text = "ä" * (size // 2) + "x" * (size % 2)
    assert read(WebSocketReader(1 << 20, from_client=True), masked_frame(text, MASK)) == [text]
    assert read(WebSocketReader(1 << 20, from_client=False), text_frame(text)) == [text]
    assert read(WebSocketReader(1 << 20, from_client=False), message_frame(text)) == ["4" + text]
    assert text_frame(text) == frame(text.encode(), mask=False)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.sampled_from(["", "x", "é" * 100, "y" * 300, "z" * 70_000]), max_size=6), st.data())
def test_the_cuts_between_pieces_change_nothing(texts: list[str], data: st.DataObject) -> None:
    wire = b"".join(masked_frame(text, MASK) for text in texts) + frame(b"!", Opcode.PING)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=12)))
    pieces = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    found = read(WebSocketReader(1 << 20, from_client=True), *pieces)
    assert found[:-1] == texts
    assert isinstance(found[-1], bytes) and len(found[-1]) == 7


def test_every_cut_of_a_short_conversation_changes_nothing() -> None:
    wire = (
        masked_frame("one", MASK)
        + frame(b"", Opcode.PING)
        + frame(b"tw", fin=False)
        + frame(b"p", Opcode.PONG)
        + frame(b"o", Opcode.CONT)
        + frame(b"\0\1", Opcode.BINARY)
        + masked_frame("3" * 130, MASK)
    )
    kinds = [each if isinstance(each, str) else type(each) for each in read(reader(), wire)]
    assert kinds == ["one", bytes, bytes, "two", Special, "3" * 130]
    whole = read(reader(), wire)
    for cut in range(1, len(wire)):
        assert read(reader(), wire[:cut], wire[cut:]) == whole
    assert read(reader(), *(wire[at : at + 1] for at in range(len(wire)))) == whole


def reader(limit: int = 1000) -> WebSocketReader:
    return WebSocketReader(limit, from_client=True)


def test_a_message_that_is_too_large_is_refused_by_its_header() -> None:
    large = reader()
    with pytest.raises(TooLargeError):
        read(large, frame(b"x" * 1001)[:8])
    assert large.waiting_bytes <= 8


def test_the_parts_of_a_message_are_added_up() -> None:
    with pytest.raises(TooLargeError):
        read(reader(), frame(b"x" * 600, fin=False), frame(b"x" * 600, Opcode.CONT)[:8])
    parts = [frame(b"", Opcode.CONT, fin=False)] * 100
    many = reader()
    assert read(many, frame(b"x", fin=False), *parts, frame(b"y", Opcode.CONT)) == ["xy"]


@pytest.mark.parametrize(
    "wire",
    [
        frame(b"\xff"),
        frame(b"\xc3", fin=False) + frame(b"x", Opcode.CONT),
        frame(b"x", Opcode.CONT),
        frame(b"x", fin=False) + frame(b"y"),
    ],
    ids=["not UTF-8", "not UTF-8 in parts", "a part of nothing", "a message within a message"],
)
def test_what_makes_no_sense_is_the_peers_mistake(wire: bytes) -> None:
    with pytest.raises(PeerError):
        read(reader(), wire)


@pytest.mark.parametrize("wire", [frame(b"x", mask=False), b"\xc1\x81" + MASK + b"x", b"\x83\x81" + MASK + b"x"])
def test_what_is_no_frame_is_for_websockets_to_refuse(wire: bytes) -> None:
    found, *_ = read(reader(), wire + bytes(10))
    assert isinstance(found, bytes) and found[:2] == wire[:2]
