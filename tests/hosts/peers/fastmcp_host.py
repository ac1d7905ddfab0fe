"""FastMCP's client."""

import asyncio
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

from settings import ARGS, ENV, complete


async def main() -> None:
    async with Client(StdioTransport("a2c", ARGS, env=ENV), init_timeout=60) as client:
        names: set[str] = set()
        while not complete(names):  # the first list does not wait for ever
            names = {tool.name for tool in await client.list_tools()}
        echo = await client.call_tool("pc__echo", {"text": "hi"})
        assert echo.content[0].text == "hi", echo
        # What is shown is not what is checked.
        odd = await client.call_tool("evil__type_int", {"a": ["as", "it", "is"]})
        assert odd.content[0].text == '{"a": ["as", "it", "is"]}', odd
        [image] = (await client.call_tool("pc__picture", {})).content
        assert (image.type, image.data) == ("image", "cGljdHVyZQ=="), image
        try:
            await client.call_tool("pc__fail", {})
        except ToolError as error:
            assert "it went wrong" in str(error), error
        else:
            raise AssertionError("the error is no error")

        waiting = asyncio.create_task(client.call_tool("pc__wait", {}))
        print("waiting", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        waiting.cancel()
        await asyncio.wait({waiting})
        print("cancelled", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    print("done")


asyncio.run(main())
