"""A server on the kit with a bit of everything, for clients of every kind.

    python -m tests.mcp_server.fakes.shop stdio
    python -m tests.mcp_server.fakes.shop http [TOKEN]

Over HTTP it prints its address on stdout, and serves until SIGTERM.
"""

import sys
import time
from typing import Annotated

import anyio
from pydantic import Field

from a2c_smcp.errors import ToolExecutionError
from a2c_smcp.mcp_server import ContextServer, Page, PagedDocument, ToolCall, Window, http
from a2c_smcp.mcp_server import elements as e

HOST = "com.example.shop"
DOOR = f"window://{HOST}/door?priority=10"
CLOCK = f"window://{HOST}/clock"
CATALOGUE = f"dpe://{HOST}"
STOCK = f"{CATALOGUE}/stock"


def stock(title: str = "Stock") -> PagedDocument:
    pages = [
        Page(
            "Fruit", [e.Heading("Fruit"), e.Table(["kind", "left"], [["apples", 3], ["pears", 0]], element_id="fruit")]
        ),
        Page("Bread", [e.Text("None left.")]),
    ]
    return PagedDocument(title, pages, file_type="xlsx", keywords=["stock"], last_modified="2026-01-01T00:00:00Z")


def make_server(page_size: int = 500) -> ContextServer:
    """A new shop."""
    server = ContextServer("shop", host=HOST, version="1", instructions="Ask for apples.", page_size=page_size)
    server.windows["door"] = Window("The door is open.", priority=10, title="Door")
    server.documents["stock"] = stock()
    calls = {"started": 0, "cancelled": 0}

    @server.window("clock")
    async def clock() -> str:
        return f"{calls['started']} started, {calls['cancelled']} cancelled"

    @server.tool
    def show(path: str, text: str, priority: Annotated[int | None, Field(ge=0, le=100)] = None) -> str:
        """Opens a window, or writes something else in it. In a worker thread, as functions that are not async are."""
        server.windows[path] = Window(text, priority)
        return "shown"

    @server.tool
    def close(path: str) -> str:
        del server.windows[path]
        return "closed"

    @server.tool
    async def put(doc_ref: str, title: str) -> str:
        server.documents[doc_ref] = stock(title)
        return "there"

    @server.tool
    async def remove(doc_ref: str) -> str:
        del server.documents[doc_ref]
        return "gone"

    @server.tool
    async def fill(windows: int = 0, documents: int = 0) -> str:
        server.windows.update({f"w/{number}": Window(f"window {number}") for number in range(windows)})
        server.documents.update({f"d{number}": stock(f"Document {number}") for number in range(documents)})
        return "filled"

    @server.tool
    async def count(steps: int, call: ToolCall) -> str:
        for step in range(steps):
            await call.progress(step + 1, steps, f"step {step + 1}")
        return "counted aloud" if call.wants_progress else "counted"

    @server.tool
    def count_in_thread(steps: int, call: ToolCall) -> str:
        for step in range(steps):
            call.progress_from_thread(step + 1, steps)
        return "counted aloud" if call.wants_progress else "counted"

    @server.tool
    async def wait(seconds: float) -> str:
        calls["started"] += 1
        server.windows.changed("clock")
        try:
            await anyio.sleep(seconds)
        except anyio.get_cancelled_exc_class():
            calls["cancelled"] += 1
            server.windows.changed("clock")
            raise
        return "waited"

    @server.tool
    def work(call: ToolCall) -> str:
        """Works until it is cancelled, in a thread."""
        calls["started"] += 1
        server.windows.changed("clock")
        try:
            while True:
                call.check_cancelled()
                time.sleep(0.01)
        finally:
            calls["cancelled"] += 1

    @server.tool(title="A sum", name="add")
    async def plus(a: int, b: int = 1) -> dict[str, int]:
        return {"sum": a + b}

    @server.tool
    async def refuse() -> str:
        raise ToolExecutionError("There are no apples.", {"left": 0})

    @server.tool
    async def crash() -> str:
        raise RuntimeError("a secret of the server")

    @server.tool
    async def learn(name: str) -> str:
        """Adds a tool."""
        server.tool(name=name)(plus)
        return "learnt"

    return server


def main() -> None:
    server = make_server()
    if sys.argv[1] == "stdio":
        server.run()
    else:
        # A process that stands still for a moment while it ends has not left a stream open.
        http._CLOSE_SECONDS = 20
        token = sys.argv[2] if len(sys.argv) > 2 else None
        server.run_http(token=token, ready=lambda url: print(url, flush=True))


if __name__ == "__main__":
    main()
