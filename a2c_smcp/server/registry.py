"""Where membership is kept. In this process here; the asyncio shell goes through an async interface so that
membership can also be kept for several processes.

A registry looks up what a decision needs, decides, and commits in one atomic step; the decisions are in `offices`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from a2c_smcp.errors import NotInRoomError
from a2c_smcp.server import offices
from a2c_smcp.server.directory import Directory
from a2c_smcp.server.offices import Grant, Member, MemberChange, Session, Transition
from a2c_smcp.smcp import EnterOfficeReq, Event, LeaveOfficeReq

__all__ = ["Counts", "LocalRegistry", "MemoryRegistry", "Registry", "RegistryListener"]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many sessions, members and offices this process has, for the metrics."""

    sessions: int
    agents: int
    computers: int
    offices: int


class RegistryListener(Protocol):
    """Is told by a registry that several processes share what it did not ask for itself. None of these may raise."""

    async def began(self, process: str) -> None:
        """This process is about to be known to the others under this name."""

    def changed(self, changes: Sequence[MemberChange]) -> None:
        """Members of any process came, went or moved. All processes are told the same, in the same order."""

    def ended(self, process: str) -> None:
        """This process is not known under this name any more, and nobody is a member through it: all its connections
        must be closed at once.
        """

    def lost(self, sid: str) -> None:
        """A session of this process is not a member any more, and did not ask for it: close its connection."""


class Registry(Protocol):
    """What the asyncio shell asks of membership. Each method is atomic; `join` and `leave` raise coded refusals.

    What follows from a change is in the `Transition`, to be performed by the caller, or is told to the listener before
    the method returns; never both.
    """

    @property
    def process(self) -> str:
        """The name by which the members say that this process holds them."""

    @property
    def processes(self) -> Collection[str]:
        """The names of all processes."""

    @property
    def revision(self) -> int:
        """How much of the membership's history is known here."""

    def listen(self, listener: RegistryListener) -> None: ...
    def check(self) -> None:
        """Raise `InternalError` when this process may not act for its members any more."""

    def unavailable(self) -> str | None:
        """Why nobody could join now."""

    async def reached(self, revision: int) -> None:
        """Wait until that much is known here; raises `InternalError` when it takes too long."""

    async def connect(self, sid: str, grant: Grant) -> None: ...
    async def disconnect(self, sid: str) -> Transition | None: ...
    async def join(self, sid: str, request: EnterOfficeReq) -> Transition: ...
    async def leave(self, sid: str, request: LeaveOfficeReq) -> Transition: ...
    async def session(self, sid: str) -> Session: ...
    async def route(self, sid: str, event: Event, computer: str) -> Member: ...
    async def members(self, office_id: str) -> Sequence[Member]: ...
    def holders(self, office_id: str) -> Collection[str]:
        """The processes that hold members of an office."""

    def counts(self) -> Counts: ...
    async def release(self) -> None:
        """Give up every membership of this process at once: it is about to end."""


class MemoryRegistry:
    """Membership in plain dictionaries. Not thread-safe: the threaded shell holds it under its lock."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._directory = Directory()

    def connect(self, sid: str, grant: Grant) -> None:
        self._sessions[sid] = Session(sid, grant)

    def disconnect(self, sid: str) -> Transition | None:
        """Forget a session; `None` when it is not known (any more)."""
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

    def counts(self) -> Counts:
        directory = self._directory
        return Counts(len(self._sessions), directory.count("agent"), directory.count("computer"), len(directory))

    def _commit(self, sid: str, transition: Transition) -> Transition:
        if transition.before:
            self._directory.remove(transition.before)
        if transition.after is None:
            del self._sessions[sid]
        else:
            self._sessions[sid] = transition.after
            if transition.after.member:
                self._directory.add(transition.after.member)
        return transition


class LocalRegistry:
    """The in-memory registry behind the async interface."""

    def __init__(self) -> None:
        self._memory = MemoryRegistry()

    @property
    def process(self) -> str:
        return ""

    @property
    def processes(self) -> Collection[str]:
        return ("",)

    @property
    def revision(self) -> int:
        return 0

    def listen(self, listener: RegistryListener) -> None:
        """Nothing happens here that was not asked for."""

    def check(self) -> None:
        """This process is the only one."""

    def unavailable(self) -> str | None:
        return None

    async def reached(self, revision: int) -> None:
        """Everything is known here at once."""

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

    def holders(self, office_id: str) -> Collection[str]:
        return ("",)

    def counts(self) -> Counts:
        return self._memory.counts()

    async def release(self) -> None:
        """The members end with this process."""
