"""The existing computer with the servers of a config file; runs in .venv-interop until stdin closes."""

import asyncio
import json
import os
import sys
from pathlib import Path

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.model import StdioServerConfig
from a2c_smcp.computer.socketio.client import SMCPComputerClient

url, office, name, config = sys.argv[1:5]
CONFIGS = json.loads(Path(config).read_text())


async def main():
    servers = {StdioServerConfig.model_validate(raw) for raw in CONFIGS}
    computer = Computer(name, mcp_servers=servers, auto_connect=True)
    await computer.boot_up()
    client = SMCPComputerClient(computer=computer)
    computer.socketio_client = client
    await client.connect(url, namespaces=["/smcp"])
    await client.join_office(office)
    print("READY", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


asyncio.run(main())
