"""The OpenAI Agents SDK: an agent's tools as its runner gets and invokes them, without a model."""

import asyncio
import json
import sys
from typing import Any

from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStdio
from agents.tool_context import ToolContext

from settings import ARGS, ENV, complete


async def main() -> None:
    params = {"command": "a2c", "args": ARGS, "env": ENV}
    async with MCPServerStdio(params=params, client_session_timeout_seconds=60) as server:
        agent = Agent(name="host", mcp_servers=[server])
        tools: dict[str, Any] = {}
        while not complete(tools):  # the first list does not wait for ever
            tools = {tool.name: tool for tool in await agent.get_mcp_tools(RunContextWrapper(None))}

        async def invoke(name: str, **arguments: Any) -> Any:
            text = json.dumps(arguments)
            context = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
            return await tools[name].on_invoke_tool(context, text)

        assert await invoke("pc__echo", text="hi") == {"type": "text", "text": "hi"}
        image = await invoke("pc__picture")
        assert image == {"type": "image", "image_url": "data:image/png;base64,cGljdHVyZQ=="}, image
        assert "it went wrong" in str(await invoke("pc__fail"))
        assert (await server.call_tool("pc__fail", {})).is_error

        waiting = asyncio.create_task(server.call_tool("pc__wait", {}))
        print("waiting", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        waiting.cancel()
        await asyncio.wait({waiting})
        print("cancelled", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    print("done")


asyncio.run(main())
