"""What an MCP server refuses, and what it means for the session. Pure.

mcp has the same class. Importing it from there imports all of mcp, its servers included, and a computer whose servers
all talk over pipes needs nothing of that.
"""

from typing import Any, Self

import mcp_types as types
from mcp_types import ErrorData

__all__ = ["InvalidAnswerError", "MCPError", "connection_closed", "lacks_back_channel", "says_gone"]

_CLOSED = "Connection closed"


class MCPError(Exception):
    """The error that a server answered with, or with which a request to it ended."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    @classmethod
    def of(cls, error: ErrorData) -> Self:
        """The error that was sent."""
        return cls(error.code, error.message, error.data)

    @property
    def error(self) -> ErrorData:
        """The error as it is sent."""
        return ErrorData(code=self.code, message=self.message, data=self.data)

    def __str__(self) -> str:
        return self.message


class InvalidAnswerError(MCPError):
    """A server answered with something that is not an answer in JSON-RPC."""

    def __init__(self) -> None:
        super().__init__(types.INTERNAL_ERROR, "the server answered with something that is not an MCP result")


def connection_closed() -> MCPError:
    """The error of a request whose session has ended."""
    return MCPError(types.CONNECTION_CLOSED, _CLOSED)


def says_gone(error: MCPError) -> bool:
    """Whether an error means that the session is over: it was closed, or an HTTP server has forgotten it."""
    # The text counts, too: servers may use -32000 for errors of their own.
    match error.code:
        case types.CONNECTION_CLOSED:
            return error.message == _CLOSED or error.message.startswith("SSE stream ")
        case types.INVALID_REQUEST:
            return error.message == "Session terminated"
    return False


def lacks_back_channel(error: MCPError) -> bool:
    """Whether the error says that a server on mcp's SDK could not ask: its session is of 2026-07-28, but the server
    asks in the older way.
    """
    return error.code == types.INVALID_REQUEST and "no back-channel" in error.message
