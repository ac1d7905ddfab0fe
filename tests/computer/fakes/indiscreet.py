"""An MCP stdio server on the standard library that quotes its secrets whenever it refuses something.

    indiscreet.py --token=TOKEN

Its secrets are that token and the environment variables TOKEN, PIN and PLAIN. Tools: `leak` fails with them, `shout`
with a text of `size` characters that begins with them, `die` writes them to stderr and exits. It says them on stderr
when it starts, and in every refusal, of a subscription too, and before each of those in notifications that MCP refuses.
One of its tools is named after them, and its definition is invalid.
"""

import json
import os
import sys
from typing import Any

WINDOW = "window://indiscreet/one"
CAPABILITIES = {"tools": {}, "resources": {"subscribe": True}}
ANSWERS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": "indiscreet", "version": "1"},
    },
    "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("leak", "shout", "die")]},
    "resources/list": {"resources": [{"uri": WINDOW, "name": "one"}]},
    "ping": {},
}


def secrets() -> str:
    arguments = [argument.partition("=")[2] for argument in sys.argv[1:]]
    return " ".join([*arguments, *(os.environ.get(name, "") for name in ("TOKEN", "PIN", "PLAIN"))])


def refusal(params: dict[str, Any]) -> str:
    text = f"refused for {secrets()}"
    match params.get("name"):
        case "shout":
            text += "x" * (params["arguments"]["size"] - len(text))
        case "die":
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
            os._exit(3)
    return text


if __name__ == "__main__":
    sys.stderr.write(f"started with {secrets()}\n" + "y" * 4090 + f"{secrets()}\n")
    sys.stderr.flush()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "tools/list":
            tools = ANSWERS["tools/list"]["tools"]
            answer: dict[str, Any] = {
                "result": {"tools": [*tools, {"name": f"a tool for {secrets()}", "inputSchema": 5}]}
            }
        elif message["method"] in ANSWERS:
            answer = {"result": ANSWERS[message["method"]]}
        else:
            for _ in range(10):
                wrong = {"method": "notifications/message", "params": {"level": [secrets()], "data": secrets()}}
                sys.stdout.write(json.dumps({"jsonrpc": "2.0", **wrong}) + "\n")
            error = refusal(message.get("params") or {})
            answer = {"error": {"code": -32603, "message": error, "data": {"why": {"because": error}}}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
        sys.stdout.flush()
