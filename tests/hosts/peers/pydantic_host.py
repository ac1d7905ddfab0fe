"""pydantic-ai: a toolset, and an agent whose model is pydantic-ai's own TestModel."""

import asyncio
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent, BinaryContent, ModelRetry
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel

from settings import ARGS, ENV, complete


async def main() -> None:
    toolset = MCPToolset(StdioTransport("a2c", ARGS, env=ENV), init_timeout=60)
    async with toolset:
        names: set[str] = set()
        while not complete(names):  # the first list does not wait for ever
            names = {tool.name for tool in await toolset.list_tools()}
            await asyncio.sleep(0.05)
        assert await toolset.direct_call_tool("pc__echo", {"text": "hi"}) == "hi"
        image = await toolset.direct_call_tool("pc__picture", {})
        assert isinstance(image, BinaryContent) and (image.data, image.media_type) == (b"picture", "image/png"), image
        try:
            await toolset.direct_call_tool("pc__fail", {})
        except ModelRetry as error:
            assert "it went wrong" in str(error), error
        else:
            raise AssertionError("the error is no error")

        agent = Agent(TestModel(call_tools=["pc__echo"]), toolsets=[toolset])
        told = await agent.run("say something")
        assert '"pc__echo":"a"' in told.output, told.output

        waiting = asyncio.create_task(toolset.direct_call_tool("pc__wait", {}))
        print("waiting", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        waiting.cancel()
        await asyncio.wait({waiting})
        print("cancelled", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    print("done")


asyncio.run(main())
