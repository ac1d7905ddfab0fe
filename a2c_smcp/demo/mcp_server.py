"""The tour's own MCP server, over stdio: a few tools, a window that changes, and documents. An ordinary MCP server:
nothing in it knows of agents or offices.
"""

import os
from contextlib import suppress
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from a2c_smcp.demo import documents
from a2c_smcp.errors import SMCPError

__all__ = ["main"]

BOARD = "window://demo.board/notes?priority=50"
CLOCK = "window://demo.board/status"

_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
_SECONDS = {"type": "object", "properties": {"seconds": {"type": "number"}}}
TOOLS = [
    types.Tool(name="greet", description="Greets whoever is named.", input_schema=_TEXT),
    types.Tool(name="write_note", description="Writes a note on the board window.", input_schema=_TEXT),
    types.Tool(name="count_slowly", description="Counts seconds, and can be cancelled.", input_schema=_SECONDS),
    types.Tool(name="crash", description="Ends this MCP server, rudely.", input_schema={"type": "object"}),
]

notes: list[str] = []
calls = {"made": 0, "cancelled": 0}
bus = InMemorySubscriptionBus()
subscribers: list[Any] = []


async def changed(uri: str) -> None:
    """Tell whoever watches a window, in either era of MCP."""
    await bus.publish(ResourceUpdated(uri))
    for session in subscribers:
        # A session of the old era that has ended hears no more.
        with suppress(Exception):
            await session.send_resource_updated(uri)


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    calls["made"] += 1
    text = await run_tool(params.name, params.arguments or {})
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def run_tool(name: str, arguments: dict[str, Any]) -> str:
    match name:
        case "greet":
            return f"Hello, {arguments['text']}!"
        case "write_note":
            notes.append(arguments["text"])
            await changed(BOARD)
            return f"{len(notes)} notes on the board"
        case "count_slowly":
            try:
                await anyio.sleep(float(arguments.get("seconds", 60)))
            except anyio.get_cancelled_exc_class():
                calls["cancelled"] += 1
                raise
            return "done"
        case "crash":
            os._exit(3)
        case _:
            raise MCPError(-32602, f"Unknown tool: {name}")


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    windows = [types.Resource(uri=BOARD, name="Board"), types.Resource(uri=CLOCK, name="Status")]
    papers = [types.Resource(uri=uri, name=title, description=summary) for uri, title, summary in documents.catalogue()]
    return types.ListResourcesResult(resources=[*windows, *papers])


async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    if params.uri == BOARD:
        mime_type, text = "text/plain", "\n".join(notes) or "(an empty board)"
    elif params.uri == CLOCK:
        mime_type, text = "text/plain", f"{calls['made']} calls, {calls['cancelled']} cancelled"
    else:
        try:
            mime_type, text = documents.answer(params.uri)
        except SMCPError as error:
            raise MCPError(error.code, error.message, error.details) from None
    contents = types.TextResourceContents(uri=params.uri, mime_type=mime_type, text=text)
    return types.ReadResourceResult(contents=[contents])


async def subscribe(ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
    if ctx.session not in subscribers:
        subscribers.append(ctx.session)
    return types.EmptyResult()


async def unsubscribe(ctx: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


server: Server[Any] = Server(
    "a2c-demo",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=ListenHandler(bus),
)


async def main() -> None:
    options = server.create_initialization_options(NotificationOptions(resources_changed=True))
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, options)


if __name__ == "__main__":
    anyio.run(main)
