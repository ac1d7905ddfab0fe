"""Membership over a real NATS: who gets a name, who hears of it, and what is left of those that go."""

import json
import time
from dataclasses import replace

import pytest

from a2c_smcp.errors import AlreadyInRoomError, ForbiddenError, NameTakenError, NotFoundError, RoomFullError, SMCPError
from a2c_smcp.server.cluster.bucket import Bucket, WrongRevisionError
from a2c_smcp.server.cluster.keys import claim_keys, encode_claim, lease_key, leased_process
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.offices import Grant, Member, MemberChange, effects_of
from a2c_smcp.smcp import EVENTS, GET_TOOLS_EVENT
from tests.nats_server import NatsServer
from tests.server.cluster.processes import registries, registry, request
from tests.server.harness import eventually

pytestmark = pytest.mark.usefixtures("patient")

ROUTED = EVENTS[GET_TOOLS_EVENT]


@pytest.fixture
def options(nats: NatsServer, prefix: str) -> ClusterOptions:
    return ClusterOptions((nats.url,), prefix=prefix)


async def test_who_joins_through_one_process_is_reached_and_listed_through_the_other(options: ClusterOptions) -> None:
    async with registries(options, 2) as (here, there):
        await here.join("s1", "agent", "a", "o")
        await there.join("s2", "computer", "laptop", "o")
        laptop = Member("s2", "computer", "laptop", "o", there.registry.process)
        await eventually(lambda: here.names("o") == ["a", "laptop"])
        assert here.registry.route("s1", ROUTED, "laptop") == laptop
        assert set(here.registry.holders("o")) == {here.registry.process, there.registry.process}
        assert (None, laptop) in here.heard.told and (None, laptop) in there.heard.told
        with pytest.raises(NotFoundError):
            here.registry.route("s1", ROUTED, "desktop")


async def test_a_join_is_told_before_it_is_answered_and_the_answer_has_nothing_to_perform(
    options: ClusterOptions,
) -> None:
    async with registry(options) as here:
        here.registry.connect("s1", Grant())
        transition = await here.registry.join("s1", request("computer", "laptop", "o"))
        assert transition.after is not None and transition.after.member is not None
        assert transition.rooms == () and transition.notices == ()
        assert here.heard.told == [(None, transition.after.member)]


@pytest.mark.parametrize(("role", "error"), [("agent", RoomFullError), ("computer", NameTakenError)])
async def test_a_seat_and_a_name_are_taken_in_all_processes_and_free_in_all(
    options: ClusterOptions, role: str, error: type[SMCPError]
) -> None:
    async with registries(options, 2) as (here, there):
        await here.join("s1", role, "n", "o")  # type: ignore[arg-type]
        # It has not waited for the other process to hear of it.
        with pytest.raises(error):
            await there.join("s2", role, "n", "o")  # type: ignore[arg-type]
        assert there.registry.counts().agents + there.registry.counts().computers == 0
        await here.registry.leave("s1", {"office_id": "o"})
        await there.registry.join("s2", request(role, "n", "o"))  # type: ignore[arg-type]
        await eventually(lambda: here.names("o") == ["n"])
        assert [bool(after) for _, after in here.heard.told] == [True, False, True]


async def test_names_that_look_alike_are_one_name_in_all_processes(options: ClusterOptions) -> None:
    async with registries(options, 2) as (here, there):
        await here.join("s1", "computer", "laptop", "o")
        # It has not waited for the other process to hear of it.
        with pytest.raises(NameTakenError, match="'laptop'"):
            await there.join("s2", "computer", "l\u0430ptop", "o")
        await here.registry.join("s1", request("computer", "Laptop", "o"))
        await eventually(lambda: there.names("o") == ["Laptop"])
        with pytest.raises(NameTakenError, match="'Laptop'"):
            await there.registry.join("s2", request("computer", "laptop", "o"))
        await here.registry.leave("s1", {"office_id": "o"})
        await there.registry.join("s2", request("computer", "laptop", "o"))
        assert there.names("o") == ["laptop"]


async def test_a_member_of_an_older_process_is_known_and_tidied_up_after(options: ClusterOptions) -> None:
    async with registry(options) as here:
        here.registry.connect("s1", Grant())
        bucket, older = Bucket(here.connection), Member("s2", "computer", "Laptop", "o", "older")
        await bucket.write(lease_key("older"), b"", 0)
        await bucket.write(claim_keys(older)[1], encode_claim(older), 0)
        await eventually(lambda: here.names("o") == ["Laptop"])
        with pytest.raises(NameTakenError, match="'Laptop'"):
            await here.registry.join("s1", request("computer", "laptop", "o"))
        await bucket.delete(lease_key("older"), (await bucket.read(lease_key("older"))).revision)
        await eventually(lambda: here.names("o") == [])
        await here.registry.join("s1", request("computer", "laptop", "o"))
        await eventually(lambda: here.registry.replica.abandoned() == [])
        assert (await bucket.read(claim_keys(older)[1])).value is None


