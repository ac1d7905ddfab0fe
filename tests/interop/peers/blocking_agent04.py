"""Runs in .venv-interop04: the existing blocking agent of release 0.4.2. It joins, lists the tools of a computer, calls
one for an image and one for a text, and prints what came of it.
"""

import base64
import json
import os
import sys

from a2c_smcp.agent import DefaultAgentAuthProvider, SMCPAgentClient

url, office, computer = sys.argv[1:]
auth = DefaultAgentAuthProvider(agent_id="blocking-04", office_id=office, api_key="secret")
client = SMCPAgentClient(auth_provider=auth)
client.connect_to_server(url, wait_timeout=30)
client.join_office(office, "blocking-04", namespace="/smcp")
tools = client.get_tools_from_computer(computer)["tools"]
text = client.emit_tool_call(computer, "pictures__echo", {"text": "hello"}, 20)
image = client.emit_tool_call(computer, "pictures__image", {"size": 1_500_000}, 30)
missing = client.emit_tool_call("ghost", "pictures__echo", {}, 5)
said = {
    "tools": [tool["name"] for tool in tools],
    "text": text.content[0].text,
    "size": len(base64.b64decode(image.content[0].data)),
    "missing": missing.content[0].text,
}
client.leave_office(office, namespace="/smcp")
client.disconnect()
print("RESULT " + json.dumps(said), flush=True)
os._exit(0)
