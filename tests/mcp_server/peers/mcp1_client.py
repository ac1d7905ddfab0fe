"""mcp 1.x as a client of the shop. Does what a client does, and says `done`; anything else is a failure.

    mcp1_client.py stdio COMMAND ARGUMENT…
    mcp1_client.py http URL

Runs in .venv-mcp1, with nothing of ours on its path.
"""

import json
import sys
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import McpError
from pydantic import AnyUrl

HOST = "com.example.shop"
DOOR = f"window://{HOST}/door?priority=10"
CLOCK = f"window://{HOST}/clock"
STOCK = f"dpe://{HOST}/stock"


class Heard:
    def __init__(self):
        self.what = []
        self.more = anyio.Event()

    async def __call__(self, message):
        if isinstance(message, types.ServerNotification):
            root = message.root
            if isinstance(root, types.ResourceUpdatedNotification):
                self.what.append(str(root.params.uri))
            elif isinstance(root, types.ResourceListChangedNotification):
                self.what.append("resources")
            elif isinstance(root, types.ToolListChangedNotification):
                self.what.append("tools")
            self.more.set()

    async def of(self, *wanted):
        with anyio.fail_after(30):
            while not set(wanted) <= set(self.what):
                self.more = anyio.Event()
                await self.more.wait()
        heard, self.what = self.what, []
        return heard


@asynccontextmanager
async def streams():
    kind, *rest = sys.argv[1:]
    if kind == "stdio":
        async with stdio_client(StdioServerParameters(command=rest[0], args=rest[1:])) as pair:
            yield pair
    else:
        async with streamable_http_client(rest[0]) as (incoming, outgoing, _):
            yield incoming, outgoing


async def text(session, uri):
    [content] = (await session.read_resource(AnyUrl(uri))).contents
    return content.text


async def lists_and_reads(session):
    found, cursor = [], None
    while True:
        page = await session.list_resources(cursor=cursor)
        found += [str(resource.uri) for resource in page.resources]
        cursor = page.nextCursor
        if cursor is None:
            break
    assert {DOOR, CLOCK, STOCK} <= set(found), found
    assert await text(session, DOOR) == "The door is open."
    assert json.loads(await text(session, f"{STOCK}/pages/0"))["element_count"] == 2
    assert (await text(session, f"{STOCK}/pages/0?format=markdown")).startswith("# Fruit\n\n| kind | left |")
    for uri, code in ((f"dpe://{HOST}/no", 4201), (f"{STOCK}/pages/9", 4202), (f"window://{HOST}/no", -32002)):
        try:
            await text(session, uri)
        except McpError as error:
            assert error.error.code == code, error.error
        else:
            raise AssertionError(uri)


async def completes(session):
    templates = (await session.list_resource_templates()).resourceTemplates
    assert [template.name for template in templates] == ["document", "page", "element"]
    page = types.ResourceTemplateReference(type="ref/resource", uri=templates[1].uriTemplate)
    found = await session.complete(page, {"name": "doc_ref", "value": "st"})
    assert found.completion.values == ["stock"]
    found = await session.complete(page, {"name": "page_index", "value": ""}, {"doc_ref": "stock"})
    assert found.completion.values == ["0", "1"]


async def hears(session, heard):
    await session.subscribe_resource(AnyUrl(DOOR))
    await session.call_tool("show", {"path": "door", "text": "shut", "priority": 10})
    await heard.of(DOOR)
    await session.call_tool("show", {"path": "mcp1", "text": "new"})
    await heard.of("resources")
    await session.call_tool("put", {"doc_ref": "mcp1", "title": "New"})
    await heard.of("resources")
    await session.unsubscribe_resource(AnyUrl(DOOR))
    await session.call_tool("show", {"path": "door", "text": "The door is open.", "priority": 10})
    await session.call_tool("remove", {"doc_ref": "mcp1"})
    await session.call_tool("learn", {"name": "mcp1"})
    await session.call_tool("close", {"path": "mcp1"})
    assert DOOR not in await heard.of("resources", "tools")


async def calls(session, heard):
    steps = []

    async def note(progress, total, message):
        steps.append((progress, total, message))

    result = await session.call_tool("count", {"steps": 3}, progress_callback=note)
    assert result.content[0].text == "counted aloud"
    assert steps == [(step, 3, f"step {step}") for step in (1, 2, 3)], steps
    assert (await session.call_tool("add", {"a": 1})).structuredContent == {"sum": 2}
    assert (await session.call_tool("refuse", {})).isError
    before = await text(session, CLOCK)
    await session.subscribe_resource(AnyUrl(CLOCK))
    request = types.CallToolRequest(
        method="tools/call", params=types.CallToolRequestParams(name="wait", arguments={"seconds": 600})
    )
    number = session._request_id  # the number that the next request will have

    async def wait():
        with suppress(McpError):  # cancelled
            await session.send_request(types.ClientRequest(request), types.CallToolResult)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await heard.of(CLOCK)
        cancelled = types.CancelledNotification(
            method="notifications/cancelled", params=types.CancelledNotificationParams(requestId=number)
        )
        await session.send_notification(types.ClientNotification(cancelled))
        await heard.of(CLOCK)
        tasks.cancel_scope.cancel()
    after = await text(session, CLOCK)
    assert after != before and not after.endswith("0 cancelled"), after


async def main():
    assert version("mcp").startswith("1."), version("mcp")
    heard = Heard()
    async with streams() as (incoming, outgoing), ClientSession(incoming, outgoing, message_handler=heard) as session:
        hello = await session.initialize()
        assert hello.capabilities.resources.subscribe and hello.capabilities.resources.listChanged
        assert hello.capabilities.tools.listChanged and hello.capabilities.completions is not None
        await lists_and_reads(session)
        await completes(session)
        await hears(session, heard)
        await calls(session, heard)
        await lists_and_reads(session)
    print("done")


anyio.run(main)
