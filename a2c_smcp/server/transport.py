"""How python-socketio is set up for the protocol: its options, and ack ids that mean one call and no other."""

import itertools
import logging
import random
from collections.abc import Callable
from typing import Any, Final

from socketio.packet import EVENT

from a2c_smcp.errors import NotFoundError, PayloadTooLargeError
from a2c_smcp.packets import SMCPPacket
from a2c_smcp.server.broadcast import SMCPManager
from a2c_smcp.wire import exceeds

__all__ = ["encode_request", "forget_ack", "server_options", "sync_server_options", "use_unique_ack_ids"]

# At INFO the libraries log every packet, the one with a client's token among them.
_libraries = logging.getLogger("a2c_smcp.server.libraries")
_libraries.setLevel(logging.WARNING)

# A client acks on whatever connection it has now, so after a reconnect a late ack could answer another call: ids are
# unique in the process, and start anywhere so that a restarted process does not repeat them. JavaScript counts to
# 2**53.
_COUNTER: Final = itertools.count(random.randrange(2**40, 2**50))


def server_options(max_message: int, ping_interval: float = 10.0, ping_timeout: float = 10.0) -> dict[str, Any]:
    """Arguments for `socketio.AsyncServer` that lift the libraries' limits to the protocol's."""
    return {
        **sync_server_options(max_message, ping_interval, ping_timeout),
        "async_mode": "asgi",
        "client_manager": SMCPManager(),
    }


def sync_server_options(max_message: int, ping_interval: float = 10.0, ping_timeout: float = 10.0) -> dict[str, Any]:
    """Arguments for `socketio.Server`, likewise."""
    return {
        "serializer": SMCPPacket,
        "max_http_buffer_size": max_message,
        "ping_interval": ping_interval,
        "ping_timeout": ping_timeout,
        "logger": _libraries,
        "engineio_logger": _libraries,
    }


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
    server: Any, namespace: str, sid: str, event: str, data: Any, callback: Callable[..., None], max_message: int
) -> tuple[int, Any]:
    """Number and encode an event that wants an ack: its ack id, and what to hand to Engine.IO.

    Raises `PayloadTooLargeError`, with nothing left behind, when the receiver would drop its connection over it, and
    `NotFoundError` when the receiver has gone.
    """
    if (callbacks := server.manager.callbacks.get(sid)) is None:
        raise NotFoundError("the computer has gone")
    ack_id = next(_COUNTER)
    callbacks[ack_id] = callback
    try:
        encoded = server.packet_class(EVENT, namespace=namespace, data=[event, data], id=ack_id).encode()
        if isinstance(encoded, str) and exceeds(encoded, max_message):
            raise PayloadTooLargeError(f"{event} has more than {max_message} bytes")
    except BaseException:
        forget_ack(server.manager, sid, ack_id)
        raise
    return ack_id, encoded


def forget_ack(manager: Any, sid: str, ack_id: int | None) -> None:
    """Drop the callback of an ack that is no longer waited for."""
    manager.callbacks.get(sid, {}).pop(ack_id, None)
