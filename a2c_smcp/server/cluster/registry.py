"""Membership that several processes share: the sessions of this process, and the replica of all members.

Whether a claim counts is decided by the lease of its process: see `tenure`.
"""

import asyncio
import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Protocol

from a2c_smcp.errors import InternalError, NotInRoomError, SMCPError
from a2c_smcp.server import offices
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.claims import Claims
from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.keys import claim_key
from a2c_smcp.server.cluster.seal import MemberSeal
from a2c_smcp.server.cluster.tenure import Tenure
from a2c_smcp.server.offices import Grant, Member, MemberChange, Session, Transition
from a2c_smcp.server.registry import Counts
from a2c_smcp.smcp import EnterOfficeReq, Event, LeaveOfficeReq
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.limited_log import LimitedLog

__all__ = ["ClusterRegistry", "RegistryListener"]

logger = logging.getLogger(__name__)


class RegistryListener(Protocol):
    """Hears of changes that its own process did not ask the registry for. None of these methods may raise."""

    async def began(self, process: str) -> None:
        """The other processes are about to know this process by this name."""

    def changed(self, changes: Sequence[MemberChange]) -> None:
        """Members of any process came, went or moved. All processes hear the same changes in the same order."""

    def ended(self, process: str) -> None:
        """This process is not known by this name any more, and nobody is a member through it. All its connections
        must be closed at once.
        """

    def lost(self, sid: str) -> None:
        """A session of this process has lost its membership, and did not ask for it. Close its connection."""


