"""An MCP server with as many tools as it is told: `many_tools COUNT`."""

import sys

from a2c_smcp.mcp_server import ContextServer

server = ContextServer("many", host="many.test")


def add(number: int) -> None:
    async def tool() -> str:
        return str(number)

    tool.__name__ = f"tool_{number:04}"
    tool.__doc__ = f"Does thing {number}."
    server.tool(tool)


for each in range(int(sys.argv[1])):
    add(each)

if __name__ == "__main__":
    server.run()
