"""The members of all offices, and how they are found. Pure. Keeps what it is given, and refuses nothing."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from a2c_smcp.server.lookalikes import skeleton
from a2c_smcp.server.offices import Member
from a2c_smcp.types import Role

__all__ = ["Directory"]


@dataclass(slots=True)
class _Office:
    agent: Member | None = None
    computers: dict[str, Member] = field(default_factory=dict)
    looks: dict[str, dict[str, Member]] = field(default_factory=dict)
    """The computers by the skeleton of their names. Several can look alike only if an older server process let them
    in."""
    processes: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Member]:
        if self.agent:
            yield self.agent
        yield from self.computers.values()


class Directory:
    """Members by office, role and name."""

    def __init__(self) -> None:
        self._offices: dict[str, _Office] = {}
        self._roles: Counter[Role] = Counter()

    def __len__(self) -> int:
        """How many offices have a member."""
        return len(self._offices)

    def __iter__(self) -> Iterator[Member]:
        for office in self._offices.values():
            yield from office

    def count(self, role: Role) -> int:
        """How many members have this role."""
        return self._roles[role]

    def seat(self, office_id: str) -> Member | None:
        """The agent of an office."""
        office = self._offices.get(office_id)
        return office.agent if office else None

    def computer(self, office_id: str, name: str) -> Member | None:
        office = self._offices.get(office_id)
        return office.computers.get(name) if office else None

    def holder(self, office_id: str, role: Role, name: str) -> Member | None:
        """The member of this role that has this name, or a name that looks like it."""
        if role == "computer":
            office = self._offices.get(office_id)
            alike = office.looks.get(skeleton(name), {}) if office else {}
            return alike.get(name) or next(iter(alike.values()), None)
        seat = self.seat(office_id)
        return seat if seat and skeleton(seat.name) == skeleton(name) else None

    def members(self, office_id: str) -> Sequence[Member]:
        return tuple(self._offices.get(office_id, ()))

    def processes(self, office_id: str) -> Collection[str]:
        """The server processes that hold members of an office."""
        office = self._offices.get(office_id)
        return office.processes.keys() if office else ()

    def add(self, member: Member) -> None:
        office = self._offices.setdefault(member.office_id, _Office())
        if member.role == "agent":
            office.agent = member
        else:
            office.computers[member.name] = member
            office.looks.setdefault(skeleton(member.name), {})[member.name] = member
        office.processes[member.process] += 1
        self._roles[member.role] += 1

    def remove(self, member: Member) -> None:
        """Remove a member that was added."""
        office = self._offices[member.office_id]
        if member.role == "agent":
            office.agent = None
        else:
            del office.computers[member.name]
            look = skeleton(member.name)
            del office.looks[look][member.name]
            if not office.looks[look]:
                del office.looks[look]
        office.processes[member.process] -= 1
        self._roles[member.role] -= 1
        if not office.processes[member.process]:
            del office.processes[member.process]
        if not office.processes:
            del self._offices[member.office_id]
