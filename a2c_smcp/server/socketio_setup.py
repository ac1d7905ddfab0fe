"""How python-socketio is set up for the protocol: its options, which packets it is left, and ack ids that mean one call
and no other.
"""

import itertools
import logging
import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from socketio.packet import ACK, BINARY_ACK, BINARY_EVENT, EVENT

from a2c_smcp.errors import NotFoundError, PayloadTooLargeError
from a2c_smcp.packets import Head, SMCPPacket, read_head
from a2c_smcp.server.broadcast import SMCPManager
from a2c_smcp.server.limited_log import SparseFilter
from a2c_smcp.smcp import SMCP_NAMESPACE
from a2c_smcp.wire import exceeds

__all__ = [
    "Incoming",
    "encode_request",
    "expected_ack",
    "forget_ack",
    "server_options",
    "sort_packet",
    "sync_server_options",
    "use_unique_ack_ids",
]

# At INFO the libraries log every packet, the one with a client's token among them.
_libraries = logging.getLogger(f"{__name__}.libraries")
_libraries.setLevel(logging.WARNING)
# They warn of whatever a peer does, as often as it does it.
_libraries.addFilter(SparseFilter())

# A client acks on whatever connection it has now, so after a reconnect a late ack could answer another call: ids are
# unique in the process, and start anywhere so that a restarted process does not repeat them. JavaScript counts to
# 2**53.
_COUNTER: Final = itertools.count(random.randrange(2**40, 2**50))


def server_options(max_message: int, ping_interval: float = 10.0, ping_timeout: float = 10.0) -> dict[str, Any]:
    """Arguments for `socketio.AsyncServer` that lift the libraries' limits to the protocol's.

    `max_message` is that of `Limits`; pings are in seconds.
    """
    return {
        **sync_server_options(max_message, ping_interval, ping_timeout),
        "async_mode": "asgi",
        "client_manager": SMCPManager(),
    }


def sync_server_options(max_message: int, ping_interval: float = 10.0, ping_timeout: float = 10.0) -> dict[str, Any]:
    """Arguments for `socketio.Server` that lift the libraries' limits to the protocol's, like `server_options`."""
    return {
        "serializer": SMCPPacket,
        # The namespaces that accept clients without a handler of their own. By default `/` accepts every client.
        "namespaces": [SMCP_NAMESPACE],
        "max_http_buffer_size": max_message,
        "ping_interval": ping_interval,
        "ping_timeout": ping_timeout,
        "logger": _libraries,
        "engineio_logger": _libraries,
    }


# --- incoming packets

#: What a packet that is neither an event nor an ack may have: python-socketio builds whatever it carries.
_MOST_ELSE: Final = 16 * 1024


class Incoming(NamedTuple):
    """A packet and the session that sent it. Without a session the packet is dropped: its sender may not send it."""

    sid: str | None
    head: Head


def sort_packet(server: Any, namespace: str, eio_sid: str, text: str) -> Incoming | None:
    """Whose packet this is; `None` for those that are python-socketio's to read. Raises `ValueError`.

    It builds whatever a packet carries before it looks who sent it.
    """
    head = read_head(text)
    if head.packet_type not in (EVENT, ACK, BINARY_EVENT, BINARY_ACK):
        if len(head.body) > _MOST_ELSE:
            raise ValueError(f"a packet of type {head.packet_type} has more than {_MOST_ELSE} characters")
        return None
    manager = server.manager
    where = head.namespace or "/"
    sid = manager.sid_from_eio_sid(eio_sid, where)
    if sid is None or not manager.is_connected(sid, where):
        return Incoming(None, head)
    return Incoming(sid, head) if where == namespace and head.packet_type in (EVENT, ACK) else None


# --- acks


# python-socketio keeps a session's counter where the callback of ack 0 would be. A peer that acks 0 must neither break
# nor use up what numbers its requests.


class _AckIds:
    def __next__(self) -> int:
        return next(_COUNTER)

    def __call__(self, *_: object) -> None:
        pass


class _Callbacks(dict[int, Any]):
    def __delitem__(self, ack_id: int) -> None:
        if ack_id:
            super().__delitem__(ack_id)


def use_unique_ack_ids(manager: Any, sid: str) -> None:
    """Make python-socketio number what this session is asked from the process's own counter instead of from 1."""
    manager.callbacks[sid] = _Callbacks({0: _AckIds()})


def encode_request(
    server: Any, namespace: str, sid: str, event: str, body: str, callback: Callable[..., None], max_message: int
) -> tuple[int, str]:
    """Number an event that wants an ack: its ack id, and the packet with its JSON as it came.

    Raises `PayloadTooLargeError`, with nothing left behind, when the receiver would drop its connection over it, and
    `NotFoundError` when the receiver has gone.
    """
    if (callbacks := server.manager.callbacks.get(sid)) is None:
        raise NotFoundError("the computer has gone")
    ack_id = next(_COUNTER)
    text = f"{EVENT}{namespace},{ack_id}{body}"
    if exceeds(text, max_message):
        raise PayloadTooLargeError(f"{event} has more than {max_message} bytes")
    callbacks[ack_id] = callback
    return ack_id, text


def expected_ack(manager: Any, sid: str, ack_id: int | None) -> Any:
    """What waits for this ack of a session's; `None` when nothing does."""
    return manager.callbacks.get(sid, {}).get(ack_id) if ack_id else None


def forget_ack(manager: Any, sid: str, ack_id: int | None) -> None:
    """Drop the callback of an ack that is no longer waited for."""
    manager.callbacks.get(sid, {}).pop(ack_id, None)
