"""Challenges and signatures: each challenge once, for a minute, and a signature for what it says."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from a2c_smcp.computer.console.device_proofs import Challenges, decoded, is_public_key, is_signed, signed_text
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from tests.computer.console.keys import DeviceKey


def test_a_challenge_is_open_for_a_minute_and_for_one_answer() -> None:
    challenges = Challenges()
    challenge = challenges.new(5.0)
    assert challenges.is_open(challenge, 5.0) and challenges.is_open(challenge, 5 + CONSOLE_LIMITS.challenge_seconds)
    assert not challenges.is_open(challenge, 5.1 + CONSOLE_LIMITS.challenge_seconds)
    challenges.close(challenge, 6.0)
    assert not challenges.is_open(challenge, 6.0)


def test_a_challenge_of_another_run_or_a_changed_one_is_not_open() -> None:
    challenges = Challenges()
    challenge = challenges.new(5.0)
    assert not Challenges().is_open(challenge, 5.0)
    assert not challenges.is_open(challenge, 4.0), "it comes from the future"
    changed = ["", "x", challenge[:-1], f"{challenge}=", f"{challenge}A", f"B{challenge[1:]}", "ä" * 75, "\ud800"]
    assert [text for text in changed if challenges.is_open(text, 5.0)] == []


def test_asking_costs_no_memory_and_answers_are_bounded() -> None:
    challenges = Challenges()
    for _ in range(100):
        challenges.new(0.0)
    assert not len(challenges._used)
    for _ in range(CONSOLE_LIMITS.challenges):
        challenges.close(challenges.new(0.0), 0.0)
    assert not challenges.is_open(challenges.new(1.0), 1.0)
    later = CONSOLE_LIMITS.challenge_seconds + 1
    assert challenges.is_open(challenges.new(later), later)
    challenges.close(challenges.new(later), later)
    assert len(challenges._used) == 1


def test_a_signature_is_good_for_one_text_and_one_key() -> None:
    key = DeviceKey()
    text = signed_text("challenge", "http://127.0.0.1:1", "computer")
    assert is_signed(key.public, key.sign(text), text)
    for other in (
        signed_text("another", "http://127.0.0.1:1", "computer"),
        signed_text("challenge", "http://localhost:1", "computer"),
        signed_text("challenge", "http://127.0.0.1:1", "another"),
    ):
        assert not is_signed(key.public, key.sign(text), other)
    assert not is_signed(DeviceKey().public, key.sign(text), text)
    for wrong in (bytes(64), b"\xff" * 64, b"", key.sign(text)[:63]):
        assert not is_signed(key.public, wrong, text)


@pytest.mark.parametrize("point", [b"", bytes(65), b"\x04" + bytes(64), b"\x04" + b"\xff" * 64])
def test_what_is_no_point_of_the_curve_is_no_key(point: bytes) -> None:
    assert not is_public_key(point)
    assert not is_signed(point, bytes(64), b"")


def test_a_key_is_a_point_that_is_not_compressed_and_of_the_right_curve() -> None:
    key = DeviceKey()
    assert is_public_key(key.public)
    assert not is_public_key(key.compressed)
    other = ec.generate_private_key(ec.SECP384R1()).public_key().public_numbers()
    assert not is_public_key(b"\x04" + other.x.to_bytes(48, "big")[:32] + other.y.to_bytes(48, "big")[:32])


def test_bytes_are_written_in_one_way() -> None:
    assert decoded("_-8", 2) == b"\xff\xef"
    assert [decoded(text, 2) for text in ("/+8", "_-8=", "_-9", "_-", "_-8 ", "")] == [None] * 6
