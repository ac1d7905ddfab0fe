"""The lease by which a server process is known to the others: taken, renewed, and taken anew after it has ended.

The lease is checked whenever something is done, not by a timer. So a process that was stopped does nothing in its old
name when it wakes up. A lease that has ended does not come back: the process begins anew, under another name.
"""

import asyncio
import hashlib
import logging
import os
import secrets
import socket
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final, Self

import msgspec

from a2c_smcp import __version__
from a2c_smcp.errors import InternalError
from a2c_smcp.server.cluster import clock, tuning
from a2c_smcp.server.cluster.bucket import Bucket, WrongRevisionError
from a2c_smcp.server.cluster.connection import OUT_OF_REACH, NatsConnection, end_tasks
from a2c_smcp.server.cluster.keys import ProcessInfo, disagreement, encode_lease, lease_key
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.cluster.replica import Replica
from a2c_smcp.server.cluster.watcher import ReplicaWatcher
from a2c_smcp.server.offices import MemberChange

__all__ = ["Lease", "Tenure"]

logger = logging.getLogger(__name__)

#: This happens after a power cut, if no other NATS server has a copy: revisions that are known here are given again.
_SET_BACK: Final = "NATS has lost what was written last"
_NO_LEASE: Final = "NATS has not given this process a lease yet"


class Lease:
    """The right of a process to act for its members, for some seconds after each renewal. Pure.

    NATS counts these seconds from when it heard of the renewal, this process from before it asked. So the lease ends
    here first.
    """

    __slots__ = ("_until", "process", "renewed_at", "revision", "seconds")

    def __init__(self, process: str, seconds: float, asked_at: float, revision: int) -> None:
        self.process = process
        self.seconds = seconds
        self.renew(asked_at, revision)

    def renew(self, asked_at: float, revision: int) -> None:
        """NATS has taken a renewal that was sent at this moment."""
        self.revision = revision
        self.renewed_at = asked_at
        # The last tenth is not used. Clocks differ, so the lease may have ended at NATS by then.
        self._until = asked_at + self.seconds * 0.9

    def is_over(self, now: float) -> bool:
        return now >= self._until


