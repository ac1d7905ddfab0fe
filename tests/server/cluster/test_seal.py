"""Signatures of frames, and which frames have come before."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.server.cluster.seal import (
    _REMEMBERED,
    Arrivals,
    DroppedFrameError,
    FrameSeal,
    MemberSeal,
    OpenedFrame,
)
from a2c_smcp.server.offices import Member

OLD, NEW = b"o" * 32, b"n" * 32
A, B, C = "A" * 22, "B" * 22, "C" * 22
FRAME = b"\x00\x00\x00\x02[]text"


def refused(seal: FrameSeal, data: bytes, sender: str = A, receiver: str = B) -> str:
    with pytest.raises(DroppedFrameError) as error:
        seal.open(sender, receiver, data)
    return error.value.reason


def test_a_signed_frame_comes_out_as_it_went_in_with_its_number_and_instant() -> None:
    seal = FrameSeal([NEW])
    signed = [seal.sign(A, B, FRAME, 7.5) for _ in range(2)]
    assert [seal.open(A, B, data) for data in signed] == [OpenedFrame(FRAME, 1, 7.5), OpenedFrame(FRAME, 2, 7.5)]


def test_a_signature_is_for_one_sender_one_receiver_and_one_key() -> None:
    seal = FrameSeal([NEW])
    signed = seal.sign(A, B, FRAME, 1.0)
    assert refused(seal, signed, sender=C) == "forged"
    assert refused(seal, signed, receiver=C) == "forged"
    assert refused(seal, signed, sender=B, receiver=A) == "forged"
    assert refused(FrameSeal([OLD]), signed) == "forged"


@given(st.integers(min_value=0), st.integers(min_value=1, max_value=255))
def test_no_byte_of_a_signed_frame_can_be_changed(place: int, change: int) -> None:
    seal = FrameSeal([NEW])
    signed = bytearray(seal.sign(A, B, FRAME, 1.0))
    signed[place % len(signed)] ^= change
    assert refused(seal, bytes(signed)) in ("forged", "unsigned")


@given(st.binary(max_size=100))
def test_what_anybody_makes_up_is_refused(data: bytes) -> None:
    assert refused(FrameSeal([NEW]), data) in ("unsigned", "forged", "malformed")
    assert refused(FrameSeal([NEW]), b"\xff" + data) in ("forged", "malformed")


def test_keys_change_without_a_gap() -> None:
    """All get the new key second, then first, then alone: at each step what the others send is taken."""
    steps = [FrameSeal(keys) for keys in ([OLD], [OLD, NEW], [NEW, OLD], [NEW])]
    for before, after in itertools.pairwise(steps):
        for sender, receiver in ((before, after), (after, before)):
            assert receiver.open(A, B, sender.sign(A, B, FRAME, 1.0)).frame == FRAME
    assert refused(steps[3], steps[0].sign(A, B, FRAME, 1.0)) == "forged"


def test_a_first_key_is_rolled_out_without_a_gap() -> None:
    none, grace, strict = FrameSeal(), FrameSeal([NEW], accept_unsigned=True), FrameSeal([NEW])
    for one, other in ((none, grace), (grace, strict)):
        for sender, receiver in ((one, other), (other, one)):
            assert receiver.open(A, B, sender.sign(A, B, FRAME, 1.0)).frame == FRAME
    assert refused(strict, none.sign(A, B, FRAME, 1.0)) == "unsigned"
    assert refused(grace, FrameSeal([OLD]).sign(A, B, FRAME, 1.0)) == "forged"


# --- arrivals


def signed(number: int, instant: float = 0.0) -> OpenedFrame:
    return OpenedFrame(FRAME, number, instant)


def why_dropped(arrivals: Arrivals, opened: OpenedFrame, now: float = 0.0) -> str:
    with pytest.raises(DroppedFrameError) as error:
        arrivals.take(opened, now)
    return error.value.reason


@given(st.lists(st.integers(min_value=1, max_value=3 * _REMEMBERED), max_size=50))
def test_a_number_is_taken_once_and_all_within_reach_are(numbers: list[int]) -> None:
    arrivals, taken = Arrivals(30.0), set[int]()
    for number in numbers:
        too_old = bool(taken) and number <= max(taken) - _REMEMBERED
        if number in taken or too_old:
            assert why_dropped(arrivals, signed(number)) == "replayed"
        else:
            arrivals.take(signed(number), 0.0)
            taken.add(number)


def test_a_frame_that_was_held_back_is_dropped_whatever_the_clocks_of_the_machines_say() -> None:
    for ahead in (-1e6, 0.0, 1e6):
        arrivals = Arrivals(30.0)
        arrivals.take(signed(1, ahead + 100), 100.5)
        arrivals.take(signed(3, ahead + 150), 151.0)
        arrivals.take(signed(2, ahead + 130), 159.0)  # 29 s
        assert why_dropped(arrivals, signed(4, ahead + 120), 160.0) == "late"
        assert why_dropped(arrivals, signed(4, ahead + 120), 160.0) == "replayed"


def test_a_clock_that_stood_still_is_learnt_from_what_was_surely_not_held_back() -> None:
    arrivals = Arrivals(30.0)
    arrivals.take(signed(1, 100.0), 100.0)
    assert why_dropped(arrivals, signed(2, 101.0), 161.0) == "late"
    arrivals.take(signed(3, 101.5), 161.5, is_fresh=True)
    arrivals.take(signed(4, 102.0), 162.0)
    assert why_dropped(arrivals, signed(5, 72.0), 163.0) == "late"


@pytest.mark.parametrize("speed", [0.9, 0.9999, 1.0, 1.1])
def test_clocks_may_run_at_different_speeds_for_weeks_if_pongs_come(speed: float) -> None:
    arrivals, numbers = Arrivals(22.0), itertools.count(1)
    for minute in range(20_000):
        now = minute * 60.0
        arrivals.take(signed(next(numbers), now * speed), now)
        assert arrivals.want_pong(now) == (minute > 0 and minute % 2 == 0)
        if arrivals.want_pong(now):
            arrivals.take(signed(next(numbers), now * speed), now, is_fresh=True)


def test_a_process_that_signs_is_not_believed_without_a_signature() -> None:
    arrivals = Arrivals(30.0)
    arrivals.take(OpenedFrame(FRAME), 0.0)
    arrivals.take(signed(1), 0.0)
    assert why_dropped(arrivals, OpenedFrame(FRAME)) == "unsigned"


# --- members


PLANNER = Member("s", "agent", "planner", "o", "p", key="ci", bound=True)


def test_what_a_claim_says_of_a_key_counts_if_a_process_with_a_cluster_key_has_signed_it() -> None:
    signed = MemberSeal([OLD]).signed(PLANNER)
    assert MemberSeal([OLD]).believed(signed) == MemberSeal([NEW, OLD]).believed(signed) == PLANNER
    assert signed == PLANNER and signed.proof
    nobody = replace(PLANNER, key="", bound=False)
    assert MemberSeal([NEW]).believed(signed) == MemberSeal([NEW]).believed(PLANNER) == nobody
    for forged in (
        *({"sid": "t"}, {"process": "q"}, {"office_id": "p"}, {"role": "computer"}),
        *({"name": "librarian"}, {"key": "root"}, {"bound": False}, {"proof": "\ud800"}, {"proof": ""}),
    ):
        believed = MemberSeal([OLD]).believed(replace(signed, **forged))
        assert (believed.key, believed.bound) == ("", False), forged


def test_without_a_cluster_key_a_claim_is_believed_and_without_a_client_key_nothing_is_signed() -> None:
    assert MemberSeal().believed(MemberSeal().signed(PLANNER)) == PLANNER
    assert MemberSeal().signed(PLANNER).proof == ""
    older = Member("s", "agent", "planner", "o", "p")
    assert MemberSeal([OLD]).believed(older) is older
