"""Our agent as a driver."""

import asyncio
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import uvloop
import work

from a2c_smcp.agent import AsyncSMCPAgentClient


async def main():
    url, office, computer = sys.argv[1:4]
    async with AsyncSMCPAgentClient(url, name="bench-agent", live=False) as agent:
        await agent.join_office(office)

        async def call(arguments):
            result = await agent.call_tool(computer, "echo", arguments, 60)
            return result.content[0].text, result.structured_content

        async def desktop(count):
            result = await work.timed(lambda: agent.get_desktop(computer), count)
            return {**result, "windows": len(await agent.get_desktop(computer))}

        async def finder(count):
            async def ask():
                return await agent.get_finder(computer, keywords=["topic-7"], offset=10, limit=20)

            result = await work.timed(ask, count)
            return {**result, "total": (await ask())["total_count"]}

        await work.serve(
            {
                "latency": partial(work.latency, call),
                "throughput": partial(work.throughput, call),
                "desktop": desktop,
                "finder": finder,
            }
        )


with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
