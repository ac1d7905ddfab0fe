"""Limits as values: buckets, addresses, deadlines."""

import pytest

from a2c_smcp.errors import TooManyRequestsError
from a2c_smcp.relay.asks import Ask
from a2c_smcp.server.limits import AddressLimit, Limits, Place, TokenBucket
from a2c_smcp.server.relays import Relay, RelayAsk, relay_table
from a2c_smcp.smcp import GET_TOOLS_EVENT, TOOL_CALL_EVENT
from tests.server.harness import counts_nobody


def test_a_bucket_gives_a_seconds_worth_at_once_and_refills_with_time() -> None:
    bucket = TokenBucket(rate=2, now=0.0)
    bucket.take(0.0)
    bucket.take(0.0)
    with pytest.raises(TooManyRequestsError):
        bucket.take(0.1)
    bucket.take(0.6)
    with pytest.raises(TooManyRequestsError):
        bucket.take(0.6)


def test_a_rate_below_one_still_lets_one_through() -> None:
    bucket = TokenBucket(rate=0.1, now=0.0)
    bucket.take(0.0)
    with pytest.raises(TooManyRequestsError):
        bucket.take(5.0)
    bucket.take(15.0)


def test_a_long_rest_does_not_save_up() -> None:
    bucket = TokenBucket(rate=1, now=0.0)
    bucket.take(1000.0)
    with pytest.raises(TooManyRequestsError):
        bucket.take(1000.0)


def test_connections_per_address_are_counted_and_forgotten() -> None:
    limit = AddressLimit(2)
    first, second, other = (knock(limit, address) for address in ("a", "a", "b"))
    for place in (first, second, other):
        place.join()
    third = knock(limit, "a")
    with pytest.raises(TooManyRequestsError):
        third.join()
    first.leave()
    third.join()
    for place in (first, second, third, other):
        place.leave()
        place.leave()
    assert counts_nobody(limit)


def test_whoever_only_knocked_counts_too() -> None:
    limit = AddressLimit(3)
    knocking = [knock(limit, "a") for _ in range(3)]
    assert limit.knock("a") is None
    assert limit.knock("b") is not None
    knocking[0].join()
    assert limit.knock("a") is None
    knocking[1].leave()
    assert limit.knock("a") is not None


def test_two_may_knock_where_the_limit_is_reached_but_not_join() -> None:
    limit = AddressLimit(1)
    knock(limit, "a").join()
    for place in [knock(limit, "a"), knock(limit, "a")]:
        with pytest.raises(TooManyRequestsError):
            place.join()
    assert limit.knock("a") is None


def test_a_place_that_is_passed_on_is_left_once() -> None:
    limit = AddressLimit(1)
    first = knock(limit, "a")
    second = first.pass_on()
    first.leave()
    assert not first.is_open and second.is_open
    second.join()
    second.leave()
    assert counts_nobody(limit)


def test_no_limit_is_no_limit() -> None:
    limit = AddressLimit(None)
    for _ in range(1000):
        knock(limit, "a").join()


def knock(limit: AddressLimit, address: str) -> Place:
    place = limit.knock(address)
    assert place is not None
    return place


def test_deadlines() -> None:
    limits = Limits()
    assert limits.deadline(TOOL_CALL_EVENT, 30) == 35
    assert limits.deadline(GET_TOOLS_EVENT, None) == 15


def relay(number: int, req_id: str) -> RelayAsk:
    return Ask(
        number, Relay(TOOL_CALL_EVENT, "a", req_id, "pc", lambda *_: None), "caller", "target", weight=1 + len(req_id)
    )


def test_the_ids_that_a_caller_has_kept_are_limited() -> None:
    table = relay_table(most_per_caller=2)
    table.ask(relay(1, "x" * 600_000))
    with pytest.raises(TooManyRequestsError, match="too long"):
        table.ask(relay(2, "x" * 600_000))
    table.ask(relay(3, "short"))
    with pytest.raises(TooManyRequestsError, match="2 requests are waiting"):
        table.ask(relay(4, "short"))
