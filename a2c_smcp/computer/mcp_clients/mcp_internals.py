"""What the Computer uses of mcp and mcp_types that their documentation does not offer. No other module of `computer/`
imports such a thing. `test_mcp_internals.py` names each of them, so that an upgrade of mcp fails there.

- `Client` makes its session on a `Dispatcher`, but accepts none: its own `_connect` makes one. `client_over` replaces
  `_connect`. The rest of `Client` stays: the handshake of either era, listen streams, rounds of `input_required`.
- A `Dispatcher` of our own needs what mcp's dispatcher is written with: `CallOptions`, `OnRequest`, `OnNotify`,
  `OnNotifyIntercept`, `Outbound`, `ProgressFnT` and `TransportContext` are the types of its methods. With
  `as_request_id`, `coerce_request_id`, `cancelled_request_id_from_params`, `progress_token_from_params`,
  `run_notify_intercept`, `handler_exception_to_error_data` and `NoBackChannelError` it reads ids and answers failures
  as mcp does.
- Over HTTP mcp's own `JSONRPCDispatcher` is used, on the streams of mcp's transports (`SessionMessage`,
  `TransportStreams`). Our streams stand around them: they tell when a server was last heard, and repair what mcp's
  streams cannot encode. `last_context` is an attribute that mcp's streams have besides their items.
- `IncomingMessage` is what a client's `message_handler` is called with.
- `MODERN_PROTOCOL_VERSIONS` are the versions since 2026-07-28. `parse_server_result` validates an answer by its
  version, so that one tool with an invalid definition can be left out of a list.
- `discover` and `ping` send requests that `Client` sends only while it connects. `check_tool_result` validates the
  result of a call that did not go through `Client`.
- `says_gone` and `lacks_back_channel` read the words of mcp's errors: their codes are not enough.
- mcp's client logs what a server got wrong under `client` and the names of its transports, with a traceback in which
  pydantic quotes what was sent, perhaps a secret. `_Brief` leaves one line of it.
"""

import logging
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Final, cast

import mcp_types as types
from mcp import MCPError
from mcp.client._transport import Transport, TransportStreams
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
from mcp_types.methods import parse_server_result
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
    "SessionMessage",
    "TransportContext",
    "TransportStreams",
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
    """Log records without tracebacks. Of records with the same text, one a second passes."""

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
    """A client that enters `way` when it is entered itself, and speaks over the dispatcher of `way`."""

    async def connect(stack: AsyncExitStack, *_: object) -> Dispatcher[Any]:
        return await stack.enter_async_context(way)

    client = Client(cast(Transport, way), **options)
    client._connect = connect
    return client


async def discover(client: Client, version: str) -> None:
    """Ask a server what it can do. mcp does not ask a server whose version is given."""
    found = await client.session.send_discover(version)
    client.session.adopt(types.DiscoverResult.model_validate(found))


async def ping(client: Client) -> None:
    """Ask whether the server is there, with the request of its era."""
    if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
        await client.session.send_discover(client.protocol_version)
    else:
        await client.session.send_ping()


async def check_tool_result(client: Client, name: str, result: types.CallToolResult) -> None:
    """Raise what `Client.call_tool` raises if the result breaks the output schema of its tool."""
    await client.session.validate_tool_result(name, result)


def lacks_back_channel(error: MCPError) -> bool:
    """Whether the error says that a server on mcp's SDK could not ask: its session is of 2026-07-28, but the server
    asks in the older way.
    """
    return error.code == types.INVALID_REQUEST and "no back-channel" in error.message


def says_gone(error: MCPError) -> bool:
    """Whether an error means that the session is over: mcp closed it, or an HTTP server has forgotten it."""
    # The text counts, too: servers may use -32000 for errors of their own.
    match error.code:
        case types.CONNECTION_CLOSED:
            return error.message == "Connection closed" or error.message.startswith("SSE stream ")
        case types.INVALID_REQUEST:
            return error.message == "Session terminated"
    return False
