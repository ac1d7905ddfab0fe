"""Runs in .venv-interop: the existing computer hosts one stdio MCP server, joins, and stays until stdin closes."""

import asyncio
import os
import sys

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.model import StdioServerConfig
from a2c_smcp.computer.socketio.client import SMCPComputerClient

url, office, name, command, *args = sys.argv[1:]


async def main():
    config = StdioServerConfig.model_validate(
        {
            "name": "echo",
            "type": "stdio",
            "default_tool_meta": {"auto_apply": True},
            "server_parameters": {"command": command, "args": args},
        }
    )
    computer = Computer(name, mcp_servers={config}, auto_connect=True)
    await computer.boot_up()
    client = SMCPComputerClient(computer=computer)
    computer.socketio_client = client
    await client.connect(url, headers={"x-api-key": "secret"}, namespaces=["/smcp"], wait_timeout=30)
    await client.join_office(office)
    print("READY", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await client.disconnect()
    # Its shutdown can take for ever; its MCP server ends with our pipes.
    os._exit(0)


asyncio.run(main())
