"""Frames of processes that the copy of the membership does not show yet."""

import pytest

from a2c_smcp.server.cluster.intake import Newcomers
from a2c_smcp.server.cluster.seal import DroppedFrameError, OpenedFrame
from a2c_smcp.server.cluster.tuning import BOUNDS, TIMES


def test_frames_of_one_sender_come_out_in_order_and_once() -> None:
    newcomers = Newcomers()
    frames = [OpenedFrame(bytes([number])) for number in range(4)]
    for number, frame in enumerate(frames):
        newcomers.add("ab"[number % 2], frame, 0.0)
    assert newcomers.senders() == {"a", "b"}
    assert newcomers.take("a") == [frames[0], frames[2]] and newcomers.take("a") == []
    assert newcomers.take("b") == [frames[1], frames[3]] and not newcomers


def test_there_is_room_for_so_many_and_so_much_and_then_there_is_again() -> None:
    newcomers = Newcomers()
    for number in range(BOUNDS.newcomer_frames):
        newcomers.add(str(number), OpenedFrame(b""), 0.0)
    with pytest.raises(DroppedFrameError):
        newcomers.add("one more", OpenedFrame(b""), 0.0)
    newcomers.clear()
    newcomers.add("a", OpenedFrame(bytes(BOUNDS.newcomer_bytes)), 0.0)
    with pytest.raises(DroppedFrameError):
        newcomers.add("b", OpenedFrame(b"x"), 0.0)
    newcomers.take("a")
    newcomers.add("b", OpenedFrame(b"x"), 0.0)


def test_nobody_is_waited_for_longer_than_some_seconds() -> None:
    newcomers = Newcomers()
    newcomers.add("a", OpenedFrame(bytes(BOUNDS.newcomer_bytes - 1)), 0.0)
    newcomers.add("b", OpenedFrame(b"x"), 1.0)
    assert newcomers.expire(TIMES.newcomer + 0.5) == 1 and newcomers.senders() == {"b"}
    newcomers.add("c", OpenedFrame(bytes(BOUNDS.newcomer_bytes - 1)), TIMES.newcomer + 0.5)
