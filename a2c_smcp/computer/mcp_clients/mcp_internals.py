"""What the Computer uses of mcp and mcp_types that their documentation does not offer. Nothing else in `computer/`
imports such a thing, and `test_mcp_internals.py` names each of them, so that an upgrade of mcp fails there.

- `Client` makes its session on a `Dispatcher`, and takes none: it asks its own `_connect` for one. `client_over` sets
  that, and keeps the rest of `Client` as it is: the handshake of either era, listen streams, rounds of
  `input_required`.
- A `Dispatcher` of our own needs what mcp's dispatcher is written with: `CallOptions`, `OnRequest`, `OnNotify`,
  `OnNotifyIntercept`, `Outbound`, `ProgressFnT` and `TransportContext` are the types of its methods;
  `as_request_id`, `coerce_request_id`, `cancelled_request_id_from_params`, `progress_token_from_params`,
  `run_notify_intercept`, `handler_exception_to_error_data` and `NoBackChannelError` make it read ids and answer
  failures as mcp does. Over HTTP mcp's own `JSONRPCDispatcher` is used, on the streams of mcp's transports
  (`ReadStream`, `WriteStream`, `SessionMessage`, `TransportStreams`), because only a stream of ours can tell when a
  server was last heard, or keep from mcp's what it cannot encode; `last_context` is what mcp's own streams have
  besides their items.
- `IncomingMessage` is what a client's `message_handler` is called with.
- `MODERN_PROTOCOL_VERSIONS` are the versions since 2026-07-28; `parse_server_result` validates an answer by its
  version, so that one tool with an invalid definition can be left out of a list.
- `discover` and `ping` ask a session what `Client` asks by itself only while it connects. `check_tool_result` validates
  the result of a call that did not go through `Client`.
- `says_gone` and `lacks_back_channel` read the words of mcp's errors: their codes are not enough.
- mcp's client logs under `client` and the names of its transports what a server got wrong, each time with a traceback
  in which pydantic quotes what was sent, and with it perhaps a secret. `_Brief` leaves a line of it.
"""

import logging
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Final, cast

import mcp_types as types
from mcp import MCPError
from mcp.client._transport import ReadStream, Transport, TransportStreams, WriteStream
from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp.shared.dispatcher import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    Outbound,
    ProgressFnT,
    as_request_id,
    coerce_request_id,
    run_notify_intercept,
)
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import (
    JSONRPCDispatcher,
    cancelled_request_id_from_params,
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from a2c_smcp.utils.text import cut

__all__ = [
    "MODERN_PROTOCOL_VERSIONS",
    "CallOptions",
    "Dispatcher",
    "IncomingMessage",
    "JSONRPCDispatcher",
    "NoBackChannelError",
    "OnNotify",
    "OnNotifyIntercept",
    "OnRequest",
    "Outbound",
    "ProgressFnT",
    "ReadStream",
    "SessionMessage",
    "TransportContext",
    "TransportStreams",
    "WriteStream",
    "as_request_id",
    "cancelled_request_id_from_params",
    "check_tool_result",
    "client_over",
    "coerce_request_id",
    "discover",
    "handler_exception_to_error_data",
    "lacks_back_channel",
    "parse_server_result",
    "ping",
    "progress_token_from_params",
    "run_notify_intercept",
    "says_gone",
]


_LOGGERS: Final = ("client", "mcp.client.sse", "mcp.client.streamable_http")


class _Brief(logging.Filter):
    """Log records without tracebacks, at most one a second of those that say the same."""

    def __init__(self) -> None:
        super().__init__()
        self._last = ("", 0.0)

    def filter(self, record: logging.LogRecord) -> bool:
        text = cut(record.getMessage())
        if record.exc_info and (kind := record.exc_info[0]) is not None:
            text += f" ({kind.__name__})"
        record.msg, record.args, record.exc_info, record.exc_text = "%s", (text,), None, None
        said, when = self._last
        if text == said and time.monotonic() - when < 1:
            return False
        self._last = (text, time.monotonic())
        return True


for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_Brief())


def client_over(way: AbstractAsyncContextManager[Dispatcher[Any]], **options: Any) -> Client:
    """A client that enters `way` when it is entered, and speaks over the dispatcher that this gives it."""

    async def connect(stack: AsyncExitStack, *_: object) -> Dispatcher[Any]:
        return await stack.enter_async_context(way)

    client = Client(cast(Transport, way), **options)
    client._connect = connect
    return client


async def discover(client: Client, version: str) -> None:
    """Ask a server of this version what it can do, which mcp takes a given version to have said already."""
    found = await client.session.send_discover(version)
    client.session.adopt(types.DiscoverResult.model_validate(found))


async def ping(client: Client) -> None:
    """Ask whether the server is there, in its own era."""
    if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
        await client.session.send_discover(client.protocol_version)
    else:
        await client.session.send_ping()


async def check_tool_result(client: Client, name: str, result: types.CallToolResult) -> None:
    """Raise what `Client.call_tool` raises for a result that breaks the schema of its tool."""
    await client.session.validate_tool_result(name, result)


def parse_server_result(method: str, version: str, result: Mapping[str, Any]) -> None:
    """Raise `ValidationError` for a result that this version of MCP does not allow, `KeyError` or `ValueError` for a
    version that mcp does not know.
    """
    methods.parse_server_result(method, version, result)


def lacks_back_channel(error: MCPError) -> bool:
    """Whether a server of mcp's could not ask because its session is of 2026-07-28, and it asks as before that."""
    return error.code == types.INVALID_REQUEST and "no back-channel" in error.message


def says_gone(error: MCPError) -> bool:
    """Whether an error means that the session is over: mcp closed it, or an HTTP server has forgotten it."""
    # By text as well: -32000 is also the first code that is a server's own to use.
    match error.code:
        case types.CONNECTION_CLOSED:
            return error.message == "Connection closed" or error.message.startswith("SSE stream ")
        case types.INVALID_REQUEST:
            return error.message == "Session terminated"
    return False
