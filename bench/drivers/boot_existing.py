"""Boots the existing Computer; prints how long it took. Runs in .venv-interop."""

import asyncio
import json
import os
import sys
import time

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.model import StdioServerConfig

script, which = sys.argv[1:3]
SLOW = 1.0


def config(name, command, args):
    return StdioServerConfig.model_validate(
        {"name": name, "type": "stdio", "server_parameters": {"command": command, "args": args}}
    )


def servers():
    yield config("slow", sys.executable, [script, "--host", "slow", "--start-delay", str(SLOW)])
    if which == "hanging":
        for n in range(8):
            yield config(f"s{n}", sys.executable, [script, "--host", f"s{n}"])
        yield config("hangs", sys.executable, ["-c", "import time; time.sleep(1000)"])


async def main():
    computer = Computer("boot", mcp_servers=set(servers()), auto_connect=True)
    started = time.perf_counter()
    await computer.boot_up()
    print(json.dumps({"seconds": time.perf_counter() - started}), flush=True)
    os._exit(0)


asyncio.run(main())
