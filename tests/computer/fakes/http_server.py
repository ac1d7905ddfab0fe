"""An MCP server on the kit over streamable HTTP (`/mcp`) and, with mcp's own transport, SSE (`/sse`), in both eras.

Prints its port, serves until its stdin closes. Its tools are a subset of the misbehaving server's.
"""

import json
import socket
import sys
import threading
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.sse import SseServerTransport
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from a2c_smcp.mcp_server import ContextServer, ToolCall, Window

counters = {"started": 0, "cancelled": 0, "pings": 0}
server = ContextServer("http", host="http", windows={"0": Window("window 0")})


@server.tool
async def echo(text: str) -> str:
    return text


@server.tool
async def sleep(seconds: float) -> str:
    counters["started"] += 1
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        counters["cancelled"] += 1
        raise
    return "done"


@server.tool
async def report(steps: int, seconds: float, call: ToolCall) -> str:
    for step in range(1, steps + 1):
        await call.progress(step, steps, f"step {step}")
        await anyio.sleep(seconds / steps)
    return "reported" if call.wants_progress else "did not report"


@server.tool
async def huge(size: int) -> str:
    return "x" * size


@server.tool
async def stats() -> str:
    return json.dumps(counters)


@server.tool
async def add_tool(name: str) -> str:
    server.tool(name=name)(stats)
    return "done"


@server.tool
async def set_resource(uri: str, text: str) -> str:
    # A function, so that a text which is the same as before is said to have changed, too.
    server.windows[uri.removeprefix("window://http/")] = Window(lambda: text)
    return "done"


@server.tool
async def drop_listens() -> str:
    server.sessions.end_listens()
    return "done"


async def ping(ctx: Any, params: Any) -> types.EmptyResult:
    counters["pings"] += 1
    return types.EmptyResult()


server.mcp.add_request_handler("ping", types.RequestParams, ping)
sse = SseServerTransport("/messages/")


async def handle_sse(request: Request) -> Response:
    async with sse.connect_sse(request.scope, request.receive, request._send) as (incoming, outgoing):
        await server.mcp.run(incoming, outgoing, server.mcp.create_initialization_options())
    return Response()


def app() -> Starlette:
    mcp = server.http_app()
    routes = [Route("/sse", handle_sse), Mount("/messages/", sse.handle_post_message), Mount("/", mcp)]
    return Starlette(routes=routes, lifespan=lambda _: mcp.running())


def serve(app: Any, sock: socket.socket, ready: str) -> None:
    """Serve until stdin closes; print this line first."""
    runner = uvicorn.Server(
        uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, lifespan="on", ws="none")
    )

    def stop_with_stdin() -> None:
        sys.stdin.read()
        runner.should_exit = True

    threading.Thread(target=stop_with_stdin, daemon=True).start()
    print(ready, flush=True)
    runner.run(sockets=[sock])


def main() -> None:
    sock = socket.create_server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0))
    serve(app(), sock, str(sock.getsockname()[1]))


if __name__ == "__main__":
    main()
