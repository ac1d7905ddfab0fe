"""An MCP server on mcp's own low-level server, over streamable HTTP (`/mcp`) and SSE (`/sse`), in both eras.

Prints its port, serves until its stdin closes. Its tools are a subset of the misbehaving server's.
"""

import json
import socket
import sys
import threading
from contextlib import suppress
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.sse import SseServerTransport
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

bus = InMemorySubscriptionBus()
listens = ListenHandler(bus)
tools = ["echo", "sleep", "huge", "stats", "add_tool", "set_resource", "drop_listens"]
resources = {"window://http/0": "window 0"}
counters = {"started": 0, "cancelled": 0, "pings": 0}
sessions: dict[int, tuple[Any, set[str]]] = {}


def remember(ctx: Any) -> set[str]:
    """The subscriptions of a session of the old era."""
    return sessions.setdefault(id(ctx.session), (ctx.session, set()))[1]


async def announce(event: ServerEvent) -> None:
    await bus.publish(event)
    for session, uris in list(sessions.values()):
        # Sessions come and go; those of the new era hear it by the bus.
        with suppress(Exception):
            match event:
                case ToolsListChanged():
                    await session.send_tool_list_changed()
                case ResourcesListChanged():
                    await session.send_resource_list_changed()
                case ResourceUpdated(uri=uri) if uri in uris:
                    await session.send_resource_updated(uri)


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    remember(ctx)
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in tools])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = await run_tool(params.name, params.arguments or {})
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def run_tool(name: str, arguments: dict[str, Any]) -> str:
    match name:
        case "echo":
            return str(arguments["text"])
        case "sleep":
            counters["started"] += 1
            try:
                await anyio.sleep(arguments["seconds"])
            except anyio.get_cancelled_exc_class():
                counters["cancelled"] += 1
                raise
        case "huge":
            return "x" * int(arguments["size"])
        case "stats":
            return json.dumps(counters)
        case "add_tool":
            tools.append(arguments["name"])
            await announce(ToolsListChanged())
        case "set_resource":
            uri, known = arguments["uri"], arguments["uri"] in resources
            resources[uri] = arguments["text"]
            await announce(ResourceUpdated(uri) if known else ResourcesListChanged())
        case "drop_listens":
            listens.close()
    return "done"


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(uri=uri, name=uri) for uri in resources])


async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    if params.uri not in resources:
        raise MCPError(-32002, "Resource not found")
    contents = types.TextResourceContents(uri=params.uri, text=resources[params.uri])
    return types.ReadResourceResult(contents=[contents])


async def subscribe(ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
    remember(ctx).add(params.uri)
    return types.EmptyResult()


async def unsubscribe(ctx: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    remember(ctx).discard(params.uri)
    return types.EmptyResult()


async def ping(ctx: Any, params: Any) -> types.EmptyResult:
    counters["pings"] += 1
    return types.EmptyResult()


server: Server[Any] = Server(
    "http",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=listens,
    on_ping=ping,
)
sse = SseServerTransport("/messages/")


async def handle_sse(request: Request) -> Response:
    async with sse.connect_sse(request.scope, request.receive, request._send) as (incoming, outgoing):
        options = server.create_initialization_options(NotificationOptions(tools_changed=True, resources_changed=True))
        await server.run(incoming, outgoing, options)
    return Response()


def main() -> None:
    app = server.streamable_http_app()
    app.router.routes += [Route("/sse", handle_sse), Mount("/messages/", sse.handle_post_message)]
    sock = socket.create_server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0))
    runner = uvicorn.Server(
        uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, lifespan="on", ws="none")
    )

    def stop_with_stdin() -> None:
        sys.stdin.read()
        runner.should_exit = True

    threading.Thread(target=stop_with_stdin, daemon=True).start()
    print(sock.getsockname()[1], flush=True)
    runner.run(sockets=[sock])


if __name__ == "__main__":
    main()
