"""LangChain's MCP adapters, by themselves: what an agent of LangChain does, without a model."""

import asyncio
import sys

from langchain_core.tools import BaseTool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

from settings import ARGS, ENV, complete


async def main() -> None:
    connection = {"transport": "stdio", "command": "a2c", "args": ARGS, "env": ENV}
    client = MultiServerMCPClient({"office": connection})
    tools: dict[str, BaseTool] = {}
    while not complete(tools):  # the first list does not wait for ever
        tools = named(await client.get_tools())

    # Each call starts a process of its own, these three at once: one seat serves them all.
    texts = await asyncio.gather(*(tools["pc__echo"].ainvoke({"text": str(n)}) for n in range(3)))
    assert [text[0]["text"] for text in texts] == ["0", "1", "2"], texts

    async with client.session("office") as session:
        kept = named(await load_mcp_tools(session))
        (image,) = await kept["pc__picture"].ainvoke({})
        assert (image["type"], image["base64"], image["mime_type"]) == ("image", "cGljdHVyZQ==", "image/png"), image
        call = {"type": "tool_call", "id": "1", "name": "pc__fail", "args": {}}
        failed = await kept["pc__fail"].ainvoke(call)
        assert failed.status == "error" and "it went wrong" in str(failed.content), failed

    # Clients of mcp 1.x do not tell a server that a call is cancelled, but this one's process ends with it.
    waiting = asyncio.create_task(tools["pc__wait"].ainvoke({}))
    print("waiting", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    waiting.cancel()
    await asyncio.wait({waiting})
    print("cancelled", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print("done")


def named(tools: list[BaseTool]) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in tools}


asyncio.run(main())
