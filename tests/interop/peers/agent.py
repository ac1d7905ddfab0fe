"""Runs in .venv-interop: the existing agent joins, looks around, calls a tool, and prints what it got as one JSON
line.
"""

import asyncio
import json
import sys

from a2c_smcp.agent import AsyncSMCPAgentClient, DefaultAgentAuthProvider, SMCPAgentClient

colour, url, office, computer = sys.argv[1:5]
tool_names = sys.argv[5:] or ["echo"]


def auth():
    return DefaultAgentAuthProvider(agent_id="an-id-of-its-own", office_id=office, api_key="secret")


def result_of(call):
    return {"content": [item.text for item in call.content], "isError": call.isError, "meta": call.meta}


async def run_async():
    client = AsyncSMCPAgentClient(auth_provider=auth())
    await client.connect_to_server(url, wait_timeout=30)
    await client.join_office(office, "old-agent", namespace="/smcp")
    out = {"sessions": await client.get_computers_in_office(office)}
    out["tools"] = (await client.get_tools_from_computer(computer))["tools"]
    out["desktops"] = (await client.get_desktop_from_computer(computer)).get("desktops")
    out["calls"] = [result_of(await client.emit_tool_call(computer, name, {"text": "你好"}, 10)) for name in tool_names]
    out["missing"] = result_of(await client.emit_tool_call("nobody", "echo", {}, 10))
    await client.leave_office(office, namespace="/smcp")
    await client.disconnect()
    return out


def run_sync():
    client = SMCPAgentClient(auth_provider=auth())
    client.connect_to_server(url, wait_timeout=30)
    client.join_office(office, "old-agent", namespace="/smcp")
    out = {"sessions": client.get_computers_in_office(office)}
    out["tools"] = client.get_tools_from_computer(computer)["tools"]
    out["desktops"] = client.get_desktop_from_computer(computer).get("desktops")
    out["calls"] = [result_of(client.emit_tool_call(computer, name, {"text": "你好"}, 10)) for name in tool_names]
    out["missing"] = result_of(client.emit_tool_call("nobody", "echo", {}, 10))
    client.leave_office(office, namespace="/smcp")
    client.disconnect()
    return out


result = asyncio.run(run_async()) if colour == "async" else run_sync()
print("RESULT " + json.dumps(result), flush=True)
