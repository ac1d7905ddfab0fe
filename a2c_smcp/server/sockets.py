"""Engine.IO sockets with bounded queues: a reader that falls behind, a frame that makes no sense, a peer that is gone.

Knows packets and bytes, nothing of offices. Serves whatever python-socketio server the namespace is mounted in: each
connection is given our class when it opens.
"""

import asyncio
import logging
import math
import queue
import socket as system_socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

from engineio import async_socket, exceptions
from engineio import packet as eio_packet
from engineio import socket as threaded_socket
from engineio.payload import Payload

__all__ = ["BoundedAsyncSocket", "BoundedSocket", "adopt_sockets", "release_polls"]

logger = logging.getLogger("a2c_smcp.server")

#: Packets that one long poll returns: older clients drop the connection over more.
_POLL_PACKETS: Final = 16
#: Packets that one POST may bring: a polling client writes everything it has in one.
_POST_PACKETS: Final = 4096
#: How long a closing connection may take to flush before it is cut.
_FLUSH_SECONDS: Final = 1.0
_MESSAGE: Final = str(eio_packet.MESSAGE)

#: Whether a message, as Socket.IO wrote it, was taken.
Take: TypeAlias = Callable[[Any, str], bool]


def adopt_sockets(server: Any, queued_bytes: int, connect_timeout: float, take: Take) -> None:
    """Give every connection that opens from now on a bounded queue, and this long to join a namespace.

    Lifts Engine.IO's POST limit process-wide. `take` is offered every message first, in the order of arrival.
    """
    Payload.max_decode_packets = max(Payload.max_decode_packets, _POST_PACKETS)
    connected = server.eio.handlers["connect"]

    def adopt(eio_sid: str, kind: type) -> None:
        socket = server.eio.sockets[eio_sid]
        _adopt(socket, kind, queued_bytes)
        socket.take = take
        socket.has_joined = partial(_has_joined, server.manager, eio_sid)
        socket.connect_timeout = connect_timeout
        socket.join_by = time.monotonic() + connect_timeout

    async def on_connect(eio_sid: str, environ: Any) -> Any:
        adopt(eio_sid, BoundedAsyncSocket)
        return await connected(eio_sid, environ)

    def on_connect_threaded(eio_sid: str, environ: Any) -> Any:
        adopt(eio_sid, BoundedSocket)
        return connected(eio_sid, environ)

    server.eio.on("connect", on_connect if server.is_asyncio_based() else on_connect_threaded)


def release_polls(server: Any) -> None:
    """Let every waiting long poll return, so that the web server can stop without cutting it off."""
    for socket in list(server.eio.sockets.values()):
        if not socket.upgraded:
            socket.queue.put_nowait(None)


def _adopt(socket: Any, kind: type, queued_bytes: int) -> None:
    # Engine.IO offers no way to choose the class it creates; the layouts are the same.
    socket.__class__ = kind
    socket.most_bytes = queued_bytes
    socket.counting = threading.Lock()


def _has_joined(manager: Any, eio_sid: str) -> bool:
    return any(manager.sid_from_eio_sid(eio_sid, namespace) for namespace in list(manager.get_namespaces()))


def _size(pkt: Any) -> int:
    if not isinstance(pkt.data, str):
        return 0
    return len(pkt.data) if pkt.data.isascii() else 3 * len(pkt.data)


class _Bounded:
    """Counts the bytes that wait for the reader, and the time until somebody was let in."""

    sid: str
    closed: bool
    join_by: float = math.inf
    connect_timeout: float = math.inf
    has_joined: Callable[[], bool]
    take: Take
    most_bytes: int = 0
    queued_bytes: int = 0
    counting: threading.Lock
    """Many threads write to one socket of a threaded server; an update that got lost would never be made up for."""

    def _is_late(self) -> bool:
        """Whether nobody has been in over this connection for too long: it would be counted nowhere."""
        now = time.monotonic()
        if now <= self.join_by or self.closed:
            return False
        if self.has_joined():
            # Looked at again, because a session that is about to be refused, or leaves, is in for now.
            self.join_by = now + self.connect_timeout
            return False
        logger.warning("closing a connection that has joined no namespace")
        return True

    def _offer(self, pkt: Any) -> bool:
        return pkt.packet_type == eio_packet.MESSAGE and isinstance(pkt.data, str) and self._offer_text(pkt.data)

    def _offer_text(self, text: str) -> bool:
        try:
            return self.take(self, text)
        except Exception as error:
            # Whatever a peer may send: one message is lost, not the connection.
            logger.warning("ignored a message that does not decode: %s: %s", type(error).__name__, error)
            return True

    def _has_room(self, pkt: Any) -> bool:
        size = _size(pkt)
        with self.counting:
            was_behind = self.queued_bytes > self.most_bytes
            self.queued_bytes += size
            behind = self.queued_bytes > self.most_bytes
        if behind and not was_behind:
            logger.warning("disconnecting a reader that fell behind: over %d bytes wait for it", self.most_bytes)
        return not behind

    def _sent(self, pkt: Any) -> None:
        size = _size(pkt)
        with self.counting:
            # What was queued before the socket was adopted was not counted.
            self.queued_bytes = max(0, self.queued_bytes - size)


