"""An MCP server of four tools, in plain Python: `workshop_mcp.py FILE` appends to it which waits begin and end."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

TEXT = {"type": "object", "properties": {"text": {"type": "string", "description": "what comes back"}}}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS = {
    "echo": ("Give a text back.", {**TEXT, "required": ["text"]}),
    "picture": ("Draw a picture of seven bytes.", NOTHING),
    "fail": ("Go wrong.", NOTHING),
    "wait": ("Wait until the call is taken back.", NOTHING),
}

log = Path(sys.argv[1])
waiting = set()


def note(word: str) -> None:
    with log.open("a") as file:
        file.write(f"{word}\n")


def answer(method: str, params: dict[str, Any], id_: Any) -> dict[str, Any] | None:
    if method == "initialize":
        capabilities = {"tools": {}}
        info = {"name": "workshop", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": n, "description": d, "inputSchema": s} for n, (d, s) in TOOLS.items()]}
    if method == "ping":
        return {}
    match params.get("name"):
        case "echo":
            return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
        case "picture":
            data = base64.b64encode(b"picture").decode()
            return {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}
        case "fail":
            return {"content": [{"type": "text", "text": "it went wrong"}], "isError": True}
    waiting.add(id_)
    note("waiting")
    return None


for line in sys.stdin:
    message = json.loads(line)
    method, params, id_ = message.get("method"), message.get("params") or {}, message.get("id")
    if method == "notifications/cancelled" and params.get("requestId") in waiting:
        waiting.discard(params["requestId"])
        note("cancelled")
    elif id_ is None:
        continue
    elif method == "server/discover":
        error = {"code": -32601, "message": "Method not found"}
        print(json.dumps({"jsonrpc": "2.0", "id": id_, "error": error}), flush=True)
    elif (result := answer(method, params, id_)) is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}), flush=True)
