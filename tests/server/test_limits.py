"""Limits as values: buckets, addresses, deadlines."""

import pytest

from a2c_smcp.errors import TooManyRequestsError
from a2c_smcp.server.limits import AddressLimit, Limits, Place, TokenBucket
from a2c_smcp.server.relays import Relay, RelayTable
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


def relay(caller: str, target: str) -> Relay:
    return Relay(caller, target, TOOL_CALL_EVENT, "a", "1", "pc", lambda _: None)


def test_pending_relays_are_limited_per_caller() -> None:
    table = RelayTable(most_per_caller=2)
    first = relay("a", "c")
    table.open(first)
    table.open(relay("a", "d"))
    with pytest.raises(TooManyRequestsError):
        table.open(relay("a", "c"))
    table.open(relay("b", "c"))
    table.close(first)
    table.open(relay("a", "c"))
    assert len(table) == 3


def test_the_ids_that_a_caller_has_kept_are_limited_too() -> None:
    table = RelayTable(most_per_caller=10)
    long = [Relay("a", "c", TOOL_CALL_EVENT, "a", "x" * 600_000, "pc", lambda _: None) for _ in range(2)]
    table.open(long[0])
    with pytest.raises(TooManyRequestsError):
        table.open(long[1])
    table.open(relay("a", "c"))
    table.close(long[0])
    table.close(long[0])
    table.open(long[1])


def test_the_end_of_either_session_finds_its_relays_and_closing_leaves_nothing() -> None:
    table = RelayTable(most_per_caller=10)
    relays = [relay("a", "c"), relay("a", "d"), relay("b", "c")]
    for each in relays:
        table.open(each)
    assert table.orphaned_by("c").unanswered == (relays[0], relays[2])
    assert table.orphaned_by("a").unwanted == (relays[0], relays[1])
    for each in relays:
        table.close(each)
        table.close(each)
    assert (len(table), table._by_caller, table._by_target, table._weights) == (0, {}, {}, {})