async def test_who_asks_is_known_from_the_membership_and_not_from_who_says_it(options: ClusterOptions) -> None:
    async with registries(options, 2) as (here, there):
        ci = Grant("ci", fingerprint="f", names=("planner*",))
        there.registry.connect("s1", ci)
        await there.registry.join("s1", {**request("agent", "planner", "o"), "resume": "a secret of some length"})
        await there.join("s2", "computer", "laptop", "o")
        process = there.registry.process
        await eventually(lambda: here.names("o") == ["laptop", "planner"])
        asker = here.registry.asker(f"{process}/s1")
        assert (asker.name, asker.key, asker.bound) == ("planner", "ci", True)
        # Another process, a session that nobody knows, and a computer ask nothing.
        for caller in (f"{here.registry.process}/s1", f"{process}/s3", f"{process}/s2", f"/{process}/s1"):
            with pytest.raises(ForbiddenError):
                here.registry.asker(caller)
        # A newer session has its place, and its last requests are still served.
        await here.join("s4", "computer", "tower", "o")
        here.registry.connect("s5", Grant("desk", fingerprint="g"))
        await here.registry.join("s5", {**request("agent", "clerk", "o"), "resume": "a secret of some length"})
        await eventually(lambda: here.registry.replica.member("s1") is None)
        assert here.registry.asker(f"{process}/s1") == asker
        assert there.registry.asker("s1") == asker
        clerk = here.registry.asker("s5")
        assert (clerk.name, clerk.key, clerk.bound) == ("clerk", "desk", False)


async def test_what_a_key_allows_now_is_known_to_all_and_told_to_nobody(options: ClusterOptions) -> None:
    async with registries(options, 2) as (here, there):
        there.registry.connect("s1", Grant("ci", fingerprint="f"))
        await there.registry.join("s1", request("agent", "planner", "o"))
        await eventually(lambda: here.names("o") == ["planner"])
        remote = f"{there.registry.process}/s1"
        for key, names in (("ci", ("planner",)), ("build", None)):
            there.registry.regrant("s1", Grant(key, fingerprint="f", names=names))
            assert (there.registry.asker("s1").key, there.registry.asker("s1").bound) == (key, names is not None)
            await eventually(lambda key=key: here.registry.asker(remote).key == key)  # type: ignore[misc]
            await eventually(lambda names=names: here.registry.asker(remote).bound is (names is not None))  # type: ignore[misc]
        assert there.heard.lost_sids == here.heard.lost_sids == []
        assert all(effects_of(MemberChange(*told)) == ((), ()) for told in here.heard.told[1:])
        # It can still rename itself, and leave, once its own process has seen what it wrote.
        await eventually(lambda: (seen := there.registry.replica.member("s1")) is not None and seen.key == "build")
        await there.registry.join("s1", request("agent", "clerk", "o"))
        await eventually(lambda: here.names("o") == ["clerk"])
        await there.registry.leave("s1", {"office_id": "o"})
        await eventually(lambda: here.names("o") == [])
        assert there.heard.lost_sids == []


async def test_a_claim_that_no_server_has_signed_makes_no_name_a_bound_one(options: ClusterOptions) -> None:
    """Who has the credentials of the servers, and no cluster key, can write claims."""
    signing = replace(options, keys=(b"the key that these servers share",))
    async with registries(signing, 2) as (here, there):
        there.registry.connect("s1", Grant("ci", fingerprint="f", names=("planner",)))
        await there.registry.join("s1", request("agent", "planner", "o"))
        caller = f"{there.registry.process}/s1"
        await eventually(lambda: here.names("o") == ["planner"])
        asker = here.registry.asker(caller)
        assert (asker.name, asker.key, asker.bound) == ("planner", "ci", True)
        member, bucket = here.registry.replica.member("s1"), Bucket(here.connection)
        assert member is not None
        for forged in ({"name": "librarian"}, {"key": "library"}, {"name": "librarian", "key": "", "bound": True}):
            key, claim = claim_keys(member)[0], encode_claim(replace(member, **forged))
            revision = await bucket.write(key, claim, (await bucket.read(key)).revision)
            await here.registry.reached(revision)
            shown = here.registry.asker(caller)
            assert (shown.name, shown.key, shown.bound) == (forged.get("name", "planner"), "", False)
        assert there.heard.lost_sids == ["s1"]


