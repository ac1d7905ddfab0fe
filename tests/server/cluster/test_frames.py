"""Frames as bytes, and texts in chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.server.cluster.bus_frames import (
    AgainFrame,
    AskFrame,
    BusFrame,
    ChunkFrame,
    CreditFrame,
    Gathering,
    NoticeFrame,
    PingFrame,
    PongFrame,
    ReplyFrame,
    ReportFrame,
    WithdrawFrame,
    decode,
    encode,
    from_text,
    kind_of,
    to_text,
)

FRAMES: list[BusFrame] = [
    AskFrame(1, 2**60, 1.5, 3, "caller", "target", "办公室", "c", "client:tool_call", b"a" * 70_000, b"r", None, True),
    ReplyFrame(1, 3, is_error=True),
    ChunkFrame(1, of_ask=True, instant=2.5),
    CreditFrame(),
    WithdrawFrame(7),
    ReportFrame(7),
    NoticeFrame(5, "o", "notify:update_config", "sid", collapses=True),
    PingFrame(1.25, (1, 2, 3)),
    PongFrame(1.25, 9.5),
    AgainFrame(),
]


@pytest.mark.parametrize("frame", FRAMES, ids=kind_of)
def test_a_frame_and_its_text_come_out_as_they_went_in(frame: BusFrame) -> None:
    text = from_text('["三", "\ud800"]')
    assert decode(encode(frame, memoryview(text))) == (frame, text)
    assert to_text(text) == '["三", "\ud800"]'
    assert decode(encode(frame)) == (frame, b"")


@given(st.binary(max_size=200))
def test_bytes_of_others_are_refused_and_break_nothing(data: bytes) -> None:
    try:
        frame, _ = decode(data)
    except ValueError:
        return
    assert isinstance(frame, BusFrame)


@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1))
def test_chunks_make_the_whole_with_the_last_of_them(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    gathering = Gathering(len(whole))
    assert [gathering.add(chunk) for chunk in chunks] == [None] * (len(chunks) - 1) + [whole]
