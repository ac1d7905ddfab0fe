"""The browsers that are remembered: how many, how long, and until when."""

import pytest

from a2c_smcp.computer.console.devices import DeviceBook
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.errors import TooManyRequestsError

_KEY = b"k" * 65


def test_a_browser_is_known_until_it_was_not_used_for_thirty_days() -> None:
    book = DeviceBook()
    device = book.grant("Chrome on Linux", _KEY, 0)
    assert book.find(device.id, CONSOLE_LIMITS.device_seconds) == device
    assert book.find(device.id, CONSOLE_LIMITS.device_seconds + 1) is None
    assert book.use(device.id, CONSOLE_LIMITS.device_seconds)
    assert book.find(device.id, 2 * CONSOLE_LIMITS.device_seconds) is not None
    assert not book.use(device.id, 3 * CONSOLE_LIMITS.device_seconds), "a key that has expired is not brought back"


def test_a_use_is_worth_keeping_once_an_hour() -> None:
    book = DeviceBook()
    device = book.grant("Chrome on Linux", _KEY, 0)
    assert [book.use(device.id, now) for now in (1, 3599, 3600, 3601)] == [False, False, True, False]


def test_one_more_than_the_most_is_refused_unless_one_has_expired() -> None:
    book = DeviceBook()
    for number in range(CONSOLE_LIMITS.devices):
        book.grant(f"page {number}", _KEY, number)
    with pytest.raises(TooManyRequestsError, match="revoke one"):
        book.grant("one more", _KEY, 100)
    assert len(book.all) == CONSOLE_LIMITS.devices
    assert book.grant("one more", _KEY, CONSOLE_LIMITS.device_seconds + 0.5) in book.all
    assert len(book.all) == CONSOLE_LIMITS.devices


def test_a_browser_that_lost_its_key_keeps_its_place() -> None:
    book = DeviceBook()
    device = book.grant("Chrome on Linux", _KEY, 0)
    again = book.grant("another name", b"n" * 65, 5, device.id)
    assert (again.id, again.name, again.public_key) == (device.id, device.name, b"n" * 65)
    assert book.all == (again,)


def test_what_was_revoked_is_gone() -> None:
    book = DeviceBook()
    device = book.grant("Chrome on Linux", _KEY, 0)
    assert book.revoke(device.id) and not book.revoke(device.id)
    assert book.find(device.id, 0) is None and book.all == ()
