"""Broadcasts that are encoded once and do not stall the server. Knows rooms and packets, nothing of offices."""

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from a2c_smcp.packet_text import encode_event
from a2c_smcp.server.outbox import NoticePacket
from a2c_smcp.utils.repeats import Repeats
from a2c_smcp.utils.socketio_internals import RoomManager

__all__ = ["SMCPManager"]

#: How many receivers of a broadcast are served before other tasks get a turn.
_CHUNK: Final = 32
#: How many broadcasts of one sender may wait for their turn.
_MOST_WAITING: Final = 1024

RoomKey: TypeAlias = tuple[str, str]
"""A namespace and a room."""


@dataclass(slots=True, eq=False)
class _Delivery:
    notice: NoticePacket
    moment: int
    """Members that entered the room after this moment do not get it."""
    skipped: frozenset[str]


@dataclass(slots=True)
class _Undelivered:
    """The broadcasts that wait for a room while another one is being delivered there."""

    waiting: deque[_Delivery] = field(default_factory=deque)
    repeats: Repeats[_Delivery] = field(default_factory=Repeats)


class SMCPManager(RoomManager):
    """Encodes a broadcast once, and queues it for a few receivers at a time.

    python-socketio makes a task for each receiver and waits for all. Here a large room is served in chunks, in order,
    so that an ack or a request does not wait behind a thousand notifications.
    """

    def __init__(self) -> None:
        super().__init__()
        self._moments = itertools.count()
        self._entered: dict[RoomKey, dict[str, int]] = {}
        self._outgoing: dict[RoomKey, _Undelivered] = {}
        self._waiting_of: Counter[str] = Counter()
        self._pumps: set[asyncio.Task[None]] = set()

    def entered(self, sid: str, namespace: str, room: str) -> None:
        self._entered.setdefault((namespace, room), {})[sid] = next(self._moments)

    def left(self, sid: str, namespace: str, room: str) -> None:
        if (entered := self._entered.get((namespace, room))) is not None:
            entered.pop(sid, None)
            if not entered:
                del self._entered[namespace, room]

    async def emit(
        self,
        event: str,
        data: Any,
        namespace: str,
        room: Any = None,
        skip_sid: Any = None,
        callback: Any = None,
        to: Any = None,
        **kwargs: Any,
    ) -> None:
        room = to or room
        if callback or not isinstance(room, str) or (namespace, room) not in self._entered or isinstance(data, tuple):
            await super().emit(event, data, namespace, room=room, skip_sid=skip_sid, callback=callback, **kwargs)
            return
        skipped = [sid for sid in (skip_sid if isinstance(skip_sid, list) else [skip_sid]) if sid]
        notice = NoticePacket(encode_event(namespace, event, data), "", event, collapses=False)
        self._send((namespace, room), notice, frozenset(skipped))

    def broadcast(self, namespace: str, room: str, notice: NoticePacket) -> None:
        """Tell everyone in the room but the sender."""
        self._send((namespace, room), notice, frozenset((notice.sender,)))

    def is_behind(self, sid: str) -> bool:
        """Whether a session must slow down, because too many of its broadcasts wait."""
        return self._waiting_of[sid] >= _MOST_WAITING

    def _send(self, key: RoomKey, notice: NoticePacket, skipped: frozenset[str]) -> None:
        if (present := self._entered.get(key)) is None:
            return
        delivery = _Delivery(notice, next(self._moments), skipped)
        if (outgoing := self._outgoing.get(key)) is not None:
            self._append(outgoing, delivery)
        elif len(present) <= _CHUNK:
            self._deliver(key, delivery, list(present))
        else:
            outgoing = self._outgoing[key] = _Undelivered()
            self._append(outgoing, delivery)
            pump = asyncio.ensure_future(self._pump(key, outgoing))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    def _append(self, outgoing: _Undelivered, delivery: _Delivery) -> None:
        notice, repeats = delivery.notice, outgoing.repeats
        if not notice.collapses:
            repeats.bar(notice.sender)
        elif (earlier := repeats.find(notice.sender, notice.event)) is not None:
            # Members that have entered since the earlier broadcast get it, too.
            earlier.moment = delivery.moment
            return
        else:
            repeats.add(notice.sender, notice.event, delivery)
        outgoing.waiting.append(delivery)
        self._waiting_of[notice.sender] += 1

    async def _pump(self, key: RoomKey, outgoing: _Undelivered) -> None:
        try:
            while outgoing.waiting:
                delivery = self._next(outgoing)
                receivers = list(self._entered.get(key, ()))
                for start in range(0, len(receivers), _CHUNK):
                    self._deliver(key, delivery, receivers[start : start + _CHUNK])
                    await asyncio.sleep(0)
        finally:
            while outgoing.waiting:
                self._next(outgoing)
            del self._outgoing[key]

    def _next(self, outgoing: _Undelivered) -> _Delivery:
        delivery = outgoing.waiting.popleft()
        notice = delivery.notice
        outgoing.repeats.remove(notice.sender, notice.event, delivery)
        self._waiting_of[notice.sender] -= 1
        if not self._waiting_of[notice.sender]:
            del self._waiting_of[notice.sender]
        return delivery

    def _deliver(self, key: RoomKey, delivery: _Delivery, sids: Iterable[str]) -> None:
        """Queue a packet for these sessions, if they were in the room when it was sent and are still there."""
        namespace, room = key
        entered = self._entered.get(key, {})
        eio_sids = self.connections_in(namespace, room)
        sockets = self.server.eio.sockets
        for sid in sids:
            if entered.get(sid, delivery.moment) < delivery.moment and sid not in delivery.skipped:
                socket = sockets.get(eio_sids[sid])
                if socket is not None:
                    socket.enqueue(delivery.notice)
