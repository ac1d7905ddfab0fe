"""What we use of python-socketio that its documentation does not offer; `test_socketio_internals.py` names each thing.

Nothing else in the package imports `socketio.packet`, or overrides a method of the library whose name begins with an
underscore.

- *Packets* (`Packet`, the numbers of their types): ours, the documented `serializer`, reads a packet itself, and counts
  its attachments instead of keeping them.
- *A server* (`SocketIOServer`) has its Engine.IO server as `eio`, the `environ` of every connection that is open, and a
  `manager`, which knows who is connected. Why: we take events and acks off their connection before the library builds
  what they carry.
- *A namespace* is told its server by `_set_server`. Why: that is the moment to change how connections open.
- *A manager* of ours knows the rooms of each session, and `basic_disconnect` is ours: when a session ends, the
  library's looks through the rooms of all. The library searches its lists `pending_connect` and `pending_disconnect`
  for every packet. Here they are dictionaries.
- *A client* asks `_engineio_client_class` for the class of its Engine.IO client, and calls `_handle_event` and
  `_handle_ack` for a packet whose attachments are complete; until then it is kept as `_binary_packet`. Why: messages
  are taken off the websocket without a task, a timer or a queue for each.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, Protocol

import socketio
from socketio.packet import ACK, BINARY_ACK, BINARY_EVENT, CONNECT, DISCONNECT, EVENT, Packet

from a2c_smcp.utils import engineio_internals
from a2c_smcp.utils.engineio_internals import EngineServer

__all__ = [
    "ACK",
    "BINARY_ACK",
    "BINARY_EVENT",
    "CONNECT",
    "DISCONNECT",
    "EVENT",
    "AsyncClient",
    "Manager",
    "MountedNamespace",
    "Packet",
    "RoomManager",
    "SocketIOServer",
    "handled_namespaces",
    "is_connected",
    "is_open",
    "namespaces_of",
    "not_noted_session_of",
    "session_of",
    "socket_of",
]


class Manager(Protocol):
    """Any of the library's managers."""

    def is_connected(self, sid: str, namespace: str) -> bool: ...
    def is_pre_connected(self, sid: str, namespace: str) -> bool: ...
    def connect(self, sid: str, namespace: str) -> Any: ...
    def sid_from_eio_sid(self, eio_sid: str, namespace: str) -> str | None: ...
    def eio_sid_from_sid(self, sid: str, namespace: str) -> str | None: ...
    def get_namespaces(self) -> Iterable[str]: ...


