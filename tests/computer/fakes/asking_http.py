"""An MCP server of mcp's own over streamable HTTP, in both eras, whose tools ask the person something. It also has
resources, a template, a prompt and a completion, to be shared.

Prints its port, serves until its stdin closes.
"""

import socket
import sys
import threading
from typing import Annotated

import uvicorn
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp_types import Completion, CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference
from pydantic import BaseModel, Field


class Passenger(BaseModel):
    name: str = Field(max_length=20)
    age: int = 30
    window: bool = False


server = MCPServer("airline", title="An airline", instructions="Book early.")


async def passenger() -> Elicit[Passenger]:
    return Elicit("Who flies?", Passenger)


@server.tool()
async def book(who: Annotated[ElicitationResult[Passenger], Resolve(passenger)]) -> str:
    """Asks in the era that is spoken."""
    return str(who.data) if who.action == "accept" else who.action


@server.tool()
async def book_as_before(ctx: Context) -> str:
    """Asks by way of the back channel that only the older era has."""
    answer = await ctx.elicit("Who flies?", Passenger)
    return str(answer.data) if answer.action == "accept" else answer.action


@server.resource("fleet://all")
def fleet() -> str:
    return "two planes"


@server.resource("seat://{row}/{letter}", mime_type="application/octet-stream")
def seat(row: str, letter: str) -> bytes:
    return f"{row}{letter}".encode()


@server.prompt(title="A greeting")
def greet(who: str) -> str:
    return f"Welcome aboard, {who}."


@server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
async def complete(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion:
    return Completion(values=[argument.value + "na"])


@server.tool()
async def passed_on(ctx: Context) -> str:
    """The trace context of the request."""
    meta = ctx.request_context.meta or {}
    return str(meta.get("traceparent"))


def main() -> None:
    sock = socket.create_server(("127.0.0.1", 0))
    app = server.streamable_http_app()
    runner = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, ws="none"))

    def stop_with_stdin() -> None:
        sys.stdin.read()
        runner.should_exit = True

    threading.Thread(target=stop_with_stdin, daemon=True).start()
    print(sock.getsockname()[1], flush=True)
    runner.run(sockets=[sock])


if __name__ == "__main__":
    main()