class BoundedAsyncSocket(_Bounded, async_socket.AsyncSocket):  # type: ignore[misc]  # engineio ships no types
    """An Engine.IO socket whose queue is bounded in bytes, and which spends no task or timer on a packet.

    Engine.IO's own reads and writes go through `asyncio.wait_for`: 0.08 ms a receiver of a broadcast, 0.037 without
    it. That a peer has gone silent is noticed by the server's ping monitor.
    """

    connected: bool
    upgraded: bool
    last_ping: float | None
    _handler: asyncio.Task[Any] | None = None
    _next_ping: asyncio.TimerHandle | None = None

    def schedule_ping(self) -> None:
        # Engine.IO sleeps in a task that holds on to the socket for a whole interval after its end.
        if self.last_ping:
            self.last_ping = None
            self._next_ping = asyncio.get_running_loop().call_later(self.server.ping_interval, self._ping)

    def _ping(self) -> None:
        self.last_ping = time.time()
        self.enqueue(eio_packet.Packet(eio_packet.PING))

    async def check_ping_timeout(self) -> Any:
        if self._is_late():
            await self.close(wait=False, abort=True, reason=self.server.reason.SERVER_DISCONNECT)
            return False
        return await super().check_ping_timeout()

    async def send(self, pkt: Any) -> None:
        if await self.check_ping_timeout():
            self.enqueue(pkt)

    def enqueue(self, pkt: Any) -> None:
        """Queue a packet without waiting; a reader that has fallen behind is disconnected instead."""
        if self.closed or (self.closing and pkt.packet_type != eio_packet.CLOSE):
            return
        if self._has_room(pkt):
            self.queue.put_nowait(pkt)
        else:
            self.server.start_background_task(
                self.close, wait=False, abort=True, reason=self.server.reason.TRANSPORT_ERROR
            )

    async def receive(self, pkt: Any) -> None:
        if not self._offer(pkt):
            await super().receive(pkt)

    async def close(self, wait: bool = True, abort: bool = False, reason: Any = None) -> None:
        """End the connection: flush for a moment, then cut. `wait` is not honoured, a dead peer would hold us."""
        if self.closed or self.closing:
            return
        await super().close(wait=False, abort=abort, reason=reason)
        self.queue.put_nowait(None)
        if self._next_ping is not None:
            self._next_ping.cancel()
        if self._handler is not None and self._handler is not asyncio.current_task():
            asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self._handler.cancel)

    async def poll(self) -> list[Any]:
        """Packets for one long poll."""
        try:
            pkt = await asyncio.wait_for(self.queue.get(), self.server.ping_interval + self.server.ping_timeout)
        except TimeoutError:
            raise exceptions.QueueEmpty from None
        packets = []
        while pkt is not None:
            self._sent(pkt)
            packets.append(pkt)
            if len(packets) == _POLL_PACKETS or self.queue.empty():
                return packets
            pkt = self.queue.get_nowait()
        if packets:
            self.queue.put_nowait(None)  # for the next poll
        return packets

    async def _websocket_handler(self, ws: Any) -> None:
        if self.connected and not await self._upgrade(ws):
            return
        self.connected = self.upgraded = True
        self._handler = asyncio.current_task()
        writer = asyncio.ensure_future(self._write(ws))
        try:
            await self._read(ws)
        except asyncio.CancelledError:
            pass  # cut after close(), or the web server is stopping: either way this connection is over
        finally:
            self._handler = None
            await self.close(wait=False, abort=True, reason=self.server.reason.TRANSPORT_CLOSE)
            await asyncio.wait({writer}, timeout=_FLUSH_SECONDS)
            writer.cancel()

    async def _upgrade(self, ws: Any) -> bool:
        """The handshake by which a polling client moves to this websocket."""
        self.upgrading = True  # polls return at once with a NOOP
        try:
            if await self._received(ws) != (eio_packet.PING, "probe"):
                return False
            await ws.send(eio_packet.Packet(eio_packet.PONG, data="probe").encode())
            self.queue.put_nowait(eio_packet.Packet(eio_packet.NOOP))
            kind, _ = await self._received(ws)
            return kind == int(eio_packet.UPGRADE)
        except (OSError, ValueError, TimeoutError):
            return False
        finally:
            self.upgrading = False

    async def _received(self, ws: Any) -> tuple[int, Any]:
        pkt = eio_packet.Packet(encoded_packet=await asyncio.wait_for(ws.wait(), self.server.ping_timeout))
        return pkt.packet_type, pkt.data

    async def _read(self, ws: Any) -> None:
        while not self.closed:
            try:
                data = await ws.wait()
            except OSError:
                return  # the peer closed the connection, or it broke
            if data is None:
                return
            if len(data) > self.server.max_http_buffer_size:
                logger.warning(
                    "closing a connection: a message has more than %d bytes", self.server.max_http_buffer_size
                )
                return
            if isinstance(data, str) and data.startswith(_MESSAGE) and self._offer_text(data[1:]):
                continue
            try:
                await self.receive(eio_packet.Packet(encoded_packet=data))
            except exceptions.SocketIsClosedError:
                return
            except Exception as error:
                # Whatever a peer may send: Engine.IO's decoder raises what it comes upon, an IndexError for instance.
                logger.warning("ignored a frame that does not decode: %s: %s", type(error).__name__, error)

    async def _write(self, ws: Any) -> None:
        # Whatever goes wrong while writing, the peer has gone, and the reader sees it too.
        with suppress(Exception):
            while (pkt := await self.queue.get()) is not None:
                await ws.send(pkt.encode())
                self._sent(pkt)
        with suppress(Exception):
            await ws.close()


