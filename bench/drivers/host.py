"""An MCP host as a driver: mcp's own client, over a pipe or over HTTP."""

import asyncio
import json
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import httpx2
import uvloop
import work
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main():
    way, *where = sys.argv[1:]
    if way == "http":
        address, token = where
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
        transport = streamable_http_client(address, http_client=http)
    else:
        env, command, *args = where
        transport = stdio_client(StdioServerParameters(command=command, args=args, env=json.loads(env)))
    # Most hosts that start a process speak MCP's older era, as the driver without anything between does.
    async with Client(transport, mode="auto" if way == "http" else "legacy") as client:
        await client.list_tools()

        async def call(arguments):
            result = await client.call_tool("echo", arguments)
            return result.content[0].text, result.structured_content

        await work.serve({"latency": partial(work.latency, call), "throughput": partial(work.throughput, call)})


with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
