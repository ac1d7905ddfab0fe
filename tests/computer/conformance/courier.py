"""What MCP's conformance suite starts for each scenario. Hands the scenario to the test's own process, and waits.

Only the standard library: the suite starts a hundred of these, and importing mcp would take a second each.
"""

import json
import os
import socket
import sys

with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=280) as way:
    task = {
        "scenario": os.environ["MCP_CONFORMANCE_SCENARIO"],
        "context": json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
        "version": os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION"),
        "url": sys.argv[-1],
    }
    way.sendall(json.dumps(task).encode() + b"\n")
    with way.makefile() as answers:
        failed = json.loads(answers.readline())["failed"]
if failed:
    print(failed, file=sys.stderr)
    sys.exit(1)
