"""A session with a running server, and the requests inside it. Knows how to ask; who starts and stops servers is the
connection's.

Requests are made by mcp's client, over the dispatcher that the wire gave it. Tool calls and reads over a pipe go to
that dispatcher directly: the models that mcp makes of a call would cost half as much as all the rest of it.
"""

import asyncio
from typing import Any

import anyio
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

from a2c_smcp.computer.mcp_clients.change_feed import ChangeFeed
from a2c_smcp.computer.mcp_clients.mcp_internals import (
    MODERN_PROTOCOL_VERSIONS,
    CallOptions,
    ProgressFnT,
    check_tool_result,
    says_gone,
)
from a2c_smcp.computer.mcp_clients.transports import Wire
from a2c_smcp.computer.progress import CallProgress

__all__ = ["MCPSession"]


class MCPSession:
    """A running session. It takes requests until it ends."""

    def __init__(self, client: Client, feed: ChangeFeed, wire: Wire, max_calls: int) -> None:
        self.client = client
        self.feed = feed
        self.wire = wire
        self.over = anyio.Event()
        self.ending: str | None = None
        self.since: float | None = None
        """Since when it takes requests."""
        self._limit = anyio.Semaphore(max_calls, fast_acquire=True)
        self._requests: set[asyncio.Timeout] = set()
        self._drained = anyio.Event()
        self.dispatcher = wire.process.dispatcher if wire.process else None
        """For requests without mcp's models, over a pipe."""
        self._stamp = _stamp(client)

    # --- asking

    async def call_tool(
        self, name: str, params: dict[str, Any], progress: CallProgress | None = None
    ) -> CallToolResult:
        """Without `progress` the server is not asked to report any."""
        async with self._limit:
            if self.dispatcher is None:
                return await self.client.call_tool(name, params, progress_callback=_listener(progress))
            options: CallOptions | None = {"on_progress": progress.take} if progress is not None else None
            answer = await self.dispatcher.send_raw_request(
                "tools/call", {"name": name, "arguments": params, **self._stamp}, options
            )
            if answer.get("resultType") == "input_required":
                rest = InputRequiredResult.model_validate(answer, by_name=False)
                return await self._go_on(name, params, rest, progress)
            result = CallToolResult.model_validate(answer, by_name=False)
            if not result.is_error:
                await check_tool_result(self.client, name, result)
            return result

    async def _go_on(
        self, name: str, params: dict[str, Any], rest: InputRequiredResult, progress: CallProgress | None
    ) -> CallToolResult:
        """A tool since 2026-07-28 may want to be asked again, or to ask in turn."""
        if rest.input_requests:
            raise MCPError(INTERNAL_ERROR, "the tool asks for input, which nobody can give here")
        return await self.client.call_tool(
            name, params, request_state=rest.request_state, progress_callback=_listener(progress)
        )

    async def read_resource(self, uri: str) -> ReadResourceResult:
        if self.dispatcher is None:
            return await self.client.read_resource(uri)
        answer = await self.dispatcher.send_raw_request("resources/read", {"uri": uri, **self._stamp})
        if answer.get("resultType") == "input_required":
            return await self.client.read_resource(uri)  # reading changes nothing: from the start, as mcp does it
        # The contents without their cache hints: those are of no use here, and some servers get them wrong.
        wanted = {key: answer[key] for key in ("contents", "_meta") if key in answer}
        return ReadResourceResult.model_validate(wanted, by_name=False)

    # --- ending

    def end(self, how: str) -> None:
        """Refuse new requests and give up those that run. The reason of the first call counts."""
        if self.ending is None:
            self.ending = how
            self.over.set()
            for limit in self._requests:
                if not limit.expired():
                    limit.reschedule(0)

    def is_ended_by(self, error: Exception) -> bool:
        """Whether an error of a request means that the session is over, as it is from now on."""
        if isinstance(error, MCPError):
            gone = says_gone(error)
        else:
            gone = isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError)
        if gone:
            self.end("ended the connection")
        # Once it is over, mcp complains that its client was closed.
        return gone or (isinstance(error, RuntimeError) and self.ending is not None)

    def enter(self, limit: asyncio.Timeout) -> None:
        self._requests.add(limit)

    def leave(self, limit: asyncio.Timeout) -> None:
        self._requests.discard(limit)
        if not self._requests:
            self._drained.set()

    async def drained(self) -> None:
        if self._requests:
            self._drained = anyio.Event()
            await self._drained.wait()


def _listener(progress: CallProgress | None) -> ProgressFnT | None:
    return progress.take if progress is not None else None


def _stamp(client: Client) -> dict[str, Any]:
    """What a request must carry besides its parameters: since 2026-07-28, the client and the protocol version."""
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
