"""Runs in .venv-interop04: the existing agent of release 0.4.2 does what it is told on stdin, one JSON object a line,
and prints what came of it.
"""

import asyncio
import base64
import json
import sys

from a2c_smcp.agent import AsyncSMCPAgentClient, DefaultAgentAuthProvider

clients = {}
skills_of = []


class Handler:
    """Notes whose skills it got."""

    async def on_skills_received(self, computer, skills, client):
        skills_of.append(computer)

    def __getattr__(self, name):
        if not name.startswith("on_"):
            raise AttributeError(name)

        async def ignore(*_):
            pass

        return ignore


def plain(value):
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json", by_alias=True)
    if isinstance(value, dict) and "content" in value:
        value["content"] = [shortened(item) for item in value["content"]]
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if not isinstance(value, dict | list | str | int | float | bool | None):
        value = {key: getattr(value, key) for key in type(value).__annotations__}
    return value


def shortened(item):
    """Five megabytes are said by their length."""
    data = item.get("data") or (item.get("resource") or {}).get("blob")
    return {**item, "data": None, "size": len(base64.b64decode(data))} if data else item


async def do(verb, args):
    if verb == "connect":
        url, office = args
        auth = DefaultAgentAuthProvider(agent_id="agent-04", office_id=office, api_key="secret")
        clients["agent"] = AsyncSMCPAgentClient(auth_provider=auth, event_handler=Handler())
        await clients["agent"].connect_to_server(url, wait_timeout=30)
        return await clients["agent"].join_office(office, "agent-04", namespace="/smcp")
    if verb == "skills_of":
        return skills_of
    client = clients["agent"]
    if verb == "leave":
        await client.leave_office(args[0], namespace="/smcp")
        return await client.disconnect()
    if verb == "cancel_soon":
        computer, tool, params, timeout = args
        request = client.create_tool_call_request(computer, tool, params, timeout)
        call = asyncio.create_task(client.call("client:tool_call", request, namespace="/smcp", timeout=timeout + 10))
        await asyncio.sleep(0.5)
        keys = {"agent": request["agent"], "req_id": request["req_id"]}
        await client.emit("server:tool_call_cancel", keys, namespace="/smcp")
        return await call
    if verb == "put_blob":
        return await client.put_blob(args[0], base64.b64decode(args[1]), name_hint=args[2])
    if verb == "raw":
        return await client.call(args[0], args[1], namespace="/smcp", timeout=20)
    return await getattr(client, verb)(*args)


async def main():
    loop = asyncio.get_running_loop()
    print("READY", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        verb, *args = json.loads(line)
        try:
            said = {"value": plain(await do(verb, args))}
        except Exception as error:
            payload = getattr(error, "payload", None)
            said = {"error": type(error).__name__, "text": str(error), "payload": payload}
        print("RESULT " + json.dumps(said, default=str), flush=True)


asyncio.run(main())