class SocketIOServer(Protocol):
    """A `socketio.AsyncServer` or `socketio.Server`."""

    eio: EngineServer
    manager: Manager
    environ: Mapping[str, Any]
    handlers: Mapping[str, Any]
    """By namespace: the handlers that were registered one by one."""
    namespace_handlers: Mapping[str, Any]
    """By namespace: its class."""
    packet_class: Callable[..., Any]

    def is_asyncio_based(self) -> bool: ...
    def start_background_task(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...
    def sleep(self, seconds: float = 0) -> Any: ...


# --- sessions and their connections


def socket_of(server: SocketIOServer, namespace: str, sid: str) -> Any:
    """The Engine.IO socket of a session, or `None` if it has gone."""
    return server.eio.sockets.get(server.manager.eio_sid_from_sid(sid, namespace) or "")


def session_of(
    server: SocketIOServer, namespace: str, eio_sid: str, let_in: Container[str] = frozenset()
) -> str | None:
    """The session of a connection in a namespace; `None` before it is accepted and after its end.

    python-socketio tells a client that it is accepted before it notes that. `let_in` has the sessions that it may not
    have noted yet.
    """
    sid = server.manager.sid_from_eio_sid(eio_sid, namespace)
    is_in = sid is not None and (sid in let_in or server.manager.is_connected(sid, namespace))
    return sid if is_in else None


def not_noted_session_of(server: SocketIOServer, namespace: str, eio_sid: str, let_in: Container[str]) -> str | None:
    """The session of a connection that is accepted but not noted yet: python-socketio would not report its end."""
    sid = server.manager.sid_from_eio_sid(eio_sid, namespace)
    is_waiting = sid is not None and sid in let_in and server.manager.is_pre_connected(sid, namespace)
    return sid if is_waiting else None


def is_connected(server: SocketIOServer, namespace: str, sid: str) -> bool:
    """Whether a session was accepted and has not ended."""
    return server.manager.is_connected(sid, namespace)


def is_open(server: SocketIOServer, namespace: str, sid: str) -> bool:
    """Whether the connection of a session is open. It may not be accepted yet."""
    return server.manager.eio_sid_from_sid(sid, namespace) in server.environ


def namespaces_of(server: SocketIOServer, eio_sid: str) -> Iterator[str]:
    """The namespaces where a connection has a session, or asks for one."""
    manager = server.manager
    return (each for each in list(manager.get_namespaces()) if manager.sid_from_eio_sid(eio_sid, each))


def handled_namespaces(server: SocketIOServer) -> set[str]:
    """The namespaces with handlers. The library may accept others."""
    return {*server.handlers, *server.namespace_handlers}


# --- what the library calls


class MountedNamespace:
    """Used beside one of the library's namespace classes: hears which server it is registered with."""

    server: SocketIOServer
    namespace: str

    def mounted(self, server: SocketIOServer) -> None:
        """The namespace is registered with this server."""

    def _set_server(self, server: Any) -> None:
        super()._set_server(server)  # type: ignore[misc]  # the library's
        self.mounted(server)


class _PendingSessions(dict[str, None]):
    """Sessions, as the library uses its lists of them. Here a look-up does not depend on how many there are."""

    def append(self, sid: str) -> None:
        self[sid] = None

    def remove(self, sid: str) -> None:
        del self[sid]


class _PendingByNamespace(dict[str, _PendingSessions]):
    def __setitem__(self, namespace: str, _: object) -> None:
        super().__setitem__(namespace, _PendingSessions())


class RoomManager(socketio.AsyncManager):  # type: ignore[misc]  # python-socketio ships no types
    """A manager for which the end of a session does not cost more when there are many others."""

    def __init__(self) -> None:
        super().__init__()
        self.pending_connect: dict[str, _PendingSessions] = _PendingByNamespace()
        self.pending_disconnect: dict[str, _PendingSessions] = _PendingByNamespace()
        self._rooms_of: dict[tuple[str, str], dict[str | None, None]] = {}
        """By namespace and session."""

    def basic_enter_room(self, sid: str, namespace: str, room: str | None, eio_sid: str | None = None) -> None:
        super().basic_enter_room(sid, namespace, room, eio_sid)
        self._rooms_of.setdefault((namespace, sid), {})[room] = None

    def basic_leave_room(self, sid: str, namespace: str, room: str | None) -> None:
        super().basic_leave_room(sid, namespace, room)
        if (rooms := self._rooms_of.get((namespace, sid))) is not None:
            rooms.pop(room, None)
            if not rooms:
                del self._rooms_of[namespace, sid]

    def basic_disconnect(self, sid: str, namespace: str, **_: Any) -> None:
        for room in list(self._rooms_of.get((namespace, sid), ())):
            self.basic_leave_room(sid, namespace, room)
        self.callbacks.pop(sid, None)
        for pending in (self.pending_connect, self.pending_disconnect):
            if (sessions := pending.get(namespace)) is not None:
                sessions.pop(sid, None)
                if not sessions:
                    del pending[namespace]


class AsyncClient(socketio.AsyncClient):  # type: ignore[misc]  # python-socketio ships no types
    """A client with an Engine.IO client of ours. Its events and acks are not answered by the library."""

    def engine_class(self) -> type[engineio_internals.AsyncClient]:
        """The class of its Engine.IO client."""
        return engineio_internals.AsyncClient

    @property
    def awaits_attachments(self) -> bool:
        """Whether a packet has arrived whose attachments are still missing."""
        return self._binary_packet is not None

    async def handle_event(self, namespace: str | None, ack_id: int | None, data: Any) -> None:
        """An event whose attachments have all arrived."""
        await super()._handle_event(namespace, ack_id, data)

    async def handle_ack(self, namespace: str | None, ack_id: int | None, data: Any) -> None:
        """An ack whose attachments have all arrived."""
        await super()._handle_ack(namespace, ack_id, data)

    async def send_packet(self, pkt: Packet) -> None:
        await self._send_packet(pkt)

    def _engineio_client_class(self) -> type:
        return self.engine_class()

    async def _handle_event(self, namespace: str | None, id: int | None, data: Any) -> None:
        await self.handle_event(namespace, id, data)

    async def _handle_ack(self, namespace: str | None, id: int | None, data: Any) -> None:
        await self.handle_ack(namespace, id, data)
