"""Membership that several processes share: claims in a bucket of NATS, and the replica that is read.

A claim is written by comparing revisions, so of many that want a name one gets it. Whether a claim counts is decided by
the lease of its process: see `tenure`.
"""

import asyncio
import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from a2c_smcp.errors import InternalError, NameTakenError, NotInRoomError, RoomFullError
from a2c_smcp.server import offices
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bucket import Bucket, WrongRevisionError
from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.keys import claim_key, claim_keys, encode_claim
from a2c_smcp.server.cluster.tenure import Tenure
from a2c_smcp.server.offices import Grant, Member, MemberChange, Session, Transition
from a2c_smcp.server.registry import Counts, RegistryListener
from a2c_smcp.smcp import EnterOfficeReq, Event, LeaveOfficeReq
from a2c_smcp.utils.backoff import backoff
from a2c_smcp.utils.limited_log import LimitedLog

__all__ = ["ClusterRegistry"]

logger = logging.getLogger(__name__)

#: How often a join looks again when others change the same key meanwhile, and the first and the longest pause before
#: that, in seconds. While NATS elects a leader, it refuses changes for the sake of one that is then lost.
_ATTEMPTS: Final = 20
_PAUSE: Final = (0.01, 0.5)


class _Deaf:
    """The listener before there is one."""

    async def began(self, process: str) -> None:
        pass

    def changed(self, changes: Sequence[MemberChange]) -> None:
        pass

    def ended(self, process: str) -> None:
        pass

    def lost(self, sid: str) -> None:
        pass


