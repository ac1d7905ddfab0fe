"""What `mcp_streams` uses of mcp that its documentation does not offer. No other module of `computer/` imports such a
thing, but `sign_in/`. `test_mcp_internals.py` names each of them, so that an upgrade of mcp fails there.

- Over HTTP mcp's own `JSONRPCDispatcher` is used, on the streams of mcp's transports (`SessionMessage`,
  `TransportStreams`). Our streams stand around them: they tell when a server was last heard, and repair what mcp's
  streams cannot encode. `last_context` is an attribute that mcp's streams have besides their items. `CallOptions` and
  `ProgressFnT` are the types of the dispatcher's methods.
- MCP wants HTTP headers that repeat what a request says: `MCP_METHOD_HEADER`, `MCP_NAME_HEADER`,
  `MCP_PROTOCOL_VERSION_HEADER`, `NAME_BEARING_METHODS`, `encode_header_value`, `find_invalid_x_mcp_header`,
  `mcp_param_headers` and `x_mcp_header_map` are mcp's own.
- mcp's client logs what a server got wrong under the names of its transports, with a traceback in which pydantic quotes
  what was sent, perhaps a secret. `_Brief` leaves one line of it.
"""

import logging
import time
from typing import Final

from mcp.client._transport import TransportStreams
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage

from a2c_smcp.utils.text import cut

__all__ = [
    "MCP_METHOD_HEADER",
    "MCP_NAME_HEADER",
    "MCP_PROTOCOL_VERSION_HEADER",
    "NAME_BEARING_METHODS",
    "CallOptions",
    "JSONRPCDispatcher",
    "ProgressFnT",
    "SessionMessage",
    "TransportStreams",
    "encode_header_value",
    "find_invalid_x_mcp_header",
    "mcp_param_headers",
    "x_mcp_header_map",
]


_LOGGERS: Final = ("mcp.client.sse", "mcp.client.streamable_http")


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
