"""The Engine.IO connection of the threaded server."""

import queue
import socket as system_socket
from contextlib import suppress
from typing import Any, Final

from engineio import exceptions
from engineio import socket as threaded_socket

from a2c_smcp.server.outbox import Queued
from a2c_smcp.server.socket_bounds import POLL_PACKETS, Bounded

__all__ = ["BoundedSocket"]

_PACKET_TYPES: Final = frozenset("0123456b")


class BoundedSocket(Bounded, threaded_socket.Socket):  # type: ignore[misc]
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
        match self.outbox.add(pkt):
            case Queued.TAKEN:
                self.queue.put(pkt)
            case Queued.BEHIND:
                self._fell_behind()
                self.close(wait=False, abort=True, reason=self.server.reason.TRANSPORT_ERROR)
                self._cut()

    def offer(self, pkt: Any) -> bool:
        """Queue a packet if it fits; `False` when it does not, and the reader stays."""
        if not self.check_ping_timeout():
            return True
        if not self.outbox.add_if_it_fits(pkt):
            return False
        self.queue.put(pkt)
        return True

    def receive(self, pkt: Any) -> None:
        if not self._offer(pkt):
            super().receive(pkt)

    def poll(self) -> list[Any]:
        most = 1 if self.upgraded else POLL_PACKETS
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
            self.outbox.begin(pkt)
            self.outbox.end(pkt)
        return packets

    def admit(self) -> None:
        """The client has shown a key: lift the limits of clients without one."""
        self.admitted = True

    def close(self, wait: bool = True, abort: bool = False, reason: Any = None) -> None:
        """End the connection. `wait` is not honoured: a peer that polls no more would hold this thread for ever."""
        self._leave_place()
        super().close(wait=False, abort=abort, reason=reason)
        self._forget()

    def handle_post_request(self, environ: Any) -> None:
        length = self._declared_length(environ)
        for pkt in self._packets_of(environ["wsgi.input"].read(length)):
            try:
                self.receive(pkt)
            except exceptions.SocketIsClosedError:
                raise
            except Exception as error:
                self.note_bad_frame(error)
            if self.is_hopeless:
                break
        if self.is_hopeless:
            raise exceptions.UnknownPacketError  # Engine.IO ends the session, and answers 400

    def _websocket_handler(self, ws: Any) -> Any:
        self._ws = ws
        wait = ws.wait

        def watched() -> Any:
            """The next frame that Engine.IO can do something with; `None` ends the connection."""
            while not self.is_hopeless:
                # Not with simple-websocket's own limit: it may wait for ever for a message that it has cut off.
                if (data := wait()) is None:
                    return None
                if len(data) > self.limit:
                    self._warn_of_size()
                    return None
                if isinstance(data, bytes) or data[:1] in _PACKET_TYPES:
                    return data
                self.note_bad_frame(ValueError("not an Engine.IO packet"))
            return None

        ws.wait = watched
        try:
            return super()._websocket_handler(ws)
        finally:
            self._cut()  # simple-websocket goes on reading until the peer has closed its end, too

    def _cut(self) -> None:
        """Break the connection under a writer that is stuck in it; a polite close would get stuck too."""
        sock = getattr(getattr(self._ws, "ws", self._ws), "sock", None)
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(system_socket.SHUT_RDWR)
