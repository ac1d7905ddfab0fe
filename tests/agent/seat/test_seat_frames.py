"""Frames between a holder and the processes behind it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.agent.seat.seat_frames import FrameReader, MalformedFrameError, State, frame, read_error
from a2c_smcp.dialects.handshake import Dialect
from a2c_smcp.errors import ConnectionLostError, ProxyError, RoomFullError
from a2c_smcp.link.proxies import Proxy
from a2c_smcp.link.transports import Way

Frames = list[tuple[list[Any], bytes]]


@given(
    st.lists(st.tuples(st.lists(st.text() | st.integers(-(2**53), 2**53), min_size=1), st.binary(max_size=300))),
    st.lists(st.integers(1, 40), min_size=1),
)
def test_frames_arrive_whole_however_the_bytes_are_cut(sent: Frames, cuts: list[int]) -> None:
    got: Frames = []
    reader = FrameReader(lambda head, body: got.append((head, body)), 1 << 20)
    data, turn = b"".join(frame(head, body) for head, body in sent), 0
    while data:
        size = cuts[turn % len(cuts)]
        reader.feed(data[:size])
        data, turn = data[size:], turn + 1
    assert got == sent


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x02{}", b"\x00\x00\x00\x00"])
def test_what_is_no_frame_or_too_long_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedFrameError):
        FrameReader(lambda head, body: None, 100).feed(data)


def test_a_state_reads_as_it_was_written_without_the_password_of_a_proxy() -> None:
    way = Way("polling", Proxy("http", "proxy", 3128, "me", "secret"), "cut")
    state = State(
        "ada", connected=True, joined=False, way=way, dialect=Dialect.V0_4, problem=RoomFullError("it has bob")
    )
    assert b"secret" not in state.encode()
    read = State.decode(state.encode())
    assert (read.name, read.connected, read.joined, str(read.way)) == ("ada", True, False, str(way))
    assert isinstance(read.problem, RoomFullError) and read.problem.message == "it has bob"
    assert State.decode(State("ada").encode()) == State("ada")


def test_a_lost_connection_is_one_again_with_its_advice() -> None:
    error = read_error(json.loads(json.dumps(ProxyError("no way", "ask somebody").payload())))
    assert isinstance(error, ConnectionLostError)
    assert error.advice == "ask somebody"
