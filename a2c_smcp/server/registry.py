"""Where membership is kept: the interface that the switchboard uses, and the registry of a process that is alone.

A registry looks up what a decision needs, decides, and commits in one atomic step; the decisions are in `offices`.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, TypeVar

from a2c_smcp.errors import NotInRoomError
from a2c_smcp.server import offices
from a2c_smcp.server.directory import Directory
from a2c_smcp.server.offices import Grant, Member, Session, Transition
from a2c_smcp.smcp import EnterOfficeReq, Event, LeaveOfficeReq

__all__ = ["Counts", "LocalRegistry", "MayWait", "MemoryRegistry", "Registry"]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many sessions, members and offices this process has, for the metrics."""

    sessions: int
    agents: int
    computers: int
    offices: int


T = TypeVar("T")
MayWait: TypeAlias = T | Awaitable[T]


class Registry(Protocol):
    """What the switchboard asks of membership. Each method is atomic; `join` and `leave` raise coded refusals.

    A method whose outcome `MayWait` returns an awaitable only if it has to wait.

    What follows from a change is in the `Transition`, and the caller performs it. A registry that several processes
    share tells its listener instead, before the method returns, and returns an empty `Transition`.
    """

    def unavailable(self) -> str | None:
        """Why nobody could join now; `None` if joins work."""

    def connect(self, sid: str, grant: Grant) -> None: ...
    def regrant(self, sid: str, grant: Grant) -> None:
        """A session may do this from now on. It stays where it is."""

    def disconnect(self, sid: str) -> MayWait[Transition | None]: ...
    def join(self, sid: str, request: EnterOfficeReq) -> MayWait[Transition]: ...
    def leave(self, sid: str, request: LeaveOfficeReq) -> MayWait[Transition]: ...
    def session(self, sid: str) -> Session: ...
    def route(self, sid: str, event: Event, computer: str) -> Member: ...
    def members(self, office_id: str) -> Sequence[Member]: ...
    def seat(self, office_id: str) -> Member | None:
        """The agent of an office."""

    def asker(self, caller: str) -> Member:
        """The member behind a session that asks, or behind `process/session` of another process. Raises
        `ForbiddenError` or `NotInRoomError` if this process knows none.
        """
        ...

    def counts(self) -> Counts: ...
    def has_others(self) -> bool:
        """Whether another process could take the clients of this one."""

    async def retire(self) -> None:
        """Say to the other processes that this one is about to end, and takes no clients."""

    async def release(self) -> None:
        """Give up every membership of this process at once, because it is about to end."""


class MemoryRegistry:
    """Membership in plain dictionaries."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._directory = Directory()

    def connect(self, sid: str, grant: Grant) -> None:
        self._sessions[sid] = Session(sid, grant)

    def regrant(self, sid: str, grant: Grant) -> None:
        """A session may do this from now on. It stays where it is."""
        if (session := self._sessions.get(sid)) is None:
            return
        after = self._sessions[sid] = offices.regranted(session, grant)
        if after.place != session.place and session.place and after.place:
            self._directory.remove(session.place)
            self._directory.add(after.place)

    def disconnect(self, sid: str) -> Transition | None:
        """Forget a session; returns `None` if it is unknown."""
        session = self._sessions.get(sid)
        return self._commit(sid, offices.disconnect(session)) if session else None

    def join(self, sid: str, request: EnterOfficeReq) -> Transition:
        session, office_id = self.session(sid), request["office_id"]
        holder = self._directory.holder(office_id, request["role"], request["name"])
        seat = self._directory.seat(office_id)
        transition = offices.join(session, request, seat=seat, holder=holder)
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
        target = self._directory.computer(session.member.office_id, computer) if session.member else None
        return offices.route(session, event, computer, target)

    def members(self, office_id: str) -> Sequence[Member]:
        return self._directory.members(office_id)

    def seat(self, office_id: str) -> Member | None:
        """The agent of an office."""
        return self._directory.seat(office_id)

    def asker(self, caller: str) -> Member:
        """The member behind a session that asks."""
        return offices.asker(self.session(caller).member)

    def counts(self) -> Counts:
        directory = self._directory
        return Counts(len(self._sessions), directory.count("agent"), directory.count("computer"), len(directory))

    def _commit(self, sid: str, transition: Transition) -> Transition:
        for member in (transition.before, transition.taken):
            if member is not None:
                self._directory.remove(member)
        if (taken := transition.taken) is not None:
            self._sessions[taken.sid] = replace(self._sessions[taken.sid], superseded=True)
        if transition.after is None:
            del self._sessions[sid]
        else:
            self._sessions[sid] = transition.after
            if transition.after.member:
                self._directory.add(transition.after.member)
        return transition


class LocalRegistry(MemoryRegistry):
    """The `Registry` of a process that is alone. Nothing in it waits."""

    def unavailable(self) -> str | None:
        return None

    def has_others(self) -> bool:
        return False

    async def retire(self) -> None:
        """Nobody else needs to know."""

    async def release(self) -> None:
        """The members end with this process."""