class ClusterRegistry(Tenure):
    """A `Registry`. `async with ClusterRegistry(connection)` joins the other processes as soon as NATS lets it, and
    again whenever its lease has ended. Call `listen` before that.
    """

    _listener: RegistryListener

    def __init__(self, connection: NatsConnection) -> None:
        super().__init__(connection)
        self._seal = MemberSeal(connection.options.keys)
        self._claims = Claims(self._bucket, self, self._seal)
        self._sessions: dict[str, Session] = {}
        self._changing: set[str] = set()
        """Sessions whose join or leave is under way."""
        self._cut: set[str] = set()
        """Sessions whose membership was lost; their connections are being closed."""
        self._regranted: set[str] = set()
        """Sessions whose keys may allow something else now than their claims say."""
        self._superseded: BoundedDict[str, Member] = BoundedDict(tuning.BOUNDS.superseded)
        """Sessions of other processes whose place newer sessions have. What was on its way is still served."""
        self._log = LimitedLog(logger)

    def listen(self, listener: RegistryListener) -> None:
        self._listener = listener

    def holders(self, office_id: str) -> Collection[str]:
        """The processes that hold members of an office."""
        return self.replica.directory.processes(office_id)

    def counts(self) -> Counts:
        members = [session.place for session in self._sessions.values() if session.place]
        agents = sum(member.role == "agent" for member in members)
        offices_here = {member.office_id for member in members}
        return Counts(len(self._sessions), agents, len(members) - agents, len(offices_here))

    # --- sessions

    def connect(self, sid: str, grant: Grant) -> None:
        self._sessions[sid] = Session(sid, grant)

    def regrant(self, sid: str, grant: Grant) -> None:
        """A session may do this from now on. It stays where it is. `upkeep` tells the other processes of its key."""
        if (session := self._sessions.get(sid)) is not None:
            self._sessions[sid] = replace(session, grant=grant)
            if offices.regranted(session, grant).member != session.member:
                self._regranted.add(sid)

    async def disconnect(self, sid: str) -> Transition | None:
        self._cut.discard(sid)
        if (session := self._sessions.pop(sid, None)) is None:
            return None
        if session.place is not None and session.place.process == self.process:
            await self._claims.give_up(session.place)
        return _bare(offices.disconnect(session))

    def session(self, sid: str) -> Session:
        self.check()
        if sid in self._cut:
            raise InternalError("NATS was away, or this membership was lost there; connect again")
        try:
            return self._sessions[sid]
        except KeyError:
            raise NotInRoomError("this session has ended") from None

    def route(self, sid: str, event: Event, computer: str) -> Member:
        session = self.session(sid)
        target = self.replica.directory.computer(session.member.office_id, computer) if session.member else None
        return offices.route(session, event, computer, target)

    def asker(self, caller: str) -> Member:
        """The member behind a session that asks. What other processes say of it does not count: this process's own copy
        of the membership does.
        """
        process, in_another, sid = caller.partition("/")
        if not in_another:
            session = self.session(caller)
            return offices.asker(offices.regranted(session, session.grant).member)
        member = self.replica.member(sid) or self._superseded.get(sid)
        return offices.asker(self._seal.believed(member) if member and member.process == process else None)

    def members(self, office_id: str) -> Sequence[Member]:
        self.check()
        return self.replica.directory.members(office_id)

    def seat(self, office_id: str) -> Member | None:
        return self.replica.directory.seat(office_id)

    # --- joining and leaving

    async def join(self, sid: str, request: EnterOfficeReq) -> Transition:
        with self._change_of(sid) as session:
            transition, revision = await self._claims.claim(session, request)
            if revision is not None:
                self._keep(sid, transition)
                # When the replica shows the claim, the office hears of it, and the session is in its room.
                await self.reached(revision)
                self.session(sid)  # raises if it was cut off meanwhile
                if transition.before is not None and claim_key(transition.before) != _key_of(transition):
                    await self._claims.give_up(transition.before)
        return _bare(transition)

    async def leave(self, sid: str, request: LeaveOfficeReq) -> Transition:
        with self._change_of(sid) as session:
            transition = offices.leave(session, request)
            assert session.member is not None
            revision = await self._claims.delete(session.member)
            self._keep(sid, transition)
            with suppress(InternalError):  # it has left; the others hear of it later
                await self.reached(revision)
        return _bare(transition)

    @contextmanager
    def _change_of(self, sid: str) -> Iterator[Session]:
        self.check_writable()
        session = self.session(sid)
        self._changing.add(sid)
        try:
            yield session
        finally:
            self._changing.discard(sid)
            self._compare(sid)

    def _keep(self, sid: str, transition: Transition) -> None:
        assert transition.after is not None
        if sid in self._sessions and sid not in self._cut:
            self._sessions[sid] = transition.after

    # --- what becomes of this process, and what the bucket says

    async def began(self, process: str) -> None:
        await self._listener.began(process)

    def ended(self, process: str) -> None:
        for session in list(self._sessions.values()):
            self._cut_off(session)
        self._claims.left_over.clear()
        self._listener.ended(process)

    def changed(self, changes: Sequence[MemberChange]) -> None:
        for change in changes:
            if change.before is not None and change.after is not None and change.before.sid != change.after.sid:
                self._supersede(change.before)
        self._listener.changed(changes)
        for change in changes:
            for member in (change.before, change.after):
                if member is not None and member.process == self.process:
                    self._compare(member.sid)

    def _supersede(self, member: Member) -> None:
        """A newer session of the same client, in any process, has this place now."""
        session = self._sessions.get(member.sid)
        if session is not None and session.member == member:
            self._sessions[member.sid] = replace(session, superseded=True)
        elif session is None:
            self._superseded.put(member.sid, member)

    async def upkeep(self) -> None:
        """Delete claims that nobody wants: those that are left over in this process. One of the processes also
        deletes the claims of processes that have gone.
        """
        replica, mine = self.replica, self.process
        left_over = {member for member in self._claims.left_over if member.sid not in self._changing}
        unwanted = [
            member
            for member in left_over.union(replica.left_behind(mine))
            if member.sid not in self._changing and member != self._place_of(member.sid)
        ]
        abandoned = replica.abandoned()[: tuning.BOUNDS.tidied] if mine == min(replica.processes, default=mine) else []
        await asyncio.gather(*map(self._claims.delete, (*unwanted, *abandoned)))
        self._claims.left_over -= left_over
        regranted, self._regranted = self._regranted, set()
        await asyncio.gather(*map(self._claim_again, regranted))

    async def _claim_again(self, sid: str) -> None:
        """Say in the claim of a session what its key allows now."""
        if (session := self._sessions.get(sid)) is None or session.superseded:
            return
        if sid in self._changing:
            self._regranted.add(sid)
            return
        if (after := offices.regranted(session, session.grant)).member == session.member or after.member is None:
            return
        try:
            with self._change_of(sid):
                revision = await self._claims.write_again(after.member)
                if revision is None:
                    self._regranted.add(sid)
                elif self._sessions.get(sid) == session:
                    self._sessions[sid] = after
                    await self.reached(revision)
        except SMCPError as error:
            self._regranted.add(sid)
            self._log.warn("keys", "the claim of session %s is as old as its key was: %s", sid, error)

    def _place_of(self, sid: str) -> Member | None:
        session = self._sessions.get(sid)
        return session.place if session else None

    def _compare(self, sid: str) -> None:
        """Close a session whose place differs from what the replica shows. That happens when an answer of NATS was
        lost: NATS has made the change, and this process does not know it.
        """
        if not self.process or sid in self._changing:
            return
        shown, session = self.replica.member(sid), self._sessions.get(sid)
        if shown == self._place_of(sid):
            return
        if shown is not None:
            self._claims.left_over.add(shown)
        if session is not None and sid not in self._cut:
            self._log.warn("members", "the membership of session %s was lost; closing its connection", sid)
            self._cut_off(session)
            self._listener.lost(sid)

    def _cut_off(self, session: Session) -> None:
        self._sessions[session.sid] = replace(session, member=None)
        self._cut.add(session.sid)


def _bare(transition: Transition) -> Transition:
    """The transition without what follows from it: the listener has performed that."""
    return replace(transition, rooms=(), notices=(), taken=None)


def _key_of(transition: Transition) -> str | None:
    member = transition.after.member if transition.after else None
    return claim_key(member) if member else None
