"""How python-socketio is set up for the protocol: its options, which packets it still reads."""

import logging
from collections.abc import Container
from typing import Any, Final, NamedTuple

from a2c_smcp.packet_text import Head, read_head
from a2c_smcp.packets import ServerPacket
from a2c_smcp.smcp import SMCP_NAMESPACE
from a2c_smcp.utils.limited_log import SparseFilter
from a2c_smcp.utils.socketio_internals import (
    ACK,
    BINARY_ACK,
    BINARY_EVENT,
    EVENT,
    RoomManager,
    SocketIOServer,
    session_of,
)

__all__ = ["Incoming", "bounded_options", "server_options", "sort_packet", "sync_server_options"]

# At INFO the libraries log every packet, also the one with a client's token.
_libraries = logging.getLogger(f"{__name__}.libraries")
_libraries.setLevel(logging.WARNING)
# They warn each time when a peer does something wrong.
_libraries.addFilter(SparseFilter())


def server_options(max_message: int, ping_interval: float = 10.0, ping_timeout: float = 10.0) -> dict[str, Any]:
    """Arguments for `socketio.AsyncServer` that lift the libraries' limits to the protocol's.

    `max_message` is that of `Limits`; pings are in seconds.
    """
    return {
        **sync_server_options(max_message, ping_interval, ping_timeout),
        "async_mode": "asgi",
    }


def bounded_options(max_message: int, ping_interval: float = 10.0, ping_timeout: float = 10.0) -> dict[str, Any]:
    """The same for a server whose connections are ours."""
    return {**server_options(max_message, ping_interval, ping_timeout), "client_manager": RoomManager()}


def sync_server_options(max_message: int, ping_interval: float = 10.0, ping_timeout: float = 10.0) -> dict[str, Any]:
    """Arguments for `socketio.Server` that lift the libraries' limits to the protocol's, like `server_options`."""
    return {
        "serializer": ServerPacket,
        # The namespaces that accept clients without a handler of their own. By default `/` accepts every client.
        "namespaces": [SMCP_NAMESPACE],
        "max_http_buffer_size": max_message,
        # Engine.IO compresses the answer to a poll on the event loop: seconds for one MiB.
        "http_compression": False,
        "ping_interval": ping_interval,
        "ping_timeout": ping_timeout,
        "logger": _libraries,
        "engineio_logger": _libraries,
    }


# --- incoming packets

#: Characters of a packet that is neither an event nor an ack: python-socketio decodes everything in it.
_MOST_ELSE: Final = 16 * 1024


class Incoming(NamedTuple):
    """A packet and the session that sent it. If there is no session, the packet is dropped."""

    sid: str | None
    head: Head


def sort_packet(
    server: SocketIOServer, namespace: str, eio_sid: str, let_in: Container[str], text: str
) -> Incoming | None:
    """Say whose packet this is; `None` if python-socketio must read it. Raises `ValueError` if it is too large.

    python-socketio decodes everything in a packet before it looks who sent it.
    """
    head = read_head(text)
    if head.packet_type not in (EVENT, ACK, BINARY_EVENT, BINARY_ACK):
        if len(head.body) > _MOST_ELSE:
            raise ValueError(f"a packet of type {head.packet_type} has more than {_MOST_ELSE} characters")
        return None
    where = head.namespace or "/"
    if (sid := session_of(server, where, eio_sid, let_in)) is None:
        return Incoming(None, head)
    return Incoming(sid, head) if where == namespace and head.packet_type in (EVENT, ACK) else None
