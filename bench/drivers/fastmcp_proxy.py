"""FastMCP's proxy of an MCP server that a command starts. It runs in `.venv-fastmcp`.

`python fastmcp_proxy.py stdio COMMAND…`, or `python fastmcp_proxy.py http COMMAND…`, which prints its address.
"""

import socket
import sys
import threading
import time

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy


def say_when_ready(port):
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            print(f"ready on http://127.0.0.1:{port}/mcp", flush=True)
            return


way, command, *args = sys.argv[1:]
# The MCP server of the benchmark speaks MCP's older era only.
proxy = create_proxy(StdioTransport(command, args), mode="legacy", name="echo")
if way == "stdio":
    proxy.run(show_banner=False, log_level="error")
else:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threading.Thread(target=say_when_ready, args=(port,), daemon=True).start()
    proxy.run("http", host="127.0.0.1", port=port, show_banner=False, log_level="error")
