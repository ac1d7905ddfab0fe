"""The claims of one server process in the bucket. A claim makes a session a member.

A claim is written by comparing revisions. So if several processes want a name at once, one of them gets it.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from a2c_smcp.errors import InternalError, NameTakenError, RoomFullError
from a2c_smcp.server import offices
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bucket import Bucket, WrongRevisionError
from a2c_smcp.server.cluster.keys import claim_key, claim_keys, encode_claim
from a2c_smcp.server.cluster.seal import MemberSeal
from a2c_smcp.server.offices import Member, Session, Transition
from a2c_smcp.smcp import EnterOfficeReq
from a2c_smcp.utils.backoff import backoff
from a2c_smcp.utils.limited_log import LimitedLog

if TYPE_CHECKING:
    from a2c_smcp.server.cluster.tenure import Tenure

__all__ = ["Claims"]

logger = logging.getLogger(__name__)


class Claims:
    """Writes and deletes claims while `tenure` has a lease."""

    def __init__(self, bucket: Bucket, tenure: "Tenure", seal: MemberSeal) -> None:
        self._bucket = bucket
        self._seal = seal
        self._tenure = tenure
        self._turns = asyncio.Semaphore(tuning.BOUNDS.changes)
        self._log = LimitedLog(logger)
        self.left_over: set[Member] = set()
        """Members whose claims nobody wants, and which could not be deleted yet."""

    async def claim(self, session: Session, request: EnterOfficeReq) -> tuple[Transition, int | None]:
        """Decide about a join, and write the claim. Returns its revision; `None` if there was nothing to write."""
        key = claim_key(Member(session.sid, request["role"], request["name"], request["office_id"]))
        known: int | None = None
        for attempt in range(tuning.BOUNDS.claim_attempts):
            if attempt > 1:
                await asyncio.sleep(backoff(attempt - 1, *tuning.TIMES.claim_pauses))
            async with self._turns:
                self._tenure.check_writable()
                shown = self._tenure.replica.revision_of(key)
                try:
                    transition, member = self._decide(session, request)
                except (RoomFullError, NameTakenError):
                    # The name may be free already, and this process has not heard of it yet.
                    if (known := await self._look_at(key)) == shown:
                        raise
                    continue
                if member == session.place:
                    return transition, None
                try:
                    expected = shown if known is None else known
                    return transition, await self._bucket.write(key, self._encoded(member), expected)
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
            process=self._tenure.process,
        )
        assert transition.after is not None
        assert transition.after.member is not None
        return transition, transition.after.member

    async def _look_at(self, key: str) -> int:
        """The revision that a key has in the bucket, once the replica knows it."""
        entry = await self._bucket.read(key)
        await self._tenure.reached(entry.revision)
        return entry.revision

    async def write_again(self, member: Member) -> int | None:
        """Write the claim of a member that this process has already. Returns its revision; `None` if it has changed."""
        async with self._turns:
            self._tenure.check_writable()
            key = claim_key(member)
            with suppress(WrongRevisionError):
                return await self._bucket.write(key, self._encoded(member), self._tenure.replica.revision_of(key))
        return None

    def _encoded(self, member: Member) -> bytes:
        return encode_claim(self._seal.signed(member))

    async def delete(self, member: Member) -> int:
        """Delete a member's claim, unless its key belongs to another member by now. Returns a revision at which the
        claim is gone.
        """
        async with self._turns:
            replica = self._tenure.replica
            for key in claim_keys(member):
                if replica.claimed(key) == member:
                    with suppress(WrongRevisionError):
                        return await self._bucket.delete(key, replica.revision_of(key))
        return self._tenure.revision

    async def give_up(self, member: Member) -> None:
        """Delete a claim of this process: now, or later if NATS cannot do it now."""
        try:
            await self.delete(member)
        except InternalError as error:
            self._log.warn("names", "a name stays taken until NATS takes the change: %s", error)
            self.left_over.add(member)
