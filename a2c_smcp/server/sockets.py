"""Engine.IO sockets that bound what a peer may do: one that has shown no key yet, one that reads too slowly, one whose
frames make no sense, one that is gone.

Knows packets and bytes, nothing of offices. Serves whatever python-socketio server the namespace is mounted in: each
connection is given our class when it opens.
"""

import time
from collections.abc import Container
from functools import partial
from typing import Any, Final

from a2c_smcp.server.admission import Admission, peer_of
from a2c_smcp.server.async_socket import BoundedAsyncSocket
from a2c_smcp.server.boundary import remote_address
from a2c_smcp.server.outbox import Outbox
from a2c_smcp.server.socket_bounds import TOO_MANY, Take
from a2c_smcp.server.threaded_socket import BoundedSocket
from a2c_smcp.utils.engineio_internals import adopt, lighten, scope_of
from a2c_smcp.utils.loop_turns import OwnTurn
from a2c_smcp.utils.socketio_internals import (
    CONNECT,
    SocketIOServer,
    handled_namespaces,
    namespaces_of,
    not_noted_session_of,
    session_of,
)

__all__ = ["BoundedAsyncSocket", "BoundedSocket", "adopt_sockets", "open_socket", "release_polls", "unwritten_sockets"]

_CONNECT: Final = str(CONNECT)


def adopt_sockets(
    server: SocketIOServer, namespace: str, admission: Admission, take: Take, let_in: Container[str]
) -> None:
    """Make every connection that opens from now on obey the rules of admission. It has some time to join a namespace.

    `take` is offered every message first, in the order of arrival. `let_in` has the sessions that are in the namespace.
    """
    handlers = server.eio.handlers
    connected, handle, disconnected = handlers["connect"], handlers["message"], handlers["disconnect"]
    limits = admission.limits

    def take_in(eio_sid: str, kind: type, environ: Any) -> bool:
        """Make the connection one of ours, unless its address has too many."""
        socket = server.eio.sockets[eio_sid]
        _adopt(socket, kind, limits.queued_bytes)
        socket.take = take
        socket.admission = admission
        socket.address = remote_address(environ)
        socket.has_joined = partial(_has_joined, server, eio_sid)
        socket.is_elsewhere = partial(_is_elsewhere, server, eio_sid, namespace)
        socket.connect_timeout = limits.connect_timeout
        socket.join_by = time.monotonic() + limits.connect_timeout
        scope = scope_of(environ)
        peer = peer_of(scope)
        if peer is not None and peer.place is not None and peer.place.is_open:
            socket.place = peer.place.pass_on()
            # A websocket ends with its session. What is polled over can go on, and ask for other things.
            socket.giver = peer if scope and scope["type"] == "http" else None
        else:
            socket.place = admission.addresses.knock(socket.address)
        if socket.place is None:
            admission.address_log.warn(socket.address, "refused a connection from %s: too many of them", socket.address)
        return socket.place is not None

    async def on_connect(eio_sid: str, environ: Any) -> Any:
        return await connected(eio_sid, environ) if take_in(eio_sid, BoundedAsyncSocket, environ) else TOO_MANY

    def on_connect_threaded(eio_sid: str, environ: Any) -> Any:
        return connected(eio_sid, environ) if take_in(eio_sid, BoundedSocket, environ) else TOO_MANY

    # The libraries log a traceback for a packet that does not decode.

    def complain_of(eio_sid: str, error: Exception) -> None:
        if (socket := server.eio.sockets.get(eio_sid)) is not None:
            socket.note_bad_frame(error)

    def fault_of(eio_sid: str, error: Exception, data: Any) -> Exception:
        if _is_connect(data) and eio_sid in server.eio.sockets:
            raise error  # from a connect handler, which is not ours: worth a traceback
        return error

    async def on_message(eio_sid: str, data: Any) -> None:
        fault = _fault_of_connect(server.packet_class, data)
        if fault is None:
            try:
                await handle(eio_sid, data)
            except Exception as error:
                fault = fault_of(eio_sid, error, data)
        if fault is not None:
            complain_of(eio_sid, fault)

    def on_message_threaded(eio_sid: str, data: Any) -> None:
        fault = _fault_of_connect(server.packet_class, data)
        if fault is None:
            try:
                handle(eio_sid, data)
            except Exception as error:
                fault = fault_of(eio_sid, error, data)
        if fault is not None:
            complain_of(eio_sid, fault)

    # A connection may end before python-socketio has noted that it was let in.

    async def on_disconnect(eio_sid: str, *reason: Any) -> None:
        if (sid := not_noted_session_of(server, namespace, eio_sid, let_in)) is not None:
            await server.manager.connect(sid, namespace)
        await disconnected(eio_sid, *reason)

    def on_disconnect_threaded(eio_sid: str, *reason: Any) -> None:
        if (sid := not_noted_session_of(server, namespace, eio_sid, let_in)) is not None:
            server.manager.connect(sid, namespace)
        disconnected(eio_sid, *reason)

    asyncio_based = server.is_asyncio_based()
    if asyncio_based:
        lighten(server.eio)
    server.eio.on("connect", on_connect if asyncio_based else on_connect_threaded)
    server.eio.on("message", on_message if asyncio_based else on_message_threaded)
    server.eio.on("disconnect", on_disconnect if asyncio_based else on_disconnect_threaded)


def open_socket(server: SocketIOServer, eio_sid: str) -> BoundedAsyncSocket | None:
    """The connection of this id, if there is one."""
    socket = server.eio.sockets.get(eio_sid)
    return socket if isinstance(socket, BoundedAsyncSocket) else None


def unwritten_sockets(server: SocketIOServer) -> list[BoundedAsyncSocket]:
    """The connections whose clients have not read yet all that was queued for them."""
    sockets = [each for each in server.eio.sockets.values() if isinstance(each, BoundedAsyncSocket)]
    return [each for each in sockets if not each.closed and not each.is_written_out]


def release_polls(server: SocketIOServer) -> None:
    """Let every waiting long poll return, so that the web server can stop without cutting it off."""
    for socket in list(server.eio.sockets.values()):
        if not socket.upgraded:
            socket.queue.put_nowait(None)


def _adopt(socket: Any, kind: type, queued_bytes: int) -> None:
    adopt(socket, kind)
    socket.outbox = Outbox(queued_bytes)
    socket._turn = OwnTurn()


def _has_joined(server: SocketIOServer, eio_sid: str) -> bool:
    return any(namespaces_of(server, eio_sid))


def _is_elsewhere(server: SocketIOServer, eio_sid: str, ours: str) -> bool:
    """Whether another namespace of this server, an application's own, has let the connection in.

    python-socketio accepts every client in a namespace without handlers that it is told to accept, by default `/`.
    """
    return any(each != ours and session_of(server, each, eio_sid) for each in handled_namespaces(server))


def _is_connect(data: Any) -> bool:
    return isinstance(data, str) and data.startswith(_CONNECT)


def _fault_of_connect(packet_class: Any, data: Any) -> Exception | None:
    """Why a CONNECT packet does not decode; `None` if it does, or is another packet. They are small."""
    try:
        if _is_connect(data):
            packet_class(encoded_packet=data)
    except Exception as error:
        # Whatever a peer may send: the libraries' decoders raise what they come upon.
        return error
    return None
