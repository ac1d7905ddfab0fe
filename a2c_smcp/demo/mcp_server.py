"""The tour's own MCP server, over stdio: a few tools, a window that changes, and documents.

It is an ordinary MCP server, and knows nothing of agents and offices.
"""

import os

import anyio

from a2c_smcp.demo.tour_documents import DOCUMENTS
from a2c_smcp.mcp_server import ContextServer, DocumentShelf, Window

__all__ = ["server"]

server = ContextServer("a2c-demo", host="demo.board", documents=DocumentShelf(DOCUMENTS))
server.windows["notes"] = Window("(an empty board)", priority=50, title="Board")

notes: list[str] = []
calls = {"made": 0, "cancelled": 0}


@server.window("status", title="Status")
def status() -> str:
    return f"{calls['made']} calls, {calls['cancelled']} cancelled"


@server.tool
async def greet(text: str) -> str:
    """Greets the name that it is given."""
    calls["made"] += 1
    return f"Hello, {text}!"


@server.tool
async def write_note(text: str) -> str:
    """Writes a note on the board window."""
    calls["made"] += 1
    notes.append(text)
    server.windows["notes"] = Window("\n".join(notes), priority=50, title="Board")
    return f"{len(notes)} notes on the board"


@server.tool
async def count_slowly(seconds: float = 60) -> str:
    """Counts seconds, and can be cancelled."""
    calls["made"] += 1
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        calls["cancelled"] += 1
        raise
    return "done"


@server.tool
async def crash() -> str:
    """Ends this MCP server without a word."""
    os._exit(3)


if __name__ == "__main__":
    server.run()
