"""An MCP stdio client without anything between: the floor."""

import asyncio
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import uvloop
import work
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def main():
    command, *args = sys.argv[1:]
    async with Client(stdio_client(StdioServerParameters(command=command, args=args)), mode="legacy") as client:

        async def call(arguments):
            result = await client.call_tool("echo", arguments)
            return result.content[0].text, result.structured_content

        await work.serve({"latency": partial(work.latency, call), "throughput": partial(work.throughput, call)})


with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
