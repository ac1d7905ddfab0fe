"""What the kit uses of mcp's server that mcp's documentation does not offer; `test_mcp_server_internals.py` names each
thing, so that an upgrade of mcp fails there.

- `FuncMetadata` and `func_metadata` are mcp's own reading of a typed function: its arguments, its schemas, its result.
- `connection_of`: a session's state lives in its connection until that ends, and a handler is given the session alone.
- `SUBSCRIPTION_ID_META_KEY` marks the notifications of a listen stream.
- `was_taken_back`: a request knows whether its client cancelled it, and a handler is given the session alone.
- `is_cancelled_answer`: over HTTP mcp answers a cancelled request of the old era with an error of this code. MCP says
  that such a request gets no answer.
- Over HTTP mcp asks its server for `create_initialization_options()` itself: `server._LowLevelServer` overrides it.
"""

import json
from typing import Any, cast

from mcp.server.connection import Connection
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata, func_metadata
from mcp.server.session import ServerSession
from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

__all__ = [
    "REQUEST_CANCELLED",
    "SUBSCRIPTION_ID_META_KEY",
    "Connection",
    "FuncMetadata",
    "connection_of",
    "func_metadata",
    "is_cancelled_answer",
    "was_taken_back",
]

_CODE = f'"code":{REQUEST_CANCELLED}'.encode()


def connection_of(session: ServerSession) -> Connection:
    """The connection of a request."""
    return session._connection


def was_taken_back(session: ServerSession) -> bool:
    """Whether the client cancelled this request with a message. A client that has gone sends none; nor does one that
    closes the stream of its request, as MCP over HTTP does since 2026-07-28.
    """
    return session._request_outbound.cancel_requested.is_set()


def is_cancelled_answer(event: bytes) -> bool:
    """Whether an event on an HTTP stream is mcp's answer to a cancelled request."""
    if _CODE not in event:
        return False
    _, _, data = event.partition(b"data: ")
    try:
        message = json.loads(data.split(b"\r\n", 1)[0])
    except ValueError:
        return False
    error = cast("dict[str, Any]", message).get("error") if isinstance(message, dict) else None
    return isinstance(error, dict) and error.get("code") == REQUEST_CANCELLED
