"""Socket.IO on one connection: who is in, and which acks count."""

import itertools
from typing import Any

import pytest

from a2c_smcp.engine.bounds import EngineBounds
from a2c_smcp.engine.errors import IllegalMoveError, PeerError
from a2c_smcp.engine.events import AckCame, Knocked, LetIn, Said, SaidGoodbye, TurnedAway
from a2c_smcp.engine.namespaces import ClientNamespaces, ServerNamespaces

BOUNDS = EngineBounds()


def server() -> ServerNamespaces:
    return ServerNamespaces({"/", "/smcp"}, BOUNDS, itertools.count(1).__next__)


def client() -> ClientNamespaces:
    return ClientNamespaces(BOUNDS, itertools.count(1).__next__)


def in_smcp(namespace: str = "/smcp") -> ServerNamespaces:
    there = server()
    there.receive("40" if namespace == "/" else f"40{namespace},")
    there.let_in(namespace, {"sid": "1"})
    return there


@pytest.mark.parametrize(
    ("packet", "namespace", "data"),
    [
        ("40", "/", None),
        ('40{"token":"x"}', "/", {"token": "x"}),
        ("40/smcp", "/smcp", None),
        ("40/smcp,", "/smcp", None),
        ('40/smcp?a=b,{"x":1}', "/smcp", {"x": 1}),
    ],
)
def test_a_client_knocks(packet: str, namespace: str, data: Any) -> None:
    there = server()
    assert there.receive(packet) == Knocked(namespace, data)
    assert there.is_known(namespace) and there.members == []
    assert there.receive(f'42{"" if namespace == "/" else "/smcp,"}["x"]') is None  # it is not in yet
    there.let_in(namespace, {"sid": "1"})
    assert there.members == [namespace]
    with pytest.raises(PeerError):
        there.receive(packet)


def test_whoever_is_turned_away_may_knock_again() -> None:
    there = server()
    there.receive("40/smcp,")
    assert there.turn_away("/smcp", {"message": "no"}) == '4/smcp,{"message":"no"}'
    assert there.receive("40/smcp,") == Knocked("/smcp", None)


def test_a_namespace_that_is_not_there_keeps_nothing() -> None:
    there = server()
    for _ in range(2):
        assert there.receive("40/random") == Knocked("/random", None)
    assert not there.is_known("/random")
    assert there.unknown("/random") == '4/random,{"message":"Invalid namespace"}'
    with pytest.raises(IllegalMoveError):
        there.let_in("/random", {})


@pytest.mark.parametrize(
    "packet",
    [
        "4",
        "4x",
        "47",
        "4abc",
        "42{}",
        "42/smcp,{",
        '42abc["x"]',
        "44/smcp,",
        "40/smcp,[]",
        "40/smcp,{",
        "40[" + "[" * 9999,
        "40/smcp," + "x" * 20000,
        "42/smcp",
    ],
)
def test_what_is_no_packet_is_the_peers_mistake(packet: str) -> None:
    there = in_smcp()
    there.receive("41/smcp,") if packet.startswith("40/smcp") else None
    with pytest.raises(PeerError):
        there.receive(packet)


def test_events_are_split_and_not_decoded() -> None:
    there = in_smcp()
    assert there.receive('42/smcp,7["x",{"a":1}]') == Said("/smcp", 7, '["x",{"a":1}]')
    assert there.receive("42/smcp,[nonsense") == Said("/smcp", None, "[nonsense")
    assert there.receive('42["x"]') is None  # not in that namespace
    assert there.answer("/smcp", 7, "[1]") == "3/smcp,7[1]"


def test_an_event_with_attachments_is_said_to_be_one_and_they_are_dropped() -> None:
    there = in_smcp()
    assert there.receive('452-/smcp,7["x",{"_placeholder":true,"num":0}]') == Said(
        "/smcp", 7, '["x",{"_placeholder":true,"num":0}]', True
    )
    assert [there.expects_attachment() for _ in range(3)] == [True, True, False]
    number, _ = there.ask("/smcp", "[]", "w")
    assert there.receive(f"461-/smcp,{number}[]") == AckCame("w", "[]", True)


def test_an_ack_counts_once_and_in_its_own_namespace_and_connection() -> None:
    there, elsewhere = in_smcp(), in_smcp("/")
    number, packet = there.ask("/smcp", '["x"]', "waiter")
    assert packet == f'2/smcp,{number}["x"]'
    for nobody in ("43/smcp,[]", f"43{number}[]", f"43/smcp,{number + 1}[]", "43/smcp," + "9" * 100 + "[]"):
        assert there.receive(nobody) is None
    assert elsewhere.receive(f"43/smcp,{number}[]") is None
    assert there.receive(f"43/smcp,{number}[1]") == AckCame("waiter", "[1]")
    assert there.receive(f"43/smcp,{number}[1]") is None
    number, _ = there.ask("/smcp", "[]", "forgotten")
    there.forget("/smcp", number)
    assert there.receive(f"43/smcp,{number}[1]") is None


def test_an_id_that_somebody_else_chose_is_waited_for_once() -> None:
    there = in_smcp()
    there.expect("/smcp", 2**60, "w")
    with pytest.raises(IllegalMoveError):
        there.expect("/smcp", 2**60, "w")
    assert there.receive(f"43/smcp,{2**60}[]") == AckCame("w", "[]")


def test_the_end_of_a_stay_forgets_its_acks() -> None:
    there = in_smcp()
    number, _ = there.ask("/smcp", "[]", "w")
    assert there.receive("41/smcp,") == SaidGoodbye("/smcp")
    assert there.receive("41/smcp,") is None
    for illegal in (
        lambda: there.answer("/smcp", 1, "[]"),
        lambda: there.say("/smcp", "[]"),
        lambda: there.leave("/smcp"),
        lambda: there.ask("/smcp", "[]", "w"),
    ):
        with pytest.raises(IllegalMoveError):
            illegal()
    there.receive("40/smcp,")
    there.let_in("/smcp", {})
    assert there.receive(f"43/smcp,{number}[]") is None


def test_a_client_is_let_in_and_turned_away() -> None:
    here = client()
    assert here.knock("/smcp", {"token": "x"}) == '0/smcp,{"token":"x"}'
    with pytest.raises(IllegalMoveError):
        here.knock("/smcp")
    with pytest.raises(IllegalMoveError):
        here.say("/smcp", "[]")
    assert here.receive('40/smcp,{"sid":"1"}') == LetIn("/smcp", {"sid": "1"})
    assert here.say("/smcp", '["x"]') == '2/smcp,["x"]'
    assert here.receive("41/smcp,") == SaidGoodbye("/smcp")
    assert here.knock("/") == "0"
    assert here.receive('44{"message":"no"}') == TurnedAway("/", {"message": "no"})
    assert here.receive('40{"sid":"1"}') is None
    assert here.members == []
