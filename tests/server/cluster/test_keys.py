import re

import pytest

from a2c_smcp.server.cluster.keys import (
    Entry,
    claim_key,
    claim_keys,
    encode_claim,
    lease_key,
    leased_process,
    read_claim,
)
from a2c_smcp.server.offices import Member

STRANGE = Member("s", "computer", "Büro > 1.*\ud800", "部门.a b", "p")


def test_any_name_makes_a_key_that_nats_takes() -> None:
    for member in (STRANGE, Member("s", "agent", "a", "部门.a b", "p")):
        assert re.fullmatch(r"[-/_=.a-zA-Z0-9]+", claim_key(member))


def test_the_seat_is_one_key_whatever_the_agent_is_called_and_every_computer_has_its_own() -> None:
    agents = {claim_key(Member("s", "agent", name, "o")) for name in "ab"}
    computers = {claim_key(Member("s", "computer", name, office)) for name in "ab" for office in "op"}
    assert len(agents) == 1 and len(computers) == 4 and not agents & computers


def test_a_claim_has_the_texts() -> None:
    member = Member("s", "computer", "Büro", "部门", "p")
    assert read_claim(Entry(claim_key(member), 1, encode_claim(member))) == member


@pytest.mark.parametrize("value", [None, b"", b"{}", b"[]", b'{"sid": 1}', b"\xff"])
def test_what_is_no_claim_makes_no_member(value: bytes | None) -> None:
    assert read_claim(Entry(claim_key(Member("s", "agent", "a", "o")), 1, value)) is None


def test_a_claim_at_the_key_of_another_makes_no_member() -> None:
    here, there = (Member("s", "agent", "a", office) for office in "op")
    assert read_claim(Entry(claim_key(here), 1, encode_claim(there))) is None
    assert read_claim(Entry(lease_key("p"), 1, encode_claim(here))) is None


def test_a_lease_is_told_from_a_claim() -> None:
    assert leased_process(lease_key("p")) == "p"
    assert leased_process(claim_key(STRANGE)) is None


def test_names_that_look_alike_are_one_key() -> None:
    names = ["laptop", "Laptop", "l\u0430ptop"]
    assert len({claim_key(Member("s", "computer", name, "o")) for name in names}) == 1
    assert len({claim_key(Member("s", "computer", name, "o")) for name in ("Iris", "lris", "1ris")}) == 3


def test_a_claim_of_an_older_process_which_is_at_the_name_itself_makes_a_member() -> None:
    plain, capital = Member("s", "computer", "laptop", "o", "p"), Member("s", "computer", "Laptop", "o", "p")
    assert claim_keys(plain) == (claim_key(plain),)  # both versions know each other's
    new, old = claim_keys(capital)
    assert new == claim_key(capital) != old
    assert read_claim(Entry(old, 1, encode_claim(capital))) == capital