async def test_what_an_older_process_says_of_a_member_makes_no_name_a_bound_one(options: ClusterOptions) -> None:
    async with registry(options) as here:
        bucket, older = Bucket(here.connection), Member("s2", "agent", "librarian", "o", "older")
        said = {"sid": "s2", "role": "agent", "name": "librarian", "office_id": "o", "process": "older", "resume": ""}
        await bucket.write(lease_key("older"), b"", 0)
        await bucket.write(claim_keys(older)[0], json.dumps(said).encode(), 0)
        await eventually(lambda: here.names("o") == ["librarian"])
        assert here.registry.asker("older/s2") == older and not older.bound and not older.key


async def test_a_move_and_a_rename_are_one_change_each_and_free_what_was_left(options: ClusterOptions) -> None:
    async with registries(options, 2) as (here, there):
        await here.join("s1", "computer", "a", "o")
        first, second, third = (
            Member("s1", "computer", name, office, here.registry.process) for name, office in ("ao", "ap", "bp")
        )
        await here.registry.join("s1", request("computer", "a", "p"))
        await here.registry.join("s1", request("computer", "b", "p"))
        await here.registry.join("s1", request("computer", "b", "p"))
        expected = [(None, first), (first, second), (second, third)]
        assert here.heard.told == expected
        await eventually(lambda: there.heard.told == expected)
        await there.join("s2", "computer", "a", "o")
        await there.registry.join("s2", request("computer", "a", "p"))
        with pytest.raises(NameTakenError):
            await there.registry.join("s2", request("computer", "b", "p"))
        assert there.names("p") == ["a", "b"]


async def test_an_agent_takes_another_name_on_its_seat_and_must_leave_before_it_goes_elsewhere(
    options: ClusterOptions,
) -> None:
    async with registry(options) as here:
        await here.join("s1", "agent", "a", "o")
        await here.registry.join("s1", request("agent", "b", "o"))
        assert here.names("o") == ["b"]
        with pytest.raises(AlreadyInRoomError):
            await here.registry.join("s1", request("agent", "b", "p"))


async def test_a_disconnect_frees_the_name_and_is_told(options: ClusterOptions) -> None:
    async with registries(options, 2) as (here, there):
        await here.join("s1", "computer", "a", "o")
        transition = await here.registry.disconnect("s1")
        assert transition is not None and transition.left_office and transition.notices == ()
        await there.join("s2", "computer", "a", "o")
        await eventually(lambda: len(here.heard.changes) == 3)
        assert await here.registry.disconnect("s1") is None


async def test_a_process_that_ends_in_good_order_gives_up_everything_at_once(options: ClusterOptions) -> None:
    options = replace(options, lease=60)
    async with registry(options) as here:
        async with registry(options) as there:
            await there.join("s1", "agent", "a", "o")
            await there.join("s2", "computer", "c", "o")
            await eventually(lambda: here.names("o") == ["a", "c"])
        # Well before the lease is over.
        await eventually(lambda: len(here.registry.processes) == 1)
        assert here.names("o") == []
        await here.join("s3", "agent", "a", "o")
        # The claim that nobody took over is deleted.
        await eventually(lambda: here.registry.replica.abandoned() == [])


async def test_what_is_in_the_bucket_is_known_to_a_process_that_comes_later(options: ClusterOptions) -> None:
    async with registry(options) as here:
        for number in range(300):
            await here.join(f"s{number}", "computer", f"c{number}", f"o{number % 3}")
        async with registry(options) as late:
            assert len(late.names("o0")) == 100
            assert late.heard.changes == []
            await late.join("x", "agent", "a", "o0")
            assert len(late.registry.members("o0")) == 101


async def test_a_listener_that_fails_once_costs_a_new_look_and_nothing_is_missed(
    options: ClusterOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with registries(options, 2) as (here, there):
        changed, failed = here.heard.changed, []

        def fail(changes: object) -> None:
            failed.append(changes)
            raise RuntimeError("a fault of the listener's")

        monkeypatch.setattr(here.heard, "changed", fail)
        await there.join("s1", "computer", "a", "o")
        await eventually(lambda: failed)
        monkeypatch.setattr(here.heard, "changed", changed)
        await there.join("s2", "computer", "b", "o")
        await eventually(lambda: here.names("o") == ["a", "b"])
        await here.join("s3", "agent", "x", "o")
        await eventually(lambda: there.names("o") == ["a", "b", "x"])
        assert set(here.registry.members("o")) == set(there.registry.members("o"))


async def test_a_join_outlasts_a_nats_that_refuses_changes_while_it_elects_a_leader(
    options: ClusterOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, accepts = Bucket.write, 0.0

    async def elect(self: Bucket, key: str, value: bytes, expected: int, seconds: int | None = None) -> int:
        if leased_process(key) is not None or time.monotonic() > accepts:
            return await write(self, key, value, expected, seconds)
        raise WrongRevisionError

    async with registry(options) as here:
        accepts = time.monotonic() + 1
        monkeypatch.setattr(Bucket, "write", elect)
        await here.join("s1", "computer", "laptop", "o")
        assert here.names("o") == ["laptop"]
