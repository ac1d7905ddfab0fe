"""Who hears the notifications of an office: its room. It is encoded once. A large room hears it in parts and in
order, so that an answer or a request does not wait behind a thousand readers.
"""

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from a2c_smcp.server.port import ClientLine, Notice
from a2c_smcp.utils.repeats import Repeats

__all__ = ["Rooms"]

#: How many readers of a notification are served before other tasks get a turn.
_CHUNK: Final = 32
#: How many notifications of one sender may wait for their turn.
_MOST_WAITING: Final = 1024


@dataclass(slots=True, eq=False)
class _Delivery:
    notice: Notice
    moment: int
    """Sessions that entered the room after this moment do not get it."""


@dataclass(slots=True)
class _Undelivered:
    """The notifications that wait for a room while another one is being delivered there."""

    waiting: deque[_Delivery] = field(default_factory=deque)
    repeats: Repeats[_Delivery] = field(default_factory=Repeats)


class Rooms:
    """The sessions of this process by office, and the offices by session. A session may be in two for a moment."""

    def __init__(self) -> None:
        self._moments = itertools.count()
        self._rooms: dict[str, dict[str, tuple[ClientLine, int]]] = {}
        self._rooms_of: dict[str, set[str]] = {}
        self._undelivered: dict[str, _Undelivered] = {}
        self._waiting_of: Counter[str] = Counter()
        self._pumps: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._rooms)

    def sessions(self, office_id: str) -> list[str]:
        """Who is in the room of an office."""
        return list(self._rooms.get(office_id, ()))

    def enter(self, office_id: str, line: ClientLine) -> None:
        self._rooms.setdefault(office_id, {})[line.sid] = line, next(self._moments)
        self._rooms_of.setdefault(line.sid, set()).add(office_id)

    def leave(self, office_id: str, sid: str) -> None:
        if (room := self._rooms.get(office_id)) is None or room.pop(sid, None) is None:
            return
        if not room:
            del self._rooms[office_id]
        rooms = self._rooms_of[sid]
        rooms.discard(office_id)
        if not rooms:
            del self._rooms_of[sid]

    def forget(self, sid: str) -> None:
        """A session has ended."""
        for office_id in sorted(self._rooms_of.get(sid, ())):
            self.leave(office_id, sid)

    def tell(self, office_id: str, notice: Notice) -> None:
        """Tell everyone in the room but the sender."""
        if (room := self._rooms.get(office_id)) is None:
            return
        delivery = _Delivery(notice, next(self._moments))
        if (undelivered := self._undelivered.get(office_id)) is not None:
            self._append(undelivered, delivery)
        elif len(room) <= _CHUNK:
            self._deliver(office_id, delivery, list(room))
        else:
            undelivered = self._undelivered[office_id] = _Undelivered()
            self._append(undelivered, delivery)
            pump = asyncio.ensure_future(self._pump(office_id, undelivered))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    def is_behind(self, sid: str) -> bool:
        """Whether a session must slow down, because too many of its notifications wait."""
        return self._waiting_of[sid] >= _MOST_WAITING

    def _append(self, undelivered: _Undelivered, delivery: _Delivery) -> None:
        notice, repeats = delivery.notice, undelivered.repeats
        if not notice.collapses:
            repeats.bar(notice.sender)
        elif (earlier := repeats.find(notice.sender, notice.event)) is not None:
            # Sessions that have entered since the earlier one get it, too.
            earlier.moment = delivery.moment
            return
        else:
            repeats.add(notice.sender, notice.event, delivery)
        undelivered.waiting.append(delivery)
        self._waiting_of[notice.sender] += 1

    async def _pump(self, office_id: str, undelivered: _Undelivered) -> None:
        try:
            while undelivered.waiting:
                delivery = self._next(undelivered)
                readers = self.sessions(office_id)
                for start in range(0, len(readers), _CHUNK):
                    self._deliver(office_id, delivery, readers[start : start + _CHUNK])
                    await asyncio.sleep(0)
        finally:
            while undelivered.waiting:
                self._next(undelivered)
            del self._undelivered[office_id]

    def _next(self, undelivered: _Undelivered) -> _Delivery:
        delivery = undelivered.waiting.popleft()
        notice = delivery.notice
        undelivered.repeats.remove(notice.sender, notice.event, delivery)
        self._waiting_of[notice.sender] -= 1
        if not self._waiting_of[notice.sender]:
            del self._waiting_of[notice.sender]
        return delivery

    def _deliver(self, office_id: str, delivery: _Delivery, sids: Iterable[str]) -> None:
        """Tell these sessions, if they were in the room when it was said and are still there."""
        room, notice, moment = self._rooms.get(office_id, {}), delivery.notice, delivery.moment
        for sid in sids:
            if (there := room.get(sid)) is not None and there[1] < moment and sid != notice.sender:
                there[0].notify(notice)
