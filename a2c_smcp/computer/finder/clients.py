"""What the Finder needs of an MCP server's client. Ours is `MCPConnection`; a program may hand in its own."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from mcp_types import ReadResourceResult

from a2c_smcp.computer.finder.summaries import Described
from a2c_smcp.errors import RequestTimeoutError

__all__ = ["DocumentReader", "MCPClient", "TimedClient"]


class DocumentReader(Protocol):
    """Reads a resource. Raises `RequestTimeoutError` if that takes longer than `timeout` seconds."""

    async def read_resource(self, uri: str, timeout: float | None = None) -> ReadResourceResult: ...


class MCPClient(Protocol):
    """A client of one MCP server, as in the specification's sample."""

    def has_capability(self, name: str) -> bool: ...

    async def list_resources(self) -> Sequence[Described]: ...

    async def read_resource(self, uri: str) -> ReadResourceResult: ...


class TimedClient:
    """A client with a deadline for each request."""

    def __init__(self, client: MCPClient) -> None:
        self.client = client

    async def list_documents(self) -> Sequence[Described]:
        """The resources that the server lists; none if it does not declare `resources.subscribe`."""
        seconds = 30.0
        if not self.client.has_capability("resources.subscribe"):
            return []
        try:
            async with asyncio.timeout(seconds):
                return await self.client.list_resources()
        except TimeoutError:
            raise RequestTimeoutError(f"no list within {seconds:g}s") from None

    async def read_resource(self, uri: str, timeout: float | None = None) -> ReadResourceResult:
        try:
            async with asyncio.timeout(timeout):
                return await self.client.read_resource(uri)
        except TimeoutError:
            raise RequestTimeoutError(f"no answer within {timeout:g}s") from None
