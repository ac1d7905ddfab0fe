"""Many who want the same at once, through three processes. Three computers in four share a name with another."""

import asyncio
import random
from dataclasses import dataclass

import pytest

from a2c_smcp.errors import InternalError, NameTakenError, RoomFullError
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.offices import Grant, Member
from a2c_smcp.server.registry import MemoryRegistry
from tests.nats_server import NatsServer
from tests.server.cluster.processes import Heard, Process, registries, request
from tests.server.harness import eventually


@pytest.fixture
def options(nats: NatsServer, prefix: str) -> ClusterOptions:
    return ClusterOptions((nats.url,), prefix=prefix)


async def same_story(processes: list[Process]) -> Heard:
    """Wait until all processes know the same; they must have been told the same, in the same order."""
    await eventually(lambda: len({len(each.heard.changes) for each in processes}) == 1)
    first, *others = processes
    assert all(each.heard.changes == first.heard.changes for each in others)
    rooms = [set(each.registry.replica.directory) for each in processes]
    assert all(room == rooms[0] for room in rooms)
    return first.heard


@pytest.mark.usefixtures("patient")
async def test_200_agents_go_to_20_offices_and_20_are_in(options: ClusterOptions) -> None:
    async with registries(options, 3) as processes:

        async def attempt(number: int) -> str | None:
            try:
                await processes[number % 3].join(f"s{number}", "agent", f"a{number}", f"o{number % 20}")
            except RoomFullError as error:
                # The refusal names the one that is in.
                return None if error.details["agent"] != f"a{number}" else "?"
            return f"o{number % 20}"

        outcomes = await asyncio.gather(*map(attempt, range(200)))
        assert sorted(office for office in outcomes if office) == sorted(f"o{n}" for n in range(20))
        heard = await same_story(processes)
        assert len(heard.changes) == 20
        assert sum(each.registry.counts().agents for each in processes) == 20


async def test_thousands_that_come_back_at_once_are_all_let_in(options: ClusterOptions) -> None:
    async with registries(options, 2) as (here, there):
        sids = await asyncio.gather(*(here.until_joined(f"c{n}", f"o{n % 7}") for n in range(2500)))
        # On a machine with far too much to do NATS may be late for some, but never for most.
        assert sum(sid.endswith("-0") for sid in sids) > 1250
        assert here.registry.counts().computers == 2500
        await eventually(lambda: sum(len(there.names(f"o{n}")) for n in range(7)) == 2500)
        await asyncio.gather(*map(here.registry.disconnect, sids))
        await eventually(lambda: not any(there.names(f"o{n}") for n in range(7)))


@dataclass
class Attempt:
    """What one join came to, and which part of its process's story it saw."""

    process: Process
    sid: str
    office_id: str
    name: str
    since: int
    until: int
    refused: bool


class Model:
    """The changes as they were told, played to the pure model: it must agree with every one."""

    def __init__(self) -> None:
        self.registry = MemoryRegistry()
        self.connected: set[str] = set()
        self.held: list[dict[tuple[str, str], str]] = [{}]

    def play(self, heard: Heard) -> None:
        for change in heard.changes:
            member = change.after or change.before
            assert member is not None
            if member.sid not in self.connected:
                self.connected.add(member.sid)
                self.registry.connect(member.sid, Grant())
            now = self.registry.session(member.sid).member
            assert _place(now) == _place(change.before)
            if change.after is None:
                self.registry.disconnect(member.sid)
                self.connected.discard(member.sid)
            else:
                # Raises where two would have one name.
                self.registry.join(member.sid, request("computer", member.name, member.office_id))
            held = dict(self.held[-1])
            if change.before is not None:
                del held[change.before.office_id, change.before.name]
            if change.after is not None:
                held[change.after.office_id, change.after.name] = member.sid
            self.held.append(held)

    def allows(self, attempt: Attempt) -> bool:
        """A refusal is right if another had the name at some moment of the attempt."""
        moments = self.held[attempt.since : attempt.until + 1]
        return any(held.get((attempt.office_id, attempt.name), attempt.sid) != attempt.sid for held in moments)


def _place(member: Member | None) -> tuple[str, str] | None:
    return (member.office_id, member.name) if member else None


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("seed", [1, 2])
async def test_50_computers_move_back_and_forth_and_no_name_is_ever_doubled(options: ClusterOptions, seed: int) -> None:
    async with registries(options, 3) as processes:
        attempts: list[Attempt] = []

        async def roam(number: int) -> None:
            choice = random.Random(f"{seed}/{number}")
            process, sid = processes[number % 3], f"s{number}"
            registry, changes = process.registry, process.heard.changes
            registry.connect(sid, Grant())
            for _ in range(12):
                office_id, name = f"o{choice.randrange(3)}", f"c{choice.randrange(13)}"
                deed, since = choice.random(), len(changes)
                if deed < 0.1:
                    await registry.disconnect(sid)
                    registry.connect(sid, Grant())
                    continue
                if deed < 0.2 and (member := (registry.session(sid)).member) is not None:
                    await registry.leave(sid, {"office_id": member.office_id})
                    continue
                refused = False
                try:
                    await registry.join(sid, request("computer", name, office_id))
                except NameTakenError:
                    refused = True
                attempts.append(Attempt(process, sid, office_id, name, since, len(changes), refused))

        await asyncio.gather(*map(roam, range(50)))
        heard = await same_story(processes)
        model = Model()
        model.play(heard)
        assert {_place(member) for member in processes[0].registry.replica.directory} == set(model.held[-1])
        refused = [attempt for attempt in attempts if attempt.refused]
        assert len(attempts) > 300 and 30 < len(refused) < len(attempts) - 100
        assert [attempt for attempt in refused if not model.allows(attempt)] == []
        assert all(each.heard.lost_sids == [] for each in processes)


@pytest.mark.usefixtures("patient")
async def test_computers_that_swap_their_names_through_two_processes_never_both_have_one(
    options: ClusterOptions,
) -> None:
    async with registries(options, 2) as (here, there):
        await here.join("s1", "computer", "a", "o")
        await there.join("s2", "computer", "b", "o")

        async def swap(process: Process, sid: str, names: str) -> int:
            done = 0
            for round_ in range(30):
                try:
                    await process.registry.join(sid, request("computer", names[round_ % 3], "o"))
                    done += 1
                except (NameTakenError, InternalError):
                    await asyncio.sleep(0)
            return done

        assert all(await asyncio.gather(swap(here, "s1", "abc"), swap(there, "s2", "bca")))
        model = Model()
        model.play(await same_story([here, there]))
