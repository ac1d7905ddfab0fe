"""An MCP stdio server on the standard library, for all generations: texts, images, a slow tool, windows and a note."""

import base64
import json
import sys
import threading
import time

_SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "seconds": {"type": "number"}, "size": {"type": "integer"}},
}
_NAMES = ("echo", "sleep", "image", "text")
_TOOLS = [{"name": name, "description": f"The tool {name}.", "inputSchema": _SCHEMA} for name in _NAMES]
_RESOURCES = [
    {"uri": "window://pictures/low", "name": "low", "annotations": {"priority": 0.2}},
    {"uri": "window://pictures/high", "name": "high", "annotations": {"priority": 0.9}},
    {"uri": "note://one", "name": "one", "mimeType": "text/plain", "size": 3, "annotations": {"audience": ["user"]}},
]
_lock = threading.Lock()


def send(message):
    with _lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def call(request_id, params):
    arguments, name = params.get("arguments") or {}, params["name"]
    content = {"type": "text", "text": arguments.get("text", "")}
    if name == "sleep":
        time.sleep(arguments.get("seconds", 1))
    elif name == "image":
        data = (bytes(range(256)) * (arguments["size"] // 256 + 1))[: arguments["size"]]
        content = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(data).decode()}
    elif name == "text":
        content["text"] = "x" * arguments["size"]
    send({"id": request_id, "result": {"content": [content], "isError": False}})


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}, "resources": {"subscribe": True}},
            "serverInfo": {"name": "pictures", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": _TOOLS}
    if method == "resources/list":
        return {"resources": _RESOURCES}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "resources/read":
        text = params["uri"].rpartition("/")[2]
        return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": text}]}
    return {} if method in ("ping", "resources/subscribe", "resources/unsubscribe") else None


for line in sys.stdin:
    message = json.loads(line)
    request_id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if request_id is None or method is None:
        continue
    if method == "tools/call":
        threading.Thread(target=call, args=(request_id, params), daemon=True).start()
    elif (result := answer(method, params)) is not None:
        send({"id": request_id, "result": result})
    else:
        send({"id": request_id, "error": {"code": -32601, "message": f"unknown method {method}"}})
