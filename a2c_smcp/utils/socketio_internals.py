"""What we use of python-socketio that its documentation does not offer; `test_socketio_internals.py` names each thing.

Nothing else in the package imports `socketio.packet`, or overrides a method of the library whose name begins with an
underscore.

- *Packets* (`Packet`, the numbers of their types): ours, the documented `serializer`, reads a packet itself, and counts
  its attachments instead of keeping them.
- *A server* (`SocketIOServer`) has its Engine.IO server as `eio`, the `environ` of every connection that is open, and a
  `manager`, which knows who is connected, and which callback waits for which ack. Why: we take events and acks off
  their connection before the library builds what they carry, and number requests ourselves.
- *A namespace* is told its server by `_set_server`. Why: that is the moment to change how connections open.
- *A manager* of ours hears of everyone who enters and leaves a room, and finds their connections. Why: a broadcast is
  encoded once and queued without a task for each receiver. It also knows the rooms of each session, and
  `basic_disconnect` is ours: when a session ends, the library's looks through the rooms of all. The library searches
  its lists `pending_connect` and `pending_disconnect` for every packet. Here they are dictionaries.
- *A client* asks `_engineio_client_class` for the class of its Engine.IO client, and calls `_handle_event` and
  `_handle_ack` for a packet whose attachments are complete; until then it is kept as `_binary_packet`. Why: messages
  are taken off the websocket without a task, a timer or a queue for each.
"""

import itertools
import random
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Final, Protocol

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
    "connections_in",
    "expect_ack",
    "expected_ack",
    "forget_ack",
    "handled_namespaces",
    "is_connected",
    "is_open",
    "namespaces_of",
    "next_ack_id",
    "not_noted_session_of",
    "session_of",
    "socket_of",
    "use_unique_ack_ids",
]


class Manager(Protocol):
    """Any of the library's managers."""

    callbacks: MutableMapping[str, MutableMapping[int, Any]]
    """The callbacks by session and ack id. Key 0 has the counter that numbers the requests to the session."""
    rooms: Mapping[str, Mapping[str | None, Mapping[str, str]]]
    """By namespace and room: the sessions with their connections. The room `None` has all sessions."""

    def is_connected(self, sid: str, namespace: str) -> bool: ...
    def is_pre_connected(self, sid: str, namespace: str) -> bool: ...
    def connect(self, sid: str, namespace: str) -> Any: ...
    def sid_from_eio_sid(self, eio_sid: str, namespace: str) -> str | None: ...
    def eio_sid_from_sid(self, sid: str, namespace: str) -> str | None: ...
    def get_namespaces(self) -> Iterable[str]: ...
    def get_participants(self, namespace: str, room: str) -> Iterable[tuple[str, str]]: ...
    def basic_leave_room(self, sid: str, namespace: str, room: str | None) -> None: ...


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


def connections_in(server: SocketIOServer, namespace: str, room: str) -> list[tuple[str, str]]:
    """The current sessions in a room, with the ids of their connections."""
    return list(server.manager.get_participants(namespace, room))


def namespaces_of(server: SocketIOServer, eio_sid: str) -> Iterator[str]:
    """The namespaces where a connection has a session, or asks for one."""
    manager = server.manager
    return (each for each in list(manager.get_namespaces()) if manager.sid_from_eio_sid(eio_sid, each))


def handled_namespaces(server: SocketIOServer) -> set[str]:
    """The namespaces with handlers. The library may accept others."""
    return {*server.handlers, *server.namespace_handlers}


# --- acks

# A client acks on its current connection, so after a reconnect a late ack could answer another call. Therefore ids are
# unique in the process. They start at a random number, so that a restarted process does not repeat them. JavaScript
# counts to 2**53.
_COUNTER: Final = itertools.count(random.randrange(2**40, 2**50))

# The library keeps a session's counter where the callback of ack 0 would be. A peer that acks 0 must neither break that
# counter nor use it up.


class _AckIds:
    def __next__(self) -> int:
        return next_ack_id()

    def __call__(self, *_: object) -> None:
        pass


class _Callbacks(dict[int, Any]):
    def __delitem__(self, ack_id: int) -> None:
        if ack_id:
            super().__delitem__(ack_id)


def next_ack_id() -> int:
    return next(_COUNTER)


def use_unique_ack_ids(server: SocketIOServer, sid: str) -> None:
    """Let the library number the requests to this session with the process's own counter instead of from 1."""
    server.manager.callbacks[sid] = _Callbacks({0: _AckIds()})


def expect_ack(server: SocketIOServer, sid: str, ack_id: int, callback: Callable[..., None]) -> bool:
    """Call this function when the ack comes. Returns `False` if the session has gone."""
    if (callbacks := server.manager.callbacks.get(sid)) is None:
        return False
    callbacks[ack_id] = callback
    return True


def expected_ack(server: SocketIOServer, sid: str, ack_id: int | None) -> Any:
    """The callback that waits for this ack of a session; `None` if there is none."""
    return server.manager.callbacks.get(sid, {}).get(ack_id) if ack_id else None


def forget_ack(server: SocketIOServer, sid: str, ack_id: int | None) -> None:
    """Drop the callback of an ack that nobody waits for any more."""
    if ack_id is not None:
        server.manager.callbacks.get(sid, {}).pop(ack_id, None)


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
    """A manager that hears who enters and leaves which room. What the end of a session costs does not depend on how
    many others there are.
    """

    server: SocketIOServer
    rooms: Mapping[str, Mapping[str | None, Mapping[str, str]]]

    def __init__(self) -> None:
        super().__init__()
        self.pending_connect: dict[str, _PendingSessions] = _PendingByNamespace()
        self.pending_disconnect: dict[str, _PendingSessions] = _PendingByNamespace()
        self._rooms_of: dict[tuple[str, str], dict[str | None, None]] = {}
        """By namespace and session."""

    def entered(self, sid: str, namespace: str, room: str) -> None:
        """Not called for a session's own room."""

    def left(self, sid: str, namespace: str, room: str) -> None: ...

    def connections_in(self, namespace: str, room: str) -> Mapping[str, str]:
        """The sessions in a room and the ids of their connections."""
        return self.rooms.get(namespace, {}).get(room, {})

    def enter(self, sid: str, namespace: str, room: str) -> None:
        """Put a connected session into a room at once. The library's own method has to be awaited."""
        self.basic_enter_room(sid, namespace, room)

    def leave(self, sid: str, namespace: str, room: str) -> None:
        self.basic_leave_room(sid, namespace, room)

    def basic_enter_room(self, sid: str, namespace: str, room: str | None, eio_sid: str | None = None) -> None:
        super().basic_enter_room(sid, namespace, room, eio_sid)
        self._rooms_of.setdefault((namespace, sid), {})[room] = None
        if room is not None and room != sid:
            self.entered(sid, namespace, room)

    def basic_leave_room(self, sid: str, namespace: str, room: str | None) -> None:
        super().basic_leave_room(sid, namespace, room)
        if (rooms := self._rooms_of.get((namespace, sid))) is not None:
            rooms.pop(room, None)
            if not rooms:
                del self._rooms_of[namespace, sid]
        if room is not None:
            self.left(sid, namespace, room)

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
