"""A session with a running server, and the requests inside it. Knows how to ask; who starts and stops servers is the
connection's.

Over a pipe, tool calls and reads have a lane of their own; everything else, and all of HTTP, is left to mcp's client.
"""

from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client.client import Client
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    INTERNAL_ERROR,
    PROTOCOL_VERSION_META_KEY,
    CallToolResult,
    InputRequiredResult,
    ReadResourceResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from a2c_smcp.computer.mcp_clients.feed import Feed
from a2c_smcp.computer.mcp_clients.lane import Lane
from a2c_smcp.computer.mcp_clients.transports import Link

__all__ = ["Live"]


class Live:
    """A running session: who asks is let in until it ends."""

    def __init__(self, client: Client, feed: Feed, link: Link, max_calls: int) -> None:
        self.client = client
        self.feed = feed
        self.link = link
        self.lane: Lane | None = link.process.lane if link.process else None
        self.over = anyio.Event()
        self.ending: str | None = None
        self.since: float | None = None
        """When others were let in."""
        self._limit = anyio.Semaphore(max_calls, fast_acquire=True)
        self._requests: set[anyio.CancelScope] = set()
        self._drained = anyio.Event()
        self._stamp = _stamp(client)

    # --- asking

    async def call_tool(self, name: str, params: dict[str, Any]) -> CallToolResult:
        async with self._limit:
            return await self.client.call_tool(name, params)

    async def call_tool_over(self, lane: Lane, name: str, params: dict[str, Any]) -> CallToolResult:
        """What mcp's client does on a pipe, without its streams, tasks and models in between."""
        async with self._limit:
            answer = await lane.request("tools/call", {"name": name, "arguments": params, **self._stamp})
            if _wants_more(answer):
                return await self._go_on(name, params, InputRequiredResult.model_validate(answer, by_name=False))
            result = CallToolResult.model_validate(answer, by_name=False)
            if not result.is_error:
                await self.client.session.validate_tool_result(name, result)
            return result

    async def _go_on(self, name: str, params: dict[str, Any], rest: InputRequiredResult) -> CallToolResult:
        """A tool since 2026-07-28 may want to be asked again, or to ask in turn."""
        if rest.input_requests:
            raise MCPError(INTERNAL_ERROR, "the tool asks for input, which nobody can give here")
        with anyio.CancelScope() as scope:
            self.enter(scope)
            try:
                return await self.client.call_tool(name, params, request_state=rest.request_state)
            finally:
                self.leave(scope)
        raise anyio.ClosedResourceError  # the server was stopped

    async def read_resource(self, uri: str) -> ReadResourceResult:
        if self.lane is None:
            return await self.client.read_resource(uri)
        answer = await self.lane.request("resources/read", {"uri": uri, **self._stamp})
        if _wants_more(answer):
            return await self.client.read_resource(uri)  # reading changes nothing: from the start, as mcp does it
        # Alone what was asked for: how long it may be kept is of no use here, and servers get it wrong.
        if isinstance(answer, dict):
            answer = {key: answer[key] for key in ("contents", "_meta") if key in answer}
        return ReadResourceResult.model_validate(answer, by_name=False)

    # --- ending

    def end(self, how: str) -> None:
        """Refuse new requests and give up those that run. The first to say how it ended is right."""
        if self.ending is None:
            self.ending = how
            self.over.set()
            for scope in self._requests:
                scope.cancel()
            if self.lane is not None:
                self.lane.close()

    def is_ended_by(self, error: Exception) -> bool:
        """Whether an error of a request means that the session is over, as it is from now on."""
        if isinstance(error, MCPError):
            gone = _says_gone(error)
        else:
            gone = isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError)
        if gone:
            self.end("ended the connection")
        # Once it is over, mcp complains that its client was closed.
        return gone or (isinstance(error, RuntimeError) and self.ending is not None)

    def enter(self, scope: anyio.CancelScope) -> None:
        self._requests.add(scope)

    def leave(self, scope: anyio.CancelScope) -> None:
        self._requests.discard(scope)
        if not self._requests:
            self._drained.set()

    async def drained(self) -> None:
        if self._requests:
            self._drained = anyio.Event()
            await self._drained.wait()


def _wants_more(answer: Any) -> bool:
    return isinstance(answer, dict) and answer.get("resultType") == "input_required"


def _stamp(client: Client) -> dict[str, Any]:
    """What a request has to carry besides its own parameters: since 2026-07-28, who asks and in what language."""
    version = client.protocol_version
    if version not in MODERN_PROTOCOL_VERSIONS:
        return {}
    info = client.client_info
    return {
        "_meta": {
            PROTOCOL_VERSION_META_KEY: version,
            CLIENT_INFO_META_KEY: info.model_dump(mode="json", by_alias=True, exclude_none=True) if info else {},
            CLIENT_CAPABILITIES_META_KEY: {},
        }
    }


def _says_gone(error: MCPError) -> bool:
    """Whether an error means that the session is over: mcp closed it, or an HTTP server has forgotten it."""
    # By text as well: -32000 is also the first code that is a server's own to use.
    match error.code:
        case types.CONNECTION_CLOSED:
            return error.message == "Connection closed" or error.message.startswith("SSE stream ")
        case types.INVALID_REQUEST:
            return error.message == "Session terminated"
    return False
