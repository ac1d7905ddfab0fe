"""How every connection of a python-socketio server becomes one of our bounded Engine.IO sockets when it opens.

Works with any python-socketio server that the namespace is mounted in. Knows packets and bytes, nothing of offices.
"""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any, Final

from a2c_smcp.server.async_socket import BoundedAsyncSocket
from a2c_smcp.server.socket_bounds import TOO_MANY, ServerDoor
from a2c_smcp.utils.engineio_internals import adopt, lighten
from a2c_smcp.utils.socketio_internals import CONNECT, SocketIOServer, not_noted_session_of

__all__ = [
    "BoundedAsyncSocket",
    "adopt_sockets",
    "open_socket",
    "release_polls",
]

_CONNECT: Final = str(CONNECT)


def adopt_sockets(door: ServerDoor, let_in: Container[str]) -> None:
    """Make every connection that opens from now on obey the rules of admission. It has some time to join a namespace.

    `let_in` has the sessions that are in the namespace.
    """
    eio = door.server.eio
    lighten(eio)
    handlers = _AsyncHandlers(door, let_in)
    eio.on("connect", handlers.on_connect)
    eio.on("message", handlers.on_message)
    eio.on("disconnect", handlers.on_disconnect)


class _Handlers:
    """Handlers of Engine.IO that stand before python-socketio's own handlers."""

    def __init__(self, door: ServerDoor, let_in: Container[str]) -> None:
        self._door = door
        self._let_in = let_in
        self._eio = door.server.eio
        self._connected, self._handle, self._disconnected = map(
            self._eio.handlers.__getitem__, ("connect", "message", "disconnect")
        )

    def _take_in(self, eio_sid: str, kind: type, environ: Any) -> bool:
        socket = self._eio.sockets[eio_sid]
        adopt(socket, kind)
        return bool(socket.open(self._door, environ))

    @contextmanager
    def _without_traceback(self, eio_sid: str, data: Any) -> Iterator[bool]:
        """Count a packet that does not decode; the libraries would log a traceback. Yields whether to handle it."""
        fault = _fault_of_connect(self._door.server.packet_class, data)
        try:
            yield fault is None
        except Exception as error:
            if _is_connect(data) and eio_sid in self._eio.sockets:
                raise  # from a connect handler, which is not our code: worth a traceback
            fault = error
        if fault is not None and (socket := self._eio.sockets.get(eio_sid)) is not None:
            socket.note_bad_frame(fault)

    def _not_noted(self, eio_sid: str) -> str | None:
        """The session of a connection that ends before python-socketio has noted that it was let in."""
        return not_noted_session_of(self._door.server, self._door.namespace, eio_sid, self._let_in)


class _AsyncHandlers(_Handlers):
    async def on_connect(self, eio_sid: str, environ: Any) -> Any:
        is_in = self._take_in(eio_sid, BoundedAsyncSocket, environ)
        return await self._connected(eio_sid, environ) if is_in else TOO_MANY

    async def on_message(self, eio_sid: str, data: Any) -> None:
        with self._without_traceback(eio_sid, data) as decodes:
            if decodes:
                await self._handle(eio_sid, data)

    async def on_disconnect(self, eio_sid: str, *reason: Any) -> None:
        if (sid := self._not_noted(eio_sid)) is not None:
            await self._door.server.manager.connect(sid, self._door.namespace)
        await self._disconnected(eio_sid, *reason)


def _is_connect(data: Any) -> bool:
    return isinstance(data, str) and data.startswith(_CONNECT)


def _fault_of_connect(packet_class: Any, data: Any) -> Exception | None:
    """Why a CONNECT packet does not decode; `None` if it decodes, or is another packet. CONNECT packets are small."""
    try:
        if _is_connect(data):
            packet_class(encoded_packet=data)
    except Exception as error:
        # Peers send anything, and the decoders of the libraries raise anything.
        return error
    return None


def open_socket(server: SocketIOServer, eio_sid: str) -> BoundedAsyncSocket | None:
    """The connection of this id, if there is one."""
    socket = server.eio.sockets.get(eio_sid)
    return socket if isinstance(socket, BoundedAsyncSocket) else None


def release_polls(server: SocketIOServer) -> None:
    """Let every waiting long poll return, so that the web server can stop without cutting it off."""
    for socket in list(server.eio.sockets.values()):
        if not socket.upgraded:
            socket.queue.put_nowait(None)
