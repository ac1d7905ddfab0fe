"""What a process knows of the others: a fold of the bucket's entries, or one look at all of them."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from a2c_smcp.server.cluster.keys import Entry, claim_key, encode_claim, lease_key, read_claim
from a2c_smcp.server.cluster.replica import Replica
from a2c_smcp.server.offices import Member, MemberChange

LAPTOP = Member("s1", "computer", "laptop", "o", "p1")
AGENT = Member("s2", "agent", "a", "o", "p2")


def lease(process: str, revision: int, *, over: bool = False) -> Entry:
    return Entry(lease_key(process), revision, None if over else b"{}")


def claim(member: Member, revision: int) -> Entry:
    return Entry(claim_key(member), revision, encode_claim(member))


def gone(member: Member, revision: int) -> Entry:
    return Entry(claim_key(member), revision, None)


def folded(*entries: Entry) -> tuple[Replica, list[tuple[Member | None, Member | None]]]:
    replica = Replica()
    changes = [change for entry in entries for change in replica.apply(entry)]
    return replica, [(change.before, change.after) for change in changes]


def test_a_claim_makes_a_member_until_it_is_deleted() -> None:
    replica, changes = folded(lease("p1", 1), claim(LAPTOP, 2), gone(LAPTOP, 3))
    assert changes == [(None, LAPTOP), (LAPTOP, None)]
    assert list(replica.directory) == [] and replica.revision == 3


def test_the_end_of_a_lease_makes_every_claim_of_its_process_void() -> None:
    other = replace(LAPTOP, sid="s3", name="tower")
    replica, changes = folded(
        *(lease("p1", 1), lease("p2", 2), claim(LAPTOP, 3), claim(AGENT, 4), claim(other, 5)), lease("p1", 6, over=True)
    )
    assert sorted(before.sid for before, after in changes if before and not after) == ["s1", "s3"]
    assert list(replica.directory) == [AGENT]
    assert set(replica.processes) == {"p2"}
    # They can be taken over, and tidied away.
    assert replica.revision_of(claim_key(LAPTOP)) == 3
    assert set(replica.abandoned()) == {LAPTOP, other}


def test_a_session_that_was_moving_when_its_process_ended_goes_once() -> None:
    moved = replace(LAPTOP, office_id="q")
    replica, changes = folded(lease("p1", 1), claim(LAPTOP, 2), claim(moved, 3), lease("p1", 4, over=True))
    assert changes[2:] == [(moved, None)] and list(replica.directory) == []


def test_a_renewal_changes_nothing() -> None:
    _, changes = folded(lease("p1", 1), claim(LAPTOP, 2), lease("p1", 3))
    assert changes == [(None, LAPTOP)]


def test_a_void_claim_is_taken_over() -> None:
    taken = replace(LAPTOP, sid="s9", process="p2")
    replica, changes = folded(
        *(lease("p1", 1), lease("p2", 2), claim(LAPTOP, 3), lease("p1", 4, over=True), claim(taken, 5))
    )
    assert changes[1:] == [(LAPTOP, None), (None, taken)]
    assert replica.abandoned() == []


def test_a_session_is_in_one_place_its_newest_claim() -> None:
    moved = replace(LAPTOP, office_id="q")
    replica, changes = folded(lease("p1", 1), claim(LAPTOP, 2), claim(moved, 3), gone(LAPTOP, 4))
    assert changes == [(None, LAPTOP), (LAPTOP, moved)]
    assert list(replica.directory) == [moved] and replica.member("s1") == moved
    assert replica.left_behind("p1") == []


def test_a_place_that_was_left_and_not_given_up_is_free_and_does_not_come_back() -> None:
    moved = replace(LAPTOP, office_id="q")
    another = replace(LAPTOP, sid="s9")
    replica, changes = folded(lease("p1", 1), claim(LAPTOP, 2), claim(moved, 3), gone(moved, 4))
    assert changes[-1] == (moved, None) and list(replica.directory) == []
    assert replica.left_behind("p1") == [LAPTOP] and replica.left_behind("p2") == []
    assert replica.resync([lease("p1", 1), claim(LAPTOP, 2), gone(moved, 4)]) == []
    assert replica.left_behind("p1") == [LAPTOP]
    assert replica.apply(claim(another, 5)) == [MemberChange(None, another)]
    assert replica.left_behind("p1") == []


def test_a_rename_on_the_agents_seat_is_one_change() -> None:
    renamed = replace(AGENT, name="b")
    _, changes = folded(lease("p2", 1), claim(AGENT, 2), claim(renamed, 3))
    assert changes[1:] == [(AGENT, renamed)]


def test_a_place_that_a_newer_session_of_the_same_client_takes_over_is_one_change() -> None:
    old = replace(LAPTOP, resume="hash")
    new = replace(old, sid="s9", process="p2")
    replica, changes = folded(lease("p1", 1), lease("p2", 2), claim(old, 3), claim(new, 4))
    assert changes == [(None, old), (old, new)] and list(replica.directory) == [new]
    # The end of the old session's process changes nothing any more.
    assert replica.apply(lease("p1", 5, over=True)) == [] and list(replica.directory) == [new]


def test_a_look_shows_a_place_that_was_taken_over_as_one_change() -> None:
    old = replace(LAPTOP, resume="hash")
    new = replace(old, sid="s9", process="p2")
    replica, _ = folded(lease("p1", 1), lease("p2", 2), claim(old, 3))
    assert replica.resync([lease("p1", 1), lease("p2", 2), claim(new, 5)]) == [MemberChange(old, new)]


def test_a_place_that_another_client_gets_is_two_changes() -> None:
    old = replace(LAPTOP, resume="hash")
    for new in (replace(old, sid="s9", resume="another hash"), replace(old, sid="s9", resume="")):
        _, changes = folded(lease("p1", 1), claim(old, 3), claim(new, 4))
        assert changes[1:] == [(old, None), (None, new)]


def test_a_move_back_and_forth() -> None:
    moved = replace(LAPTOP, office_id="q")
    replica, changes = folded(
        *(lease("p1", 1), claim(LAPTOP, 2), claim(moved, 3), gone(LAPTOP, 4), claim(LAPTOP, 5), gone(moved, 6))
    )
    assert [after for _, after in changes] == [LAPTOP, moved, LAPTOP]
    assert list(replica.directory) == [LAPTOP]


def test_revisions_that_are_known_change_nothing() -> None:
    replica, _ = folded(lease("p1", 1), claim(LAPTOP, 2), gone(LAPTOP, 3))
    assert replica.apply(claim(LAPTOP, 2)) == [] and replica.apply(lease("p1", 3, over=True)) == []
    assert set(replica.processes) == {"p1"}


def test_the_revision_of_a_deleted_key_is_remembered_for_the_next_claim() -> None:
    replica, _ = folded(lease("p1", 1), claim(LAPTOP, 2), gone(LAPTOP, 3))
    assert replica.revision_of(claim_key(LAPTOP)) == 3
    assert replica.revision_of(claim_key(AGENT)) == 0


def test_a_claim_that_cannot_be_read_is_void() -> None:
    replica, changes = folded(lease("p1", 1), Entry(claim_key(LAPTOP), 2, b"?"))
    assert changes == [] and replica.revision_of(claim_key(LAPTOP)) == 2


def test_a_new_look_at_the_bucket_tells_of_the_differences_who_goes_first() -> None:
    replica, _ = folded(lease("p1", 1), lease("p2", 2), claim(LAPTOP, 3), claim(AGENT, 4))
    instead = replace(LAPTOP, sid="s9", process="p2")
    # While nobody looked p1 ended, its claim was taken over, and the agent took another name.
    renamed = replace(AGENT, name="b")
    shown = [lease("p1", 5, over=True), lease("p2", 9), claim(instead, 7), claim(renamed, 8)]
    changes = replica.resync(shown)
    assert changes == [MemberChange(LAPTOP, None), MemberChange(None, instead), MemberChange(AGENT, renamed)]
    assert list(replica.directory) == [renamed, instead]
    assert replica.revision == 9 and set(replica.processes) == {"p2"}
    assert replica.resync(shown) == [] and replica.doubted() == []


def test_what_a_look_does_not_show_is_kept_until_it_is_known_to_be_gone() -> None:
    replica, _ = folded(lease("p1", 1), lease("p2", 2), claim(LAPTOP, 3), claim(AGENT, 4))
    # p1 renewed its lease while the others were shown: the old one was gone, and the new one had not come.
    assert replica.resync([lease("p2", 2), claim(AGENT, 4)]) == []
    assert sorted(replica.doubted()) == sorted([lease_key("p1"), claim_key(LAPTOP)])
    assert replica.apply(lease("p1", 5)) == []
    assert replica.doubted() == [claim_key(LAPTOP)]
    assert replica.drop(lease_key("p1")) == []
    assert replica.drop(claim_key(LAPTOP)) == [MemberChange(LAPTOP, None)]
    assert replica.doubted() == [] and set(replica.processes) == {"p1", "p2"} and list(replica.directory) == [AGENT]


def test_a_process_that_a_look_did_not_show_and_that_is_gone_takes_its_members_along() -> None:
    replica, _ = folded(lease("p1", 1), lease("p2", 2), claim(LAPTOP, 3))
    assert replica.resync([lease("p2", 2), claim(LAPTOP, 3)]) == []
    assert replica.drop(lease_key("p1")) == [MemberChange(LAPTOP, None)]
    assert set(replica.processes) == {"p2"} and replica.abandoned() == [LAPTOP]


# --- any history

_SESSIONS = [(f"s{number}", f"p{number % 2}") for number in range(4)]
#: Three sessions of one client, and one of another.
_SECRETS = ["hash", "hash", "hash", ""]
_DEEDS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["join", "half"]), st.integers(0, 3), st.sampled_from("ab"), st.sampled_from("op")),
        st.tuples(st.just("leave"), st.integers(0, 3), st.just(""), st.just("")),
        st.tuples(st.just("end"), st.integers(0, 1), st.just(""), st.just("")),
        st.tuples(st.just("look"), st.just(0), st.just(""), st.just("")),
    ),
    max_size=40,
)


class World:
    """A bucket as it would be: processes write what the protocol allows them to."""

    def __init__(self) -> None:
        self.bucket: dict[str, Entry] = {}
        self.revision = 0
        self.places: dict[str, Member] = {}
        self.alive = {"p0", "p1"}
        self.history: list[Entry] = []
        for process in sorted(self.alive):
            self.write(lease_key(process), b"{}")

    def write(self, key: str, value: bytes | None) -> None:
        self.revision += 1
        entry = self.bucket[key] = Entry(key, self.revision, value)
        self.history.append(entry)

    def join(self, number: int, name: str, office: str, *, half: bool = False) -> None:
        sid, process = _SESSIONS[number]
        member = Member(sid, "computer", name, office, process, _SECRETS[number])
        taken = [
            other
            for other in self.places.values()
            if (other.name, other.office_id) == (name, office) and other.sid != sid
        ]
        yields = all(other.yields_to(member) for other in taken)
        if process in self.alive and yields and self.places.get(sid) != member:
            before = self.places.get(sid)
            for other in taken:
                self.tidy(other)
                del self.places[other.sid]
            self.write(claim_key(member), encode_claim(member))
            self.places[sid] = member
            if before is not None and not half:
                self.write(claim_key(before), None)

    def leave(self, number: int) -> None:
        if (member := self.places.pop(_SESSIONS[number][0], None)) is not None:
            self.tidy(member)
            self.write(claim_key(member), None)

    def tidy(self, member: Member) -> None:
        """What a session left behind before is tidied away before its place goes."""
        for entry in list(self.bucket.values()):
            claimed = read_claim(entry)
            if claimed is not None and claimed.sid == member.sid and claimed != member:
                self.write(entry.key, None)

    def end(self, number: int) -> None:
        process = f"p{number}"
        if process in self.alive:
            self.alive.discard(process)
            self.write(lease_key(process), None)
            self.places = {sid: member for sid, member in self.places.items() if member.process != process}


@settings(deadline=None, derandomize=True, max_examples=300)
@given(_DEEDS)
def test_folding_every_entry_and_looking_now_and_then_come_to_the_same(
    deeds: list[tuple[str, int, str, str]],
) -> None:
    world = World()
    folding, looking = Replica(), Replica()
    shown: dict[str, Member] = {}
    for entry in world.history:
        folding.apply(entry)
    for deed, number, name, office in deeds:
        match deed:
            case "join" | "half":
                world.join(number, name, office, half=deed == "half")
            case "leave":
                world.leave(number)
            case "end":
                world.end(number)
            case _:
                for change in looking.resync(world.bucket.values()):
                    # What a listener keeps from the changes alone is what is there.
                    if change.before is not None:
                        assert shown.pop(change.before.sid) == change.before
                    if change.after is not None:
                        shown[change.after.sid] = change.after
                assert shown == world.places
        for entry in world.history:
            folding.apply(entry)
        assert {member.sid: member for member in folding.directory} == world.places
    looking.resync(world.bucket.values())
    assert set(looking.directory) == set(folding.directory) == set(world.places.values())
    assert set(looking.processes) == set(folding.processes) == world.alive
