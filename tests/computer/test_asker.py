"""Who asks is what a server that stamps says. Everything else is a claim."""

import pytest

from a2c_smcp.computer.asker import Asker, asker_of
from a2c_smcp.dialects.handshake import announces_stamps

REQUEST = {"agent": "librarian", "computer": "pc", "req_id": "1"}


def test_a_stamp_is_who_asks() -> None:
    request = {**REQUEST, "a2c_from": {"name": "planner", "key": "home", "bound": True}}
    asker = asker_of(request, "lab", stamps=True)
    assert asker == Asker("planner", "home", True, "lab")
    assert asker.own_id == "librarian"
    assert not asker.is_claimed


def test_a_stamp_on_a_connection_without_stamps_is_not_read() -> None:
    request = {**REQUEST, "a2c_from": {"name": "planner", "key": "home", "bound": True}}
    assert asker_of(request, "lab", stamps=False) == Asker("librarian", office="lab")


@pytest.mark.parametrize("stamp", [None, "planner", [], {}, {"name": None, "bound": True}, {"key": "k", "bound": True}])
def test_without_a_stamp_the_name_is_a_claim(stamp: object) -> None:
    asker = asker_of({**REQUEST, "a2c_from": stamp}, "lab", stamps=True)
    assert asker == Asker("librarian", office="lab")
    assert asker.is_claimed


@pytest.mark.parametrize("bound", [None, 1, "true", "yes", [True], False])
def test_only_true_binds_a_name(bound: object) -> None:
    assert asker_of({**REQUEST, "a2c_from": {"name": "a", "key": "k", "bound": bound}}, "lab", stamps=True).is_claimed


@pytest.mark.parametrize("key", [None, "", 1, {"name": "k"}])
def test_a_key_without_a_name_is_none(key: object) -> None:
    assert asker_of({**REQUEST, "a2c_from": {"name": "a", "key": key, "bound": False}}, "", stamps=True).key is None


@pytest.mark.parametrize("payload", [None, [], "stamps", {}, {"stamps": 1}, {"stamps": "true"}, {"sid": "x"}])
def test_only_a_server_that_says_so_stamps(payload: object) -> None:
    assert not announces_stamps(payload)
    assert announces_stamps({"sid": "x", "stamps": True})