class BoundedSocket(_Bounded, threaded_socket.Socket):  # type: ignore[misc]
    """The same bound for a threaded server."""

    _ws: Any = None

    def check_ping_timeout(self) -> Any:
        if self._is_late():
            self.close(wait=False, abort=True, reason=self.server.reason.SERVER_DISCONNECT)
            self._cut()
            return False
        return super().check_ping_timeout()

    def send(self, pkt: Any) -> None:
        if not self.check_ping_timeout():
            return
        if self._has_room(pkt):
            self.queue.put(pkt)
        else:
            self.close(wait=False, abort=True, reason=self.server.reason.TRANSPORT_ERROR)
            self._cut()

    def receive(self, pkt: Any) -> None:
        if not self._offer(pkt):
            super().receive(pkt)

    def poll(self) -> list[Any]:
        most = 1 if self.upgraded else _POLL_PACKETS
        packets: list[Any] = []
        try:
            packets.append(self.queue.get(timeout=self.server.ping_interval + self.server.ping_timeout))
            while packets[-1] is not None and len(packets) < most:
                packets.append(self.queue.get(block=False))
        except queue.Empty:
            if not packets:
                raise exceptions.QueueEmpty from None
        for _ in packets:
            self.queue.task_done()
        if packets[-1] is None:
            packets.pop()
            if packets:
                self.queue.put(None)  # for the next poll
        for pkt in packets:
            self._sent(pkt)
        return packets

    def _websocket_handler(self, ws: Any) -> Any:
        self._ws = ws
        wait, limit = ws.wait, self.server.max_http_buffer_size

        def watched() -> Any:
            data = wait()
            if data and len(data) > limit:  # Engine.IO closes the connection over it without a word
                logger.warning("closing a connection: a message has more than %d bytes", limit)
            return data

        ws.wait = watched
        return super()._websocket_handler(ws)

    def _cut(self) -> None:
        """Break the connection under a writer that is stuck in it; a polite close would get stuck too."""
        sock = getattr(getattr(self._ws, "ws", self._ws), "sock", None)
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(system_socket.SHUT_RDWR)
