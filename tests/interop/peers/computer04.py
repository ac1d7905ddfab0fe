"""Runs in .venv-interop04: the existing computer of release 0.4.2. It hosts one stdio MCP server, joins, and stays
until stdin closes. Its skills are in the given folder; a line on stdin makes it announce them.
"""

import asyncio
import os
import sys
from pathlib import Path

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.model import StdioServerConfig
from a2c_smcp.computer.socketio.client import SMCPComputerClient

url, office, name, home, command, *args = sys.argv[1:]


async def main():
    config = StdioServerConfig.model_validate(
        {
            "name": "pictures",
            "type": "stdio",
            "default_tool_meta": {"auto_apply": True},
            "server_parameters": {"command": command, "args": args},
        }
    )
    folder = Path(home)
    computer = Computer(
        name,
        mcp_servers={config},
        auto_connect=True,
        blob_cache_root=folder / "blobs",
        skill_home=folder / "skills",
        project_root=folder,
    )
    await computer.boot_up()
    client = SMCPComputerClient(computer=computer)
    computer.socketio_client = client
    await client.connect(url, auth={"token": "secret"}, namespaces=["/smcp"], wait_timeout=30)
    await client.join_office(office)
    print("READY", flush=True)
    while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        await client.emit_update_skills()
        print("RESULT {}", flush=True)
    await client.disconnect()
    # Its shutdown can take for ever; its MCP server ends with our pipes.
    os._exit(0)


asyncio.run(main())
