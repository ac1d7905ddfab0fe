"""An MCP stdio server on the standard library that quotes its own secret whenever it refuses something."""

import json
import os
import sys

WINDOW = "window://indiscreet/one"
CAPABILITIES = {"tools": {}, "resources": {"subscribe": True}}
ANSWERS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": "indiscreet", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "leak", "inputSchema": {"type": "object"}}]},
    "resources/list": {"resources": [{"uri": WINDOW, "name": "one"}]},
    "resources/subscribe": {},
    "ping": {},
}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] in ANSWERS:
        answer = {"result": ANSWERS[message["method"]]}
    else:
        answer = {"error": {"code": -32603, "message": f"refused for {os.environ['TOKEN']}"}}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
    sys.stdout.flush()
