"""An MCP server made with the kit, which traces itself: `python -m tests.traces.echo_mcp stdio SERVICE`, or `http`."""

import asyncio
import sys

import mcp_types as types
from mcp.shared.exceptions import MCPError

from a2c_smcp import tracing
from a2c_smcp.mcp_server import ContextServer, http, stdio

server = ContextServer("echo", host="traces.example")


@server.tool
async def echo(text: str) -> str:
    """Returns its text."""
    return text


@server.tool
async def fail(text: str) -> str:
    """Fails with its text."""
    raise MCPError(types.INVALID_PARAMS, text)


if __name__ == "__main__":
    with tracing.exporting(sys.argv[2]):
        if sys.argv[1] == "stdio":
            asyncio.run(stdio.serve(server.mcp))
        else:
            asyncio.run(http.serve(server, 0, token=None, ready=lambda address: print(address, flush=True)))
