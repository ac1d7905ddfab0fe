import pytest

from a2c_smcp.errors import TooManyRequestsError
from a2c_smcp.server.wrong_keys import _MOST, LONGEST_WAIT, WrongKeys


def test_the_first_wrong_keys_are_answered_at_once_and_then_one_a_second() -> None:
    keys = WrongKeys(3)
    assert [keys.wrong("a", 0.0) for _ in range(5)] == [0, 0, 0, 1, 2]
    assert keys.wrong("b", 0.0) == 0


def test_who_waits_for_each_answer_gets_one_a_second_for_ever() -> None:
    keys, now = WrongKeys(3), 0.0
    for _ in range(100):
        keys.check("a", now)
        now += keys.wrong("a", now)
    assert now == pytest.approx(97)


def test_who_does_not_wait_is_refused_unlooked_at_and_looked_at_again_after_a_while() -> None:
    keys = WrongKeys(3)
    for _ in range(8):
        keys.check("a", 0.0)
        keys.wrong("a", 0.0)
    for _ in range(1000):
        with pytest.raises(TooManyRequestsError):
            keys.check("a", 0.0)
    keys.check("b", 0.0)
    keys.check("a", 1.0)
    assert keys.wrong("a", 100.0) == 0


def test_an_address_that_has_shown_a_right_key_is_slowed_and_always_looked_at() -> None:
    keys = WrongKeys(3)
    keys.right("a")
    waits = []
    for _ in range(1000):
        keys.check("a", 0.0)
        waits.append(keys.wrong("a", 0.0))
    assert max(waits) == waits[-1] == LONGEST_WAIT
    assert keys.wrong("a", LONGEST_WAIT + 3) <= 1  # what was tried beyond that has not piled up


def test_no_limit_is_none() -> None:
    keys = WrongKeys(None)
    assert {keys.wrong("a", 0.0) for _ in range(1000)} == {0}
    keys.check("a", 0.0)


def test_the_addresses_of_one_ipv6_network_are_one() -> None:
    keys = WrongKeys(1)
    assert [keys.wrong(f"2001:db8::{n}", 0.0) for n in range(3)] == [0, 1, 2]
    assert keys.wrong("2001:db8:0:1::1", 0.0) == 0
    assert [keys.wrong(address, 0.0) for address in ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.2")] == [0, 1, 0]
    assert keys.wrong("unknown", 0.0) == 0


def test_as_many_addresses_are_remembered_as_there_is_room_for() -> None:
    keys = WrongKeys(1)
    for n in range(3 * _MOST):
        keys.wrong(f"a{n}", 0.0)
        keys.right(f"b{n}")
    assert len(keys._paid_at) == len(keys._right) == _MOST
    assert keys.wrong(f"a{3 * _MOST - 1}", 0.0) == 1 and keys.wrong("a0", 0.0) == 0


def test_what_a_proxy_gives_for_an_address_is_kept_short() -> None:
    keys = WrongKeys(1)
    for n in range(3):
        keys.wrong(f"{n}" + "x" * 50_000, 0.0)
        keys.right(f"{n}" + "y" * 50_000)
    kept = [*keys._paid_at, *keys._right]
    assert len(kept) == 6 and max(map(len, kept)) < 100
