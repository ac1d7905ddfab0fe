"""The existing agent as a driver; runs in .venv-interop."""

import asyncio
import sys
from functools import partial

import work
from a2c_smcp.agent import AsyncSMCPAgentClient, DefaultAgentAuthProvider


async def main():
    url, office, computer = sys.argv[1:4]
    auth = DefaultAgentAuthProvider(agent_id="bench-agent", office_id=office, api_key="none")
    client = AsyncSMCPAgentClient(auth_provider=auth)
    await client.connect_to_server(url)
    await client.join_office(office, "bench-agent", namespace="/smcp")
    await client.get_computers_in_office(office)

    async def call(arguments):
        result = await client.emit_tool_call(computer, "echo", arguments, 60)
        if result.isError or not result.content:
            raise RuntimeError("the call failed")
        return result.content[0].text, result.structuredContent

    async def desktop(count):
        result = await work.timed(lambda: client.get_desktop_from_computer(computer), count)
        return {**result, "windows": len((await client.get_desktop_from_computer(computer))["desktops"])}

    await work.serve(
        {"latency": partial(work.latency, call), "throughput": partial(work.throughput, call), "desktop": desktop}
    )


asyncio.run(main())