class Tenure(ABC):
    """`async with` takes a lease as soon as NATS lets it, renews it, and takes another one when it has ended.

    A subclass is told by `began`, `changed`, `ended` and `upkeep` what happens.
    """

    def __init__(self, connection: NatsConnection) -> None:
        self._options = connection.options
        self._connection = connection
        self._bucket = Bucket(connection)
        self._watcher = ReplicaWatcher(self._bucket, self._on_changes)
        self._lease: Lease | None = None
        self._info = _about_us(connection.options)
        self._elders: Collection[str] = ()
        """The processes that were here before this one."""
        self._trouble: str | None = _NO_LEASE
        self._over = asyncio.Event()
        self._released = False
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.release()
        assert self._running is not None
        await end_tasks([self._running])
        await self._watcher.close()

    @abstractmethod
    async def began(self, process: str) -> None:
        """The lease of this name is about to be taken."""

    @abstractmethod
    def changed(self, changes: Sequence[MemberChange]) -> None:
        """The replica shows these changes, while there is a lease."""

    @abstractmethod
    def ended(self, process: str) -> None:
        """The lease has ended: nobody is a member through this process any more."""

    @abstractmethod
    async def upkeep(self) -> None:
        """Called about as often as the lease is renewed."""

    @property
    def process(self) -> str:
        """The name of the process while it has a lease."""
        return self._lease.process if self._lease is not None else ""

    @property
    def processes(self) -> Collection[str]:
        """The names of all processes."""
        return self.replica.processes

    @property
    def replica(self) -> Replica:
        return self._watcher.replica

    @property
    def revision(self) -> int:
        """The revision up to which `changed` was told everything."""
        return self._watcher.revision

    async def reached(self, revision: int) -> None:
        """Wait until a revision is known here. Raises `InternalError` after some seconds."""
        await self._watcher.reached(revision)

    @property
    def lease_age(self) -> float:
        """Seconds since the last renewal; not a number without a lease."""
        return clock.now() - self._lease.renewed_at if self._lease is not None else float("nan")

    def unavailable(self) -> str | None:
        """Why nobody could join now; `None` if joins work."""
        if self._lease is not None and not self._connection.is_connected:
            return OUT_OF_REACH
        return self._trouble or self._disagreement()

    def _disagreement(self) -> str | None:
        """Why this process and one that was here before it cannot work together. The newer one is not ready, so that
        one wrong setting does not stop all of them.
        """
        about = self.replica.about
        found = (disagreement(self._info, about[each], self._options.prefix) for each in self._elders if each in about)
        return next(filter(None, found), None)

    def has_others(self) -> bool:
        """Whether another process could take the clients of this one."""
        about = self.replica.about
        return any(info is None or not info.draining for process, info in about.items() if process != self.process)

    async def retire(self) -> None:
        """Say to the other processes that this one is about to end, and takes no clients."""
        self._info = msgspec.structs.replace(self._info, draining=True)
        if self._lease is not None and self._connection.is_connected:
            await self._renew(self._lease)

    def check(self) -> None:
        """Raise `InternalError` unless the lease is valid at this moment."""
        if self._lease is not None and self._lease.is_over(clock.now()):
            self._end("NATS was out of reach for longer than the lease of this process")
        if self._lease is None:
            raise InternalError(self._trouble or _NO_LEASE)

    def check_writable(self) -> None:
        """Raise `InternalError` when the membership cannot be changed now."""
        self.check()
        if (reason := self.unavailable()) is not None:
            raise InternalError(reason)

    async def release(self) -> None:
        """Give up the lease, and with it every membership. This process does not begin again."""
        self._released = True
        lease, self._lease = self._lease, None
        self._trouble = "the server is shutting down"
        self._over.set()
        if lease is not None:
            with suppress(InternalError):
                await self._drop(lease)

    async def _drop(self, lease: Lease) -> None:
        key = lease_key(lease.process)
        while lease.revision:
            try:
                await self._bucket.delete(key, lease.revision)
                return
            except WrongRevisionError:
                # A renewal was under way.
                entry = await self._bucket.read(key)
                lease.revision = entry.revision if entry.value is not None else 0

    # --- the life of a lease

    def _end(self, reason: str) -> None:
        lease, self._lease = self._lease, None
        assert lease is not None
        logger.error("%s; closing all connections", reason)
        self._trouble = reason
        self._over.set()
        self.ended(lease.process)

    def _on_changes(self, changes: Sequence[MemberChange]) -> None:
        if self._lease is None:
            return  # nobody is a member through this process, so there is nobody to tell
        if self._lease.process not in self.replica.processes:
            self._end("NATS ended the lease of this process")
        elif changes:
            self.changed(changes)

    async def _run(self) -> None:
        while not self._released:
            await self._connection.connected()
            try:
                await self._begin()
            except InternalError as error:
                self._note(error.message)
            except Exception:
                # A listener is not our code. Without another attempt this process would stay out for ever.
                logger.exception("failed to join the other processes")
            else:
                await self._stay()
            await asyncio.sleep(tuning.TIMES.retry)

    async def _begin(self) -> None:
        await self._watcher.close()
        self._watcher = ReplicaWatcher(self._bucket, self._on_changes)
        await self._bucket.open()
        await self._watcher.look()
        process = secrets.token_urlsafe(16)
        self._elders = frozenset(self.replica.processes)
        await self.began(process)
        asked_at = clock.now()
        revision = await self._bucket.write(lease_key(process), encode_lease(self._info), 0, self._options.lease)
        await self.reached(revision)
        if not self._released:
            self._over.clear()
            self._lease = Lease(process, self._options.lease, asked_at, revision)
            self._note(None)

    async def _stay(self) -> None:
        tasks = [asyncio.create_task(work) for work in (self._watcher.run(), self._renewals(), self._upkeep())]
        try:
            await self._over.wait()
        finally:
            await end_tasks(tasks)

    async def _upkeep(self) -> None:
        while True:
            await asyncio.sleep(self._options.renewal)
            try:
                await self.upkeep()
            except InternalError as error:
                logger.info("claims that nobody wants stay in the bucket for now: %s", error)

    async def _renewals(self) -> None:
        was_connected = True
        while True:
            await asyncio.sleep(
                min(self._options.renewal, tuning.TIMES.retry) if self._trouble else self._options.renewal
            )
            with suppress(InternalError):
                self.check()
            if (lease := self._lease) is None:
                return
            is_connected = self._connection.is_connected
            # If the watch does not show what this process wrote itself, it has stopped.
            behind = self.revision < lease.revision and self.lease_age >= self._options.renewal
            if behind or (is_connected and not was_connected):
                self._watcher.expire()
            was_connected = is_connected
            await self._renew(lease)

    async def _renew(self, lease: Lease) -> None:
        asked_at, known = clock.now(), self.revision
        key = lease_key(lease.process)
        try:
            revision = await self._bucket.write(key, encode_lease(self._info), lease.revision, self._options.lease)
        except WrongRevisionError:
            await self._look_after(lease, key)
            return
        except InternalError as error:
            self._note(error.message)
            return
        if self._lease is not lease:
            return  # it ended before the answer came
        lease.renew(asked_at, revision)
        self._note(None)
        if revision <= known:
            self._end(_SET_BACK)

    async def _look_after(self, lease: Lease, key: str) -> None:
        """A renewal was refused. Either the lease has ended, or the answer to an earlier renewal was lost."""
        with suppress(InternalError):
            entry = await self._bucket.read(key)
            if self._lease is not lease:
                return
            if entry.value is None:
                self._end("NATS ended the lease of this process")
            elif entry.revision < lease.revision:
                self._end(_SET_BACK)
            else:
                lease.revision = entry.revision

    def _note(self, trouble: str | None) -> None:
        if trouble != self._trouble and not self._released:
            logger.log(logging.INFO if trouble is None else logging.WARNING, "membership: %s", trouble or "in order")
            self._trouble = trouble


def _about_us(options: ClusterOptions) -> ProcessInfo:
    """What the other processes, and people who look at the bucket, are told about this process."""
    keys = tuple(hashlib.sha256(b"a2c cluster key " + key).hexdigest()[:16] for key in options.keys)
    return ProcessInfo(
        socket.gethostname(), os.getpid(), __version__, keys=keys, accepts_unsigned=options.accept_unsigned
    )
