"""Keeps a replica up to date with the bucket: a first look, then every change, and a new look when one is missing."""

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable, Sequence

from a2c_smcp.errors import InternalError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bucket import Bucket, BucketWatch
from a2c_smcp.server.cluster.keys import Entry
from a2c_smcp.server.cluster.replica import Replica
from a2c_smcp.server.offices import MemberChange

__all__ = ["ReplicaWatcher"]

logger = logging.getLogger(__name__)


class ReplicaWatcher:
    """Calls `on_changes` for each entry, with the list of its changes, which may be empty. After that, `revision` is
    that of the entry.
    """

    def __init__(self, bucket: Bucket, on_changes: Callable[[Sequence[MemberChange]], None]) -> None:
        self.replica = Replica()
        self.revision = 0
        self._bucket = bucket
        self._on_changes = on_changes
        self._watch: BucketWatch | None = None
        self._look: list[Entry] | None = None
        self._looked: asyncio.Future[None] | None = None
        self._stale = asyncio.Event()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    async def look(self) -> None:
        """Watch the bucket anew. Returns when the replica shows what the bucket had when the watch began."""
        await self._unwatch()
        self._stale.clear()
        self._look = []
        self._looked = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(tuning.TIMES.bucket_look):
                self._watch = await self._bucket.watch(self._take_safely, self.expire)
                await self._looked
        except TimeoutError:
            raise InternalError("NATS did not show the whole bucket in time") from None
        for key in self.replica.doubted():
            if (await self._bucket.read(key)).value is None:
                self._known(self.replica.drop(key))

    def expire(self) -> None:
        """Have `run` look anew, because the watch cannot be relied on."""
        self._stale.set()

    async def run(self) -> None:
        """Look anew whenever `expire` was called, until cancelled."""
        while True:
            await self._stale.wait()
            try:
                await self.look()
            except InternalError as error:
                logger.warning("the members of other processes may be out of date: %s", error)
                await asyncio.sleep(tuning.TIMES.retry)
                self.expire()

    async def close(self) -> None:
        for _, _, known in self._waiting:
            known.cancel()
        await self._unwatch()

    async def _unwatch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.close()

    async def reached(self, revision: int) -> None:
        """Wait until a revision is known here. Raises `InternalError` if nothing new is shown for some seconds, or if
        there is too much before it.
        """
        if self.revision >= revision:
            return
        now = asyncio.get_running_loop().time
        known: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (revision, next(self._numbers), known))
        give_up, shown = now() + tuning.TIMES.behind, -1
        while not known.done() and now() < give_up and self.revision != shown:
            shown = self.revision
            await asyncio.wait({known}, timeout=tuning.TIMES.revision)
        if known.done() and not known.cancelled():
            return
        known.cancel()
        raise InternalError("NATS did not show the change in time")

    def _take_safely(self, entry: Entry | None, pending: int) -> None:
        try:
            self._take(entry, pending)
        except Exception:
            # A listener is not our code. nats-py would only log the error and go on.
            logger.exception("failed to take a change of membership; looking at all of it anew")
            self.expire()

    def _take(self, entry: Entry | None, pending: int) -> None:
        if self._look is None:
            assert entry is not None
            self._known(self.replica.apply(entry))
            return
        if entry is not None:
            self._look.append(entry)
        newest = entry.revision if entry is not None else 0
        # A NATS server that is behind may show an older bucket than the replica. The rest follows.
        if pending == 0 and newest >= self.replica.revision:
            entries, self._look = self._look, None
            self._known(self.replica.resync(entries))
            assert self._looked is not None
            if not self._looked.done():
                self._looked.set_result(None)

    def _known(self, changes: Sequence[MemberChange]) -> None:
        self._on_changes(changes)
        self.revision = self.replica.revision
        while self._waiting and self._waiting[0][0] <= self.revision:
            _, _, known = heapq.heappop(self._waiting)
            if not known.done():
                known.set_result(None)
