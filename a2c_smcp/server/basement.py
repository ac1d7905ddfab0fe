"""The lines of `create_app`, until the engine has them: over the bounded Engine.IO sockets of `sockets`."""

from collections.abc import Callable
from typing import Any

import socketio
from socketio.exceptions import ConnectionRefusedError

from a2c_smcp.packet_text import read_head
from a2c_smcp.server.async_socket import BoundedAsyncSocket
from a2c_smcp.server.mounted import newcomer_of
from a2c_smcp.server.outbox import NoticePacket, ReportPacket
from a2c_smcp.server.port import Mention, Notice, NotLetInError
from a2c_smcp.server.socket_bounds import ServerDoor
from a2c_smcp.server.socketio_setup import sort_packet
from a2c_smcp.server.sockets import adopt_sockets
from a2c_smcp.server.switchboard import Switchboard
from a2c_smcp.utils.engineio_internals import MESSAGE, Packet
from a2c_smcp.utils.socketio_internals import EVENT, MountedNamespace, SocketIOServer, is_connected, is_open, socket_of
from a2c_smcp.wire import codec

__all__ = ["BasementNamespace"]


class _SocketLine:
    """A `ClientLine` over one of our sockets."""

    __slots__ = ("_acks", "_asked", "_namespace", "_reason", "_socket", "address", "connection", "sid")

    def __init__(self, namespace: "BasementNamespace", sid: str, socket: BoundedAsyncSocket) -> None:
        self._namespace = namespace
        self._socket = socket
        self._acks: dict[int, Callable[[str], None]] = {}
        self._asked: float | None = None
        self._reason = ""
        self.sid = sid
        self.address = socket.address
        self.connection = socket.sid

    @property
    def is_open(self) -> bool:
        socket, namespace = self._socket, self._namespace
        return not (socket.closed or socket.closing or self._reason) and is_open(
            namespace.server, namespace.namespace, self.sid
        )

    @property
    def queued_bytes(self) -> int:
        return self._socket.outbox.queued_bytes

    @property
    def sent_bytes(self) -> int:
        return self._socket.outbox.sent_bytes

    @property
    def received_bytes(self) -> int:
        return self._socket.received_bytes

    @property
    def is_written_out(self) -> bool:
        return self._socket.closed or self._socket.is_written_out

    @property
    def has_given_a_sign(self) -> bool:
        return self._socket.last_ping != self._asked

    def take_place(self) -> None:
        self._socket.take_place()

    def admit(self) -> None:
        self._socket.admit()

    def bound(self, queued_bytes: int) -> None:
        self._socket.outbox.most_bytes = queued_bytes

    def send(self, text: str) -> None:
        self._socket.enqueue(Packet(MESSAGE, text))

    def notify(self, notice: Notice) -> None:
        if notice.frame is None:
            notice.frame = NoticePacket(notice.text, notice.sender, notice.event, collapses=notice.collapses)
        self._socket.enqueue(notice.frame)

    def offer(self, text: str) -> bool:
        return self._socket.hand(Packet(MESSAGE, text))

    def mention(self, mention: Mention) -> None:
        self._socket.mention(ReportPacket(mention.text, mention.about))

    def ask(self, ack_id: int, text: str, on_ack: Callable[[str], None]) -> bool:
        self._acks[ack_id] = on_ack
        if self._socket.hand(Packet(MESSAGE, text)):
            return True
        del self._acks[ack_id]
        return False

    def forget(self, ack_id: int) -> None:
        self._acks.pop(ack_id, None)

    def acked(self, ack_id: int | None, body: str) -> None:
        if (on_ack := self._acks.pop(ack_id or 0, None)) is not None:
            on_ack(body)

    def ask_for_a_sign(self) -> None:
        self._asked = self._socket.ask_for_a_sign()

    def close(self, reason: str) -> None:
        if not self._reason:
            self._reason = reason
            self._namespace.server.start_background_task(self._socket.cut_off, reason)


class BasementNamespace(MountedNamespace, socketio.AsyncNamespace):  # type: ignore[misc]  # has no types
    """Connects a switchboard to a python-socketio server with our sockets."""

    def __init__(self, switchboard: Switchboard) -> None:
        super().__init__(switchboard.namespace)
        self.switchboard = switchboard
        self._lines: dict[str, _SocketLine] = {}

    def mounted(self, server: SocketIOServer) -> None:
        adopt_sockets(ServerDoor(server, self.namespace, self.switchboard.admission, self._take), self._lines)

    def _take(self, socket: Any, text: str) -> bool:
        """Take an event or an ack of our namespace; `False` leaves the message to python-socketio."""
        if (incoming := sort_packet(self.server, self.namespace, socket.sid, self._lines, text)) is None:
            return False
        sid, head = incoming
        if sid is None:
            return True
        line = self._lines[sid]
        if head.packet_type == EVENT:
            if (reply := self.switchboard.event(line, head.ack_id, head.body)) is not None:
                line.send(reply)
        else:
            line.acked(head.ack_id, head.body)
        return True

    async def trigger_event(self, event: Any, sid: str, *args: Any) -> Any:
        # A client can send events with these two names, too. Only the calls of the library itself count.
        line = self._lines.get(sid)
        if event == "connect" and line is None:
            await self._connect(sid, *args)
        elif event == "disconnect" and line is not None and not is_connected(self.server, self.namespace, sid):
            del self._lines[sid]
            self.switchboard.disconnected(line, str(args[0]) if args else "")
        elif line is not None and (reply := self.switchboard.binary_event(line, 0, codec.dumps([event]))) is not None:
            values = codec.loads(read_head(reply).body)
            return values[0] if len(values) == 1 else tuple(values)
        return None

    async def _connect(self, sid: str, environ: dict[str, Any], auth: Any = None) -> None:
        socket = socket_of(self.server, self.namespace, sid)
        if socket is None:
            raise ConnectionRefusedError("the connection has gone")
        line = _SocketLine(self, sid, socket)
        try:
            await self.switchboard.connect(line, newcomer_of(environ), auth)
        except NotLetInError as error:
            raise ConnectionRefusedError(error.data["message"], error.data["data"]) from None
        self._lines[sid] = line
