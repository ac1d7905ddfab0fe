"""Where membership is kept. In this process here; the asyncio shell goes through an async interface so that
membership can also be kept for several processes.

A registry looks up what a decision needs, decides, and commits in one atomic step; the decisions are in `offices`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from a2c_smcp.errors import NotInRoomError
from a2c_smcp.server import offices
from a2c_smcp.server.offices import Grant, Member, Session, Transition
from a2c_smcp.smcp import EnterOfficeReq, Event, LeaveOfficeReq
from a2c_smcp.types import Role

__all__ = ["Counts", "LocalRegistry", "MemoryRegistry", "Registry"]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many sessions, members and offices there are, for the metrics."""

    sessions: int
    agents: int
    computers: int
    offices: int


class Registry(Protocol):
    """What the asyncio shell asks of membership. Each method is atomic; `join` and `leave` raise coded refusals."""

    async def connect(self, sid: str, grant: Grant) -> None: ...
    async def disconnect(self, sid: str) -> Transition | None: ...
    async def join(self, sid: str, request: EnterOfficeReq) -> Transition: ...
    async def leave(self, sid: str, request: LeaveOfficeReq) -> Transition: ...
    async def session(self, sid: str) -> Session: ...
    async def route(self, sid: str, event: Event, computer: str) -> Member: ...
    async def members(self, office_id: str) -> Sequence[Member]: ...
    def counts(self) -> Counts: ...


@dataclass(slots=True)
class _Office:
    agent: Member | None = None
    computers: dict[str, Member] = field(default_factory=dict)

    def holder(self, role: Role, name: str) -> Member | None:
        if role == "computer":
            return self.computers.get(name)
        return self.agent if self.agent and self.agent.name == name else None

    def __iter__(self) -> Iterator[Member]:
        if self.agent:
            yield self.agent
        yield from self.computers.values()


class MemoryRegistry:
    """Membership in plain dictionaries. Not thread-safe: the threaded shell holds it under its lock."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._offices: dict[str, _Office] = {}

    def connect(self, sid: str, grant: Grant) -> None:
        self._sessions[sid] = Session(sid, grant)

    def disconnect(self, sid: str) -> Transition | None:
        """Forget a session; `None` when it is not known (any more)."""
        session = self._sessions.get(sid)
        return self._commit(sid, offices.disconnect(session)) if session else None

    def join(self, sid: str, request: EnterOfficeReq) -> Transition:
        session = self.session(sid)
        office = self._offices.get(request["office_id"])
        agent = office.agent if office else None
        holder = office.holder(request["role"], request["name"]) if office else None
        transition = offices.join(session, request, seat=agent, holder=holder.sid if holder else None)
        return self._commit(sid, transition)

    def leave(self, sid: str, request: LeaveOfficeReq) -> Transition:
        return self._commit(sid, offices.leave(self.session(sid), request))

    def session(self, sid: str) -> Session:
        try:
            return self._sessions[sid]
        except KeyError:
            raise NotInRoomError("this session has ended") from None

    def route(self, sid: str, event: Event, computer: str) -> Member:
        session = self.session(sid)
        office = self._offices.get(session.member.office_id) if session.member else None
        return offices.route(session, event, computer, office.computers.get(computer) if office else None)

    def members(self, office_id: str) -> Sequence[Member]:
        return tuple(self._offices.get(office_id, ()))

    def counts(self) -> Counts:
        agents = sum(office.agent is not None for office in self._offices.values())
        members = agents + sum(len(office.computers) for office in self._offices.values())
        return Counts(len(self._sessions), agents, members - agents, len(self._offices))

    def _commit(self, sid: str, transition: Transition) -> Transition:
        if transition.before:
            self._remove(transition.before)
        if transition.after is None:
            del self._sessions[sid]
        else:
            self._sessions[sid] = transition.after
            if transition.after.member:
                self._add(transition.after.member)
        return transition

    def _add(self, member: Member) -> None:
        office = self._offices.setdefault(member.office_id, _Office())
        if member.role == "agent":
            office.agent = member
        else:
            office.computers[member.name] = member

    def _remove(self, member: Member) -> None:
        office = self._offices[member.office_id]
        if member.role == "agent":
            office.agent = None
        else:
            del office.computers[member.name]
        if office.agent is None and not office.computers:
            del self._offices[member.office_id]


class LocalRegistry:
    """The in-memory registry behind the async interface."""

    def __init__(self, memory: MemoryRegistry | None = None) -> None:
        self._memory = memory or MemoryRegistry()

    async def connect(self, sid: str, grant: Grant) -> None:
        self._memory.connect(sid, grant)

    async def disconnect(self, sid: str) -> Transition | None:
        return self._memory.disconnect(sid)

    async def join(self, sid: str, request: EnterOfficeReq) -> Transition:
        return self._memory.join(sid, request)

    async def leave(self, sid: str, request: LeaveOfficeReq) -> Transition:
        return self._memory.leave(sid, request)

    async def session(self, sid: str) -> Session:
        return self._memory.session(sid)

    async def route(self, sid: str, event: Event, computer: str) -> Member:
        return self._memory.route(sid, event, computer)

    async def members(self, office_id: str) -> Sequence[Member]:
        return self._memory.members(office_id)

    def counts(self) -> Counts:
        return self._memory.counts()
