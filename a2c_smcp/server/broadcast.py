"""Broadcasts that are encoded once and do not stall the server. Knows rooms and packets, nothing of offices."""

import asyncio
import itertools
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import socketio
from engineio import packet as eio_packet
from socketio.packet import EVENT

__all__ = ["SMCPManager"]

#: Receivers of a broadcast that are served before the loop turns to others.
_BROADCAST_CHUNK: Final = 32


@dataclass(frozen=True, slots=True)
class _Delivery:
    packet: Any
    moment: int
    """Whoever entered the room after this hears nothing of it."""
    skipped: frozenset[str]


class SMCPManager(socketio.AsyncManager):  # type: ignore[misc]  # python-socketio ships no types
    """Encodes a broadcast once, queues it without a task a receiver, and lets others in between.

    python-socketio makes a task for each receiver and waits for all. Here a large room is served in chunks, in order,
    so that an ack or a request does not wait behind a thousand notifications.
    """

    def __init__(self) -> None:
        super().__init__()
        self._moments = itertools.count()
        self._entered: dict[tuple[str, str], dict[str, int]] = {}
        self._outgoing: dict[tuple[str, str], deque[_Delivery]] = {}
        self._pumps: set[asyncio.Task[None]] = set()

    def basic_enter_room(self, sid: str, namespace: str, room: str | None, eio_sid: str | None = None) -> None:
        super().basic_enter_room(sid, namespace, room, eio_sid)
        if room is not None and room != sid:
            self._entered.setdefault((namespace, room), {})[sid] = next(self._moments)

    def basic_leave_room(self, sid: str, namespace: str, room: str | None) -> None:
        super().basic_leave_room(sid, namespace, room)
        if room is not None and (entered := self._entered.get((namespace, room))) is not None:
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
        present = self._entered.get((namespace, room)) if isinstance(room, str) else None
        if callback or present is None or isinstance(data, tuple):
            await super().emit(event, data, namespace, room=room, skip_sid=skip_sid, callback=callback, **kwargs)
            return
        text = self.server.packet_class(EVENT, namespace=namespace, data=[event, data]).encode()
        skipped = frozenset(skip_sid if isinstance(skip_sid, list) else [skip_sid])
        delivery = _Delivery(eio_packet.Packet(eio_packet.MESSAGE, text), next(self._moments), skipped)
        key = (namespace, room)
        if waiting := self._outgoing.get(key):
            waiting.append(delivery)
        elif len(present) <= _BROADCAST_CHUNK:
            self._deliver(key, delivery, list(present))
        else:
            self._outgoing[key] = deque([delivery])
            pump = asyncio.ensure_future(self._pump(key))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, key: tuple[str, str]) -> None:
        waiting = self._outgoing[key]
        try:
            while waiting:
                receivers = list(self._entered.get(key, ()))
                for start in range(0, len(receivers), _BROADCAST_CHUNK):
                    self._deliver(key, waiting[0], receivers[start : start + _BROADCAST_CHUNK])
                    await asyncio.sleep(0)
                waiting.popleft()
        finally:
            del self._outgoing[key]

    def _deliver(self, key: tuple[str, str], delivery: _Delivery, sids: Iterable[str]) -> None:
        """Queue a packet for those of these who were in the room when it was sent, and have not left since."""
        namespace, room = key
        entered = self._entered.get(key, {})
        eio_sids = self.rooms.get(namespace, {}).get(room, {})
        sockets = self.server.eio.sockets
        for sid in sids:
            if entered.get(sid, delivery.moment) < delivery.moment and sid not in delivery.skipped:
                socket = sockets.get(eio_sids[sid])
                if socket is not None:
                    socket.enqueue(delivery.packet)
