"""A session with a server over one way, without starts, states and our errors."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, Implementation

from a2c_smcp.computer.mcp_clients.dispatching import Dispatcher, OnReport
from a2c_smcp.computer.mcp_clients.elicitation.asking import ALL_MODES, NO_MODES
from a2c_smcp.computer.mcp_clients.handshakes import LEGACY
from a2c_smcp.computer.mcp_clients.protocol_client import ClientHooks, ProtocolClient, ServerSaid
from a2c_smcp.computer.utils.callbacks import ignore

__all__ = ["PlainClient", "client_over"]


class PlainClient(ProtocolClient):
    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, on_report: OnReport | None = None
    ) -> CallToolResult:
        answer = await self.send("tools/call", {"name": name, "arguments": dict(arguments or {})}, on_report=on_report)
        return CallToolResult.model_validate(answer, by_name=False)


async def _nobody(_: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="cancel")


@asynccontextmanager
async def client_over(
    way: AbstractAsyncContextManager[Dispatcher],
    mode: str = LEGACY,
    elicit: Callable[[ElicitRequestParams], Awaitable[ElicitResult]] | None = None,
    hear: Callable[[ServerSaid], None] = ignore,
) -> AsyncIterator[PlainClient]:
    modes = NO_MODES if elicit is None else ALL_MODES
    client = PlainClient(
        Implementation(name="test", version="1"), ClientHooks(lambda _: modes, elicit or _nobody, hear)
    )
    async with client.over(way, mode):
        yield client
