"""A light MCP stdio server on the standard library: `echo` returns its `text` and `items`, `sleep` after a while.

It starts in a few hundredths of a second and costs next to nothing per call, so that what is measured is what lies
before it.
"""

import json
import sys
import threading
import time

_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}, "seconds": {"type": "number"}}}
_TOOLS = [
    {"name": "echo", "description": "Returns its text.", "inputSchema": _SCHEMA},
    {"name": "sleep", "description": "Returns its text after some seconds.", "inputSchema": _SCHEMA},
]
_lock = threading.Lock()


def send(message):
    with _lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def call(request_id, params):
    arguments = params.get("arguments") or {}
    if params["name"] == "sleep":
        time.sleep(arguments.get("seconds", 1))
    result = {"content": [{"type": "text", "text": arguments.get("text", "")}], "isError": False}
    if "items" in arguments:
        result["structuredContent"] = {"items": arguments["items"]}
    send({"id": request_id, "result": result})


def main():
    for line in sys.stdin:
        message = json.loads(line)
        request_id, method = message.get("id"), message.get("method")
        params = message.get("params") or {}
        if request_id is None:
            continue
        if method == "initialize":
            result = {
                "protocolVersion": params.get("protocolVersion", "2025-06-18"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"},
            }
            send({"id": request_id, "result": result})
        elif method == "ping":
            send({"id": request_id, "result": {}})
        elif method == "tools/list":
            send({"id": request_id, "result": {"tools": _TOOLS}})
        elif method == "tools/call" and params.get("name") == "sleep":
            threading.Thread(target=call, args=(request_id, params), daemon=True).start()
        elif method == "tools/call":
            call(request_id, params)
        else:
            send({"id": request_id, "error": {"code": -32601, "message": f"unknown method {method}"}})


if __name__ == "__main__":
    main()
