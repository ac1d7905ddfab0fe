"""An MCP server made with the kit, with one tool of its own: what a host's call costs before there is an office.

`python kit_mcp.py stdio`, or `python kit_mcp.py http`, which prints its address.
"""

import asyncio
import sys

import mcp_types as types

from a2c_smcp.mcp_server import ContextServer, http, stdio
from a2c_smcp.utils.loops import fast_command_loop

server = ContextServer("echo", host="bench.example")


@server.tool
async def echo(text: str) -> types.CallToolResult:
    """Returns its text."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=fast_command_loop) as runner:  # as `a2c mcp` does
        runner.run(stdio.serve(server.mcp) if sys.argv[1] == "stdio" else http.serve(server, 0))
