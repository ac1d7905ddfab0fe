"""How python-socketio is set up for the protocol: its options."""

import logging
from typing import Any

from a2c_smcp.packets import ServerPacket
from a2c_smcp.smcp import SMCP_NAMESPACE
from a2c_smcp.utils.limited_log import SparseFilter

__all__ = ["server_options", "sync_server_options"]

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
