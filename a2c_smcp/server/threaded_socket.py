"""The Engine.IO connection of the threaded server."""

import queue
import socket as system_socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from a2c_smcp.server.outbox import Queued
from a2c_smcp.server.simple_websocket_internals import bound_reading, system_socket_of
from a2c_smcp.server.socket_bounds import FELL_BEHIND, SOCKETS, Bounded, check_frame, packet_of
from a2c_smcp.utils.engineio_internals import (
    PING,
    Packet,
    QueueEmpty,
    Socket,
    SocketIsClosedError,
    UnknownPacketError,
)

__all__ = ["BoundedSocket"]


class BoundedSocket(Bounded, Socket):
    """An Engine.IO socket of a threaded server whose queue is bounded in bytes."""

    _ws: Any = None
    _is_read: bool = False
    _taken: threading.Event

    def check_ping_timeout(self) -> Any:
        if self._is_late():
            self.close(wait=False, abort=True, reason=self.server.reason.SERVER_DISCONNECT)
            self._cut()
            return False
        return super().check_ping_timeout()

    def send(self, pkt: Any) -> None:
        if not self.check_ping_timeout():
            return
        match self.outbox.add(pkt):
            case Queued.TAKEN:
                self.queue.put(pkt)
            case Queued.BEHIND:
                self._fell_behind()
                self.cut_off(FELL_BEHIND)

    def offer(self, pkt: Any) -> bool:
        """Queue a packet if it fits. Returns `False` if it does not; the reader stays connected."""
        if not self.check_ping_timeout():
            return True
        if not self.outbox.add_if_it_fits(pkt):
            return False
        self.queue.put(pkt)
        return True

    def ask_for_a_sign(self) -> float | None:
        """Ask the client for a sign of life. `last_ping` has the value that this returns until the client answers."""
        self.last_ping = time.time()
        with suppress(SocketIsClosedError):
            self.send(Packet(PING))
        return self.last_ping

    @property
    def is_written_out(self) -> bool:
        """Whether nothing waits for the client to read it."""
        return not self.outbox.queued_bytes

    def cut_off(self, reason: str) -> None:
        """End the connection at once."""
        self.close(wait=False, abort=True, reason=reason)
        self._cut()

    def receive(self, pkt: Any) -> None:
        if not self._offer(pkt):
            super().receive(pkt)

    def poll(self) -> list[Any]:
        most = 1 if self.upgraded else SOCKETS.poll_packets
        packets: list[Any] = []
        try:
            packets.append(self.queue.get(timeout=self.server.ping_interval + self.server.ping_timeout))
            while packets[-1] is not None and len(packets) < most:
                packets.append(self.queue.get(block=False))
        except queue.Empty:
            if not packets:
                raise QueueEmpty from None
        for _ in packets:
            self.queue.task_done()
        if packets[-1] is None:
            packets.pop()
            if packets:
                self.queue.put(None)  # for the next poll
        for pkt in packets:
            self.outbox.begin(pkt)
            self.outbox.end(pkt)
        return packets

    def admit(self) -> None:
        """The client has shown a key: lift the limits of clients without one."""
        self.admitted = True

    def close(self, wait: bool = True, abort: bool = False, reason: Any = None) -> None:
        """End the connection: flush for a moment, then cut.

        `wait` is ignored, because a peer that does not poll any more would hold this thread for ever.
        """
        if self.closed or self.closing:
            return
        self._leave_place()
        super().close(wait=False, abort=abort, reason=reason)
        self._forget()
        if self._is_read:
            cutter = threading.Timer(SOCKETS.flush_seconds, self._cut)
            cutter.daemon = True
            cutter.start()

    def handle_post_request(self, environ: Any) -> None:
        length = self._declared_length(environ)
        for encoded in self._encoded_packets_of(environ["wsgi.input"].read(length)):
            try:
                self.receive(packet_of(encoded))
            except SocketIsClosedError:
                raise
            except Exception as error:
                # Peers send anything, and the decoders of the libraries raise anything.
                self.note_bad_frame(error)
            if self.is_hopeless:
                break
        if self.is_hopeless:
            raise UnknownPacketError  # Engine.IO ends the session, and answers 400

    def serve_websocket(self, ws: Any) -> Any:
        if self._ws is not None:
            ws.close()  # this session has a websocket already, or is about to have one
            return []
        self._ws = ws
        self._is_read = True
        self._taken = threading.Event()
        wait, close = ws.wait, ws.close

        def watched() -> Any:
            """The next frame that Engine.IO can read; `None` ends the connection."""
            while not self.closed and not self.is_hopeless:
                data = wait()
                self._taken.set()
                if data is None:
                    break
                if len(data) > self.limit:
                    self._warn_of_size()
                    break
                try:
                    check_frame(data)
                except ValueError as error:
                    self.note_bad_frame(error)
                else:
                    return data
            self._is_read = False
            if not self.closed:
                self._cut()  # Engine.IO waits for its writer, and a peer that does not read may hold that for ever
            return None

        def close_quietly() -> None:
            with suppress(OSError):
                close()

        ws.wait, ws.close = watched, close_quietly
        bound_reading(ws, lambda: self.limit, self._warn_of_size, self._hold)
        try:
            return super().serve_websocket(ws)
        finally:
            self._cut()  # otherwise simple-websocket reads until the peer has closed its end, too
            self._ws, self._is_read = None, False

    def _hold(self, arrived: Callable[[], list[Any]]) -> None:
        """Hold the reader while enough messages wait to be taken."""
        self._taken.clear()
        while self._has_enough(arrived()):
            self._taken.wait(SOCKETS.flush_seconds)
            self._taken.clear()

    def _has_enough(self, arrived: list[Any]) -> bool:
        return not self.closed and (len(arrived) > 16 or sum(map(len, arrived)) > self.limit)

    def _cut(self) -> None:
        """Break the connection under a writer that is stuck. A polite close would get stuck, too."""
        sock = system_socket_of(self._ws)
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(system_socket.SHUT_RDWR)
