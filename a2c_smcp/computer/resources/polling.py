"""Reads the windows of a server again and again, for servers that do not say when a window changes."""

import asyncio
from collections.abc import Awaitable, Callable

from mcp_types import ReadResourceResult

from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.resources.server_shelf import ServerShelf
from a2c_smcp.errors import SMCPError

__all__ = ["poll_windows"]


async def poll_windows(
    shelf: ServerShelf,
    seconds: float,
    read: Callable[[str, str], Awaitable[ReadResourceResult]],
    on_change: Callable[[str], None],
) -> None:
    """Read every window of the server, then pause, until cancelled. `on_change` gets the URI of each window that has
    changed since the last reading.

    Of each window only a hash is kept. A window that cannot be read counts as unchanged.
    """
    known: dict[str, int] = {}
    while True:
        for window in tuple(shelf.windows):
            try:
                now = hash((await read(shelf.server, window.uri)).model_dump_json())
            except (SMCPError, MCPError):
                continue
            if known.get(window.uri, now) != now:
                on_change(window.uri)
            known[window.uri] = now
        known = {window.uri: known[window.uri] for window in shelf.windows if window.uri in known}
        await asyncio.sleep(seconds)
