"""Whole events out of bytes that come in any pieces, and how fast they may come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.computer.mcp_clients.http.event_streams import EventPace, EventSplitter, as_event, message_in
from a2c_smcp.computer.mcp_clients.pipes.long_lines import Answered, answered_by
from a2c_smcp.utils.pipes import Line, LongLine


def events(data: bytes, pieces: list[int] | None = None, limit: int = 1000) -> list[Line]:
    splitter = EventSplitter(limit)
    found: list[Line] = []
    for size in pieces or []:
        found += splitter.feed(data[:size])
        data = data[size:]
    return found + splitter.feed(data)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@given(pieces=st.lists(st.integers(0, 9), max_size=30))
def test_events_are_the_same_in_any_pieces_and_with_any_end_of_a_line(end: bytes, pieces: list[int]) -> None:
    stream = b"event: a\ndata: 1\n\n\n: a comment\n\n:another\nid: 5\ndata: 2\ndata: 3\n\ndata: rest"
    assert events(stream.replace(b"\n", end), pieces) == [b"event: a\ndata: 1", b":another\nid: 5\ndata: 2\ndata: 3"]


def test_an_event_is_passed_on_with_its_last_byte() -> None:
    for end in (b"\n\n", b"\r\n\r\n", b"\r\r"):
        assert events(b"data: 1" + end) == [b"data: 1"]


@pytest.mark.parametrize(("written", "read"), [("99999", "99999"), ("100000", "60000"), ("9" * 5000, "60000")])
def test_a_long_pause_becomes_a_minute(written: str, read: str) -> None:
    event = "id: 1\nretry: {}\ndata: retry: 999999"
    assert events(event.format(written).encode() + b"\n\n", limit=10_000) == [event.format(read).encode()]


def test_of_an_event_over_the_limit_the_ends_are_kept() -> None:
    [event, after] = events(b"data: " + b"x" * 20_000 + b"\n\ndata: 2\n\n", [9000], limit=10_000)
    assert isinstance(event, LongLine)
    assert (len(event.head), len(event.tail), event.size) == (4096, 4096, 20_006)
    assert after == b"data: 2"


def test_an_event_may_have_as_many_bytes_as_the_limit() -> None:
    assert events(b"data: 7890\n\n", limit=10) == [b"data: 7890"]
    [event] = events(b"data: 78901\n\n", limit=10)
    assert isinstance(event, LongLine)


def test_bytes_that_are_no_text_do_not_grow_over_the_limit() -> None:
    assert events(b"data: \xff\n\n", limit=9) == ["data: �".encode()]
    [event] = events(b"data: \xff\xff\n\n", limit=9)
    assert isinstance(event, LongLine)
    assert event.size == 12
    assert events("data: ä\n\n".encode(), limit=8) == ["data: ä".encode()]


def test_a_message_is_found_among_the_fields_of_a_long_event() -> None:
    big = "x" * 20_000
    for message, answered in [
        (f'{{"jsonrpc":"2.0","id":5,"result":"{big}"}}', Answered(True, 5)),
        (f'{{"result":{{"text":"{big}"}},"id":5}}', Answered(True, 5)),
        (f'{{"jsonrpc":"2.0","method":"notifications/x","params":"{big}"}}', Answered(False)),
        (big, Answered(True)),
    ]:
        for fields in ("event: message\ndata: {}\nid: 9\n: and so on", "data:{}", "{}"):
            [event] = events(fields.format(message).encode() + b"\n\n")
            assert isinstance(event, LongLine)
            assert answered_by(message_in(event)) == answered


def test_a_message_becomes_an_event() -> None:
    assert events(as_event(b"{}")) == [b"data: {}"]


def test_what_comes_too_fast_waits_and_nothing_is_refused() -> None:
    pace = EventPace(per_second=100)
    assert pace.spend(100, now=50.0) == 0
    assert pace.spend(50, now=50.0) == 0.5
    assert pace.spend(0, now=50.5) == 0
    assert pace.spend(100, now=1000.0) == 0, "a second's worth at once, not a day's"
    assert pace.spend(300, now=1000.0) == 3
