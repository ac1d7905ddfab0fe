"""Boots our Computer; prints how long it took until the tools of all healthy servers were there."""

import asyncio
import json
import os
import sys
import time

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.watching.events import ToolListChanged

script, which = sys.argv[1:3]
SLOW = 1.0


def config(name, command, args):
    return {"name": name, "type": "stdio", "server_parameters": {"command": command, "args": args}}


def servers():
    yield config("slow", sys.executable, [script, "--host", "slow", "--start-delay", str(SLOW)])
    if which == "hanging":
        for n in range(8):
            yield config(f"s{n}", sys.executable, [script, "--host", f"s{n}"])
        yield config("hangs", sys.executable, ["-c", "import time; time.sleep(1000)"])


async def main():
    wanted = 1 if which == "alone" else 9
    computer = Computer("boot", mcp_servers=list(servers()))
    async with computer.events() as events:
        started = time.perf_counter()
        boot = asyncio.create_task(computer.boot_up())
        while len(computer.get_available_tools()) < wanted:
            async for event in events:
                if isinstance(event, ToolListChanged):
                    break
        print(json.dumps({"seconds": time.perf_counter() - started}), flush=True)
        boot.cancel()
        await asyncio.wait({boot})
    await computer.shutdown()
    os._exit(0)


asyncio.run(main())
