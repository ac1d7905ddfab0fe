import re

import pytest

from a2c_smcp.server.cluster.keys import (
    Entry,
    ProcessInfo,
    claim_key,
    claim_keys,
    disagreement,
    encode_claim,
    encode_lease,
    lease_key,
    leased_process,
    read_claim,
    read_lease,
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


# --- whether two processes can work together

HERE = ProcessInfo("here", 1, "1.0", keys=("k1",))


@pytest.mark.parametrize(
    ("theirs", "says"),
    [
        (ProcessInfo("there", 2, "1.0", keys=("k1",)), None),
        (ProcessInfo("there", 2, "1.1", keys=("k1", "k0")), None),
        (ProcessInfo("there", 2), None),
        (ProcessInfo("there", 2, "1.0", keys=("k2", "k1")), "another cluster key"),
        (ProcessInfo("there", 2, "1.0", keys=("k2",)), "another cluster key"),
        (ProcessInfo("there", 2, "1.0"), "another cluster key"),
        (ProcessInfo("there", 2, "2.0", protocol=2, keys=("k1",)), "has version 2.0, which cannot work with 1.0"),
        (None, "another program writes to the bucket a2c-members"),
    ],
)
def test_processes_say_why_they_cannot_work_together(theirs: ProcessInfo | None, says: str | None) -> None:
    found = disagreement(HERE, theirs, "a2c")
    assert (found is None) if says is None else says in (found or "")


@pytest.mark.parametrize(
    ("step", "next_step"),
    [
        # The first key, and another key, as the page on scaling says: both sides of each step work together.
        (ProcessInfo("h", 1, "1"), ProcessInfo("h", 2, "1", keys=("k1",), accepts_unsigned=True)),
        (
            ProcessInfo("h", 1, "1", keys=("k1",), accepts_unsigned=True),
            ProcessInfo("h", 2, "1", keys=("k1",)),
        ),
        (ProcessInfo("h", 1, "1", keys=("k1",)), ProcessInfo("h", 2, "1", keys=("k1", "k2"))),
        (ProcessInfo("h", 1, "1", keys=("k1", "k2")), ProcessInfo("h", 2, "1", keys=("k2", "k1"))),
        (ProcessInfo("h", 1, "1", keys=("k2", "k1")), ProcessInfo("h", 2, "1", keys=("k2",))),
    ],
)
def test_keys_can_be_changed_one_process_after_another(step: ProcessInfo, next_step: ProcessInfo) -> None:
    assert disagreement(step, next_step, "a2c") is None and disagreement(next_step, step, "a2c") is None


def test_a_lease_that_no_server_writes_is_known_as_such() -> None:
    info = ProcessInfo("here", 1, "1.0", keys=("k",), draining=True)
    assert read_lease(Entry("n.p", 1, encode_lease(info))) == info
    assert read_lease(Entry("n.p", 1, b'{"host": "old", "pid": 7}')) == ProcessInfo("old", 7)
    for value in (b"", b"{}", b"[]", b"\xff", b'{"host": 1, "pid": 2}'):
        assert read_lease(Entry("n.p", 1, value)) is None