class ClusterRegistry:
    """A `Registry`. `async with ClusterRegistry(connection)` joins the other processes as soon as NATS lets it, and
    again after every time that it could not renew its lease. Set the listener before that.
    """

    def __init__(self, connection: NatsConnection) -> None:
        self._bucket = Bucket(connection)
        self._tenure = Tenure(connection, self._bucket, self)
        self._listener: RegistryListener = _Deaf()
        self._sessions: dict[str, Session] = {}
        self._changing: set[str] = set()
        """Sessions whose join or leave is under way."""
        self._cut: set[str] = set()
        """Sessions whose membership was lost; their connections are being closed."""
        self._left_over: set[Member] = set()
        """Members by claims of ours that nobody wants."""
        self._turns = asyncio.Semaphore(tuning.BOUNDS.changes)
        self._log = LimitedLog(logger)

    async def __aenter__(self) -> Self:
        await self._tenure.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._tenure.__aexit__(kind, error, traceback)

    async def release(self) -> None:
        """Give up every membership at once, for good: the process is about to end."""
        await self._tenure.release()

    def listen(self, listener: RegistryListener) -> None:
        self._listener = listener

    # --- what is known here

    @property
    def process(self) -> str:
        return self._tenure.process

    @property
    def processes(self) -> Collection[str]:
        return self._tenure.replica.processes

    @property
    def revision(self) -> int:
        return self._tenure.revision

    async def reached(self, revision: int) -> None:
        await self._tenure.reached(revision)

    def holders(self, office_id: str) -> Collection[str]:
        return self._tenure.replica.directory.processes(office_id)

    def counts(self) -> Counts:
        members = [session.member for session in self._sessions.values() if session.member]
        agents = sum(member.role == "agent" for member in members)
        offices_here = {member.office_id for member in members}
        return Counts(len(self._sessions), agents, len(members) - agents, len(offices_here))

    @property
    def lease_age(self) -> float:
        """Seconds since the last renewal; not a number without a lease."""
        return self._tenure.age

    def check(self) -> None:
        self._tenure.check()

    def unavailable(self) -> str | None:
        return self._tenure.trouble

    # --- sessions

    async def connect(self, sid: str, grant: Grant) -> None:
        self._sessions[sid] = Session(sid, grant)

    async def disconnect(self, sid: str) -> Transition | None:
        self._cut.discard(sid)
        if (session := self._sessions.pop(sid, None)) is None:
            return None
        if session.member is not None and session.member.process == self.process:
            await self._give_up(session.member)
        return _bare(offices.disconnect(session))

    async def session(self, sid: str) -> Session:
        self.check()
        return self._session(sid)

    async def route(self, sid: str, event: Event, computer: str) -> Member:
        self.check()
        session = self._session(sid)
        directory = self._tenure.replica.directory
        target = directory.computer(session.member.office_id, computer) if session.member else None
        return offices.route(session, event, computer, target)

    async def members(self, office_id: str) -> Sequence[Member]:
        self.check()
        return self._tenure.replica.directory.members(office_id)

    def _session(self, sid: str) -> Session:
        if sid in self._cut:
            raise InternalError("NATS was away, or this membership was lost there; connect again")
        try:
            return self._sessions[sid]
        except KeyError:
            raise NotInRoomError("this session has ended") from None

    # --- joining and leaving

    async def join(self, sid: str, request: EnterOfficeReq) -> Transition:
        self._check_writable()
        with self._change_of(sid) as session:
            transition, revision = await self._claim(session, request)
            if revision is not None:
                self._keep(sid, transition)
                # The office is told, and the session is in its room, when the replica shows it.
                await self._tenure.reached(revision)
                self.check()
                self._session(sid)  # it was not cut off meanwhile
                if transition.before is not None and claim_key(transition.before) != _key_of(transition):
                    await self._give_up(transition.before)
        return _bare(transition)

    async def leave(self, sid: str, request: LeaveOfficeReq) -> Transition:
        self._check_writable()
        with self._change_of(sid) as session:
            transition = offices.leave(session, request)
            assert session.member is not None
            revision = await self._delete(session.member)
            self._keep(sid, transition)
            with suppress(InternalError):  # it has left; others hear of it later
                await self._tenure.reached(revision)
        return _bare(transition)

    def _check_writable(self) -> None:
        self.check()
        if (reason := self.unavailable()) is not None:
            raise InternalError(reason)

    @contextmanager
    def _change_of(self, sid: str) -> Iterator[Session]:
        session = self._session(sid)
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

    async def _claim(self, session: Session, request: EnterOfficeReq) -> tuple[Transition, int | None]:
        """Decide about a join, and write the claim; without a revision there was nothing to write."""
        key = claim_key(Member(session.sid, request["role"], request["name"], request["office_id"]))
        known: int | None = None
        for attempt in range(_ATTEMPTS):
            if attempt > 1:
                await asyncio.sleep(backoff(attempt - 1, *_PAUSE))
            async with self._turns:
                self._check_writable()
                shown = self._tenure.replica.revision_of(key)
                try:
                    transition, member = self._decide(session, request)
                except (RoomFullError, NameTakenError):
                    # Perhaps it is free already, and this process has not heard of it.
                    if (known := await self._look_at(key)) == shown:
                        raise
                    continue
                if member == session.member:
                    return transition, None
                try:
                    expected = shown if known is None else known
                    return transition, await self._bucket.write(key, encode_claim(member), expected)
                except WrongRevisionError:
                    known = await self._look_at(key)
        raise InternalError("NATS refuses the change, or too many want the same name at once; try again")

    def _decide(self, session: Session, request: EnterOfficeReq) -> tuple[Transition, Member]:
        directory, office_id = self._tenure.replica.directory, request["office_id"]
        transition = offices.join(
            session,
            request,
            seat=directory.seat(office_id),
            holder=directory.holder(office_id, request["role"], request["name"]),
            process=self.process,
        )
        assert transition.after is not None
        assert transition.after.member is not None
        return transition, transition.after.member

    async def _look_at(self, key: str) -> int:
        """The revision that a key has in the bucket, once the replica knows it."""
        entry = await self._bucket.read(key)
        await self._tenure.reached(entry.revision)
        return entry.revision

    async def _delete(self, member: Member) -> int:
        """Delete a claim, unless another has taken its key; returns a revision at which it has gone."""
        async with self._turns:
            replica = self._tenure.replica
            for key in claim_keys(member):
                if replica.claimed(key) == member:
                    with suppress(WrongRevisionError):
                        return await self._bucket.delete(key, replica.revision_of(key))
        return self._tenure.revision

    async def _give_up(self, member: Member) -> None:
        """Delete a claim of ours, now or later."""
        try:
            await self._delete(member)
        except InternalError as error:
            self._log.warn("names", "a name stays taken until NATS takes the change: %s", error)
            self._left_over.add(member)

    # --- what becomes of this process, and what the bucket says

    async def began(self, process: str) -> None:
        await self._listener.began(process)

    def ended(self, process: str) -> None:
        for session in list(self._sessions.values()):
            self._cut_off(session)
        self._left_over.clear()
        self._listener.ended(process)

    def changed(self, changes: Sequence[MemberChange]) -> None:
        self._listener.changed(changes)
        for change in changes:
            member = change.after or change.before
            if member is not None and member.process == self.process:
                self._compare(member.sid)

    async def upkeep(self) -> None:
        """Delete claims that nobody wants: what was left over here, and, in one of the processes, what those that have
        gone left behind.
        """
        replica, mine = self._tenure.replica, self.process
        left_over = {member for member in self._left_over if member.sid not in self._changing}
        unwanted = [
            member
            for member in left_over.union(replica.left_behind(mine))
            if member.sid not in self._changing and member != self._place_of(member.sid)
        ]
        abandoned = replica.abandoned()[: tuning.BOUNDS.tidied] if mine == min(replica.processes, default=mine) else []
        await asyncio.gather(*map(self._delete, (*unwanted, *abandoned)))
        self._left_over -= left_over

    def _place_of(self, sid: str) -> Member | None:
        session = self._sessions.get(sid)
        return session.member if session else None

    def _compare(self, sid: str) -> None:
        """A session must be where the replica shows it, or it is told to come back. An answer of NATS may be lost, and
        what was asked for happen all the same.
        """
        if not self.process or sid in self._changing:
            return
        shown, session = self._tenure.replica.member(sid), self._sessions.get(sid)
        if shown == self._place_of(sid):
            return
        if shown is not None:
            self._left_over.add(shown)
        if session is not None and sid not in self._cut:
            self._log.warn("members", "the membership of session %s was lost; closing its connection", sid)
            self._cut_off(session)
            self._listener.lost(sid)

    def _cut_off(self, session: Session) -> None:
        self._sessions[session.sid] = replace(session, member=None)
        self._cut.add(session.sid)


def _bare(transition: Transition) -> Transition:
    """A change that the listener was told of."""
    return replace(transition, rooms=(), notices=())


def _key_of(transition: Transition) -> str | None:
    member = transition.after.member if transition.after else None
    return claim_key(member) if member else None
