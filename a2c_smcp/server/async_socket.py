"""The Engine.IO connection of the asyncio server."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Final

from a2c_smcp.server.admission import Peer, peer_of
from a2c_smcp.server.outbox import Queued
from a2c_smcp.server.port import FELL_BEHIND
from a2c_smcp.server.socket_bounds import SOCKETS, Bounded, packet_of
from a2c_smcp.utils.engineio_internals import (
    CLOSE,
    MESSAGE,
    NOOP,
    PING,
    PONG,
    UPGRADE,
    AsyncSocket,
    Packet,
    QueueEmpty,
    SocketIsClosedError,
    UnknownPacketError,
    abandoned,
    body_of,
    scope_of,
)
from a2c_smcp.utils.loop_turns import TASK_SECONDS, OwnTurn

__all__ = ["BoundedAsyncSocket"]

_MESSAGE: Final = str(MESSAGE)


class BoundedAsyncSocket(Bounded, AsyncSocket):
    """An Engine.IO socket whose queue is bounded in bytes, and which spends no task or timer on a packet.

    Engine.IO's own reads and writes go through `asyncio.wait_for`, which takes 0.08 ms for each receiver of a
    broadcast. Without it they take 0.037 ms. The server's ping monitor notices a peer that has gone silent.
    """

    _peer: Peer | None = None
    _carriers: int = 0
    _turn: OwnTurn
    _handler: asyncio.Task[Any] | None = None
    _next_ping: asyncio.TimerHandle | None = None
    _poll: asyncio.Task[Any] | None = None

    def admit(self) -> None:
        """The client has shown a key: lift the limits of clients without one."""
        self.admitted = True
        self._turn = OwnTurn()
        if self._peer is not None and self.upgraded:
            self._peer.welcome(self.limit)

    @property
    def is_written_out(self) -> bool:
        """Whether nothing waits for the client to read it."""
        return not self.outbox.queued_bytes and (self._peer is None or not self._peer.unwritten())

    def schedule_ping(self) -> None:
        # Engine.IO sleeps in a task, which keeps the socket in memory for a whole interval after its end.
        if self.last_ping:
            self.last_ping = None
            self._next_ping = asyncio.get_running_loop().call_later(self.server.ping_interval, self._ping)

    def _ping(self) -> None:
        self.last_ping = time.time()
        self.enqueue(Packet(PING))

    def ask_for_a_sign(self) -> float | None:
        """Ask the client for a sign of life. `last_ping` has the value that this returns until the client answers."""
        if self._next_ping is not None:
            self._next_ping.cancel()
        self._ping()
        return self.last_ping

    async def check_ping_timeout(self) -> Any:
        if self._is_late():
            await self.close(wait=False, abort=True, reason=self.server.reason.SERVER_DISCONNECT)
            return False
        return await super().check_ping_timeout()

    async def send(self, pkt: Any) -> None:
        if await self.check_ping_timeout():
            self.enqueue(pkt)

    def enqueue(self, pkt: Any) -> None:
        """Queue a packet without waiting. Disconnects a reader that has fallen behind."""
        if self.closed or (self.closing and pkt.packet_type != CLOSE):
            return
        match self.outbox.add(pkt):
            case Queued.TAKEN:
                self.queue.put_nowait(pkt)
            case Queued.BEHIND:
                self._fell_behind()
                self.server.start_background_task(self.cut_off, FELL_BEHIND)

    async def receive(self, pkt: Any) -> None:
        if not self._offer(pkt):
            await super().receive(pkt)

    async def close(self, wait: bool = True, abort: bool = False, reason: Any = None) -> None:
        """End the connection: flush for a moment, then cut. `wait` is ignored, because a dead peer would hold us up."""
        if self.closed or self.closing:
            return
        self._leave_place()
        await super().close(wait=False, abort=abort, reason=reason)
        self._forget()
        self.queue.put_nowait(None)
        if self._next_ping is not None:
            self._next_ping.cancel()
        if self._handler is not None and self._handler is not asyncio.current_task():
            asyncio.get_running_loop().call_later(SOCKETS.flush_seconds, self._handler.cancel)

    async def cut_off(self, reason: str | None = None) -> None:
        """End the connection at once, because of what its peer does."""
        await self.close(wait=False, abort=True, reason=reason or self.server.reason.TRANSPORT_ERROR)

    async def poll(self) -> list[Any]:
        """Packets for one long poll."""
        try:
            async with asyncio.timeout(self.server.ping_interval + self.server.ping_timeout):
                pkt = await self.queue.get()
        except TimeoutError:
            raise QueueEmpty from None
        packets = []
        while pkt is not None:
            self.outbox.begin(pkt)
            self.outbox.end(pkt)
            packets.append(pkt)
            if len(packets) == SOCKETS.poll_packets or self.queue.empty():
                return packets
            pkt = self.queue.get_nowait()
        if packets:
            self.queue.put_nowait(None)  # for the next poll
        return packets

    async def handle_get_request(self, environ: Any) -> Any:
        if "HTTP_UPGRADE" in environ:
            return await super().handle_get_request(environ)
        with self._carried_by(environ):
            if "HTTP_UPGRADE" in environ:
                return await super().handle_get_request(environ)
            return await self._answer_poll(environ)

    async def _answer_poll(self, environ: Any) -> Any:
        """Answer a poll. The poll takes no packet if its client stops waiting, or sends another poll."""
        if self._poll is not None:
            self._poll.cancel()
        poll = self._poll = asyncio.ensure_future(super().handle_get_request(environ))
        given_up = asyncio.ensure_future(abandoned(environ))
        try:
            await asyncio.wait({poll, given_up}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            poll.cancel()
            given_up.cancel()
            if self._poll is poll:
                self._poll = None
        await asyncio.wait({poll, given_up})
        return [Packet(NOOP)] if poll.cancelled() else poll.result()

    async def handle_post_request(self, environ: Any) -> None:
        with self._carried_by(environ):
            body = await self._body(environ)
            began = await self._turn_begins()
            packets = self._encoded_packets_of(body)
            del body
            await self._turn_ends(began)
            for encoded in packets:
                began = await self._turn_begins()
                try:
                    await self.receive(packet_of(encoded))
                except SocketIsClosedError:
                    raise
                except Exception as error:
                    # Peers send anything, and the decoders of the libraries raise anything.
                    self.note_bad_frame(error)
                await self._turn_ends(began)
                if self.is_hopeless:
                    break
        if self.is_hopeless:
            raise UnknownPacketError  # Engine.IO ends the session, and answers 400

    @contextmanager
    def _carried_by(self, environ: Any) -> Iterator[None]:
        """Do not count the connections of this session's polls, because the session is counted. Before a key was
        shown, this holds for two connections only.
        """
        peer = peer_of(scope_of(environ))
        if peer is None:
            yield
            return
        self._welcome(peer)
        # Two: one for a GET and one for a POST.
        if self.admitted or peer.place is None or self._carriers >= 2:
            yield
            return
        self._carriers += 1
        try:
            with peer.place.lent():
                yield
        finally:
            self._carriers -= 1
        self._welcome(peer)

    def _welcome(self, peer: Peer) -> None:
        if self.admitted:
            peer.welcome(self.limit)

    async def _body(self, environ: Any) -> bytearray:
        """The body of a POST. It is not read beyond the limit."""
        body = bytearray()
        async with aclosing(body_of(environ, self._declared_length(environ))) as parts:
            async for part in parts:
                body += part
                if len(body) > self.limit:
                    self._refuse_post()
        return body

    async def move_to_websocket(self, environ: Any) -> Any:
        self._peer = peer_of(scope_of(environ))
        return await super().move_to_websocket(environ)

    async def serve_websocket(self, ws: Any) -> None:
        if self.connected:
            if not await self._upgrade(ws) or self.upgraded:
                return  # it failed, or another websocket was first
            if self._peer is not None:
                self._peer.leave()  # its connection ends with this session, which is counted
        self.connected = self.upgraded = True
        if self.admitted:
            self.admit()
        self._handler = asyncio.current_task()
        writer = asyncio.ensure_future(self._write(ws))
        try:
            await self._read(ws)
        except asyncio.CancelledError:
            pass  # it was cut after close(), or the web server is stopping: this connection has ended
        finally:
            self._handler = None
            await self.close(wait=False, abort=True, reason=self.server.reason.TRANSPORT_CLOSE)
            await asyncio.wait({writer}, timeout=SOCKETS.flush_seconds)
            writer.cancel()

    async def _upgrade(self, ws: Any) -> bool:
        """The handshake by which a polling client moves to this websocket."""
        self.upgrading = True  # polls return at once with a NOOP
        try:
            if await self._received(ws) != (PING, "probe"):
                return False
            await ws.send(Packet(PONG, data="probe").encode())
            self.queue.put_nowait(Packet(NOOP))
            kind, _ = await self._received(ws)
            return kind == int(UPGRADE)
        except (OSError, ValueError, TimeoutError):
            return False
        finally:
            self.upgrading = False

    async def _received(self, ws: Any) -> tuple[int, Any]:
        # An empty frame gives `None`.
        pkt = packet_of(await asyncio.wait_for(ws.wait(), self.server.ping_timeout) or "")
        return pkt.packet_type, pkt.data

    async def _read(self, ws: Any) -> None:
        while not self.closed and not self.is_hopeless:
            try:
                data = await ws.wait()
            except OSError:
                return  # the peer closed the connection, or it broke
            if data is None:
                return
            if len(data) > self.limit:
                self._warn_of_size()
                return
            began = await self._turn_begins()
            try:
                if not (isinstance(data, str) and data.startswith(_MESSAGE) and self._offer_text(data[1:])):
                    await self.receive(packet_of(data))
            except SocketIsClosedError:
                return
            except Exception as error:
                # Peers send anything, and Engine.IO's decoder raises anything, an IndexError for instance.
                self.note_bad_frame(error)
            del data  # free its memory before the next one comes
            await self._turn_ends(began)

    # A connection with a key yields after a few milliseconds; the connections without one take turns.

    async def _turn_begins(self) -> float:
        if not self.admitted:
            await self.admission.turns.wait()
        return time.perf_counter()

    async def _turn_ends(self, began: float) -> None:
        spent = time.perf_counter() - began
        if self.admitted:
            await self._turn.used(spent + TASK_SECONDS)
        else:
            self.admission.turns.used(spent)

    async def _write(self, ws: Any) -> None:
        # If writing fails, the peer has gone. The reader sees that, too.
        with suppress(Exception):
            while (pkt := await self.queue.get()) is not None:
                self.outbox.begin(pkt)
                await ws.send(pkt.encode())
                self.outbox.end(pkt)
                del pkt  # free its memory before the next one comes
        with suppress(Exception):
            await ws.close()
