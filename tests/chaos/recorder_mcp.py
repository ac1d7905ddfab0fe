"""A light MCP stdio server on the standard library: its tool `record` writes down each token that it was called with.

`recorder_mcp.py FILE`. A line of the file is `run TOKEN COMPUTER` or, at the start, `pid PID`. The computer is the
process that called: a token that stands there twice with one computer ran twice.
"""

import json
import os
import sys
from typing import Any

#: The computer's process. On Linux the parent is a guardian, and a variable begins with that number.
COMPUTER = os.environ.get("A2C_OWNER", "").partition(".")[0] or str(os.getppid())


def write(file: int, *words: object) -> None:
    # One write of one line with O_APPEND: processes do not mix.
    os.write(file, (" ".join(map(str, words)) + "\n").encode())


def answer(method: str, params: dict[str, Any], file: int) -> dict[str, Any] | None:
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        info = {"name": "recorder", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [{"name": "record", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        write(file, "run", params["arguments"]["token"], COMPUTER)
        return {"content": [{"type": "text", "text": params["arguments"]["token"]}], "isError": False}
    return None


def main() -> None:
    file = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    write(file, "pid", os.getpid())
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = answer(message["method"], message.get("params") or {}, file)
        reply = {"error": {"code": -32601, "message": "unknown method"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
