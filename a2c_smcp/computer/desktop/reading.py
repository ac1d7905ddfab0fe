"""Reads the windows that a desktop needs, from all servers at once. Which those are, and how they show, is decided
in `organize`.

One server that hangs, and one window that cannot be read, are left out with a warning; the rest come.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import anyio
from mcp import MCPError
from mcp.types import ReadResourceResult, Resource

from a2c_smcp.computer.desktop.organize import (
    ListedWindow,
    WindowKey,
    listed_windows,
    organize_desktop,
    windows_to_read,
)
from a2c_smcp.computer.mcp_clients.connection import MCPConnection
from a2c_smcp.computer.types import ToolCallRecord
from a2c_smcp.errors import SMCPError
from a2c_smcp.types import SERVER_NAME, Desktop

__all__ = ["DESKTOP_SECONDS", "WINDOW_SECONDS", "read_desktop"]

logger = logging.getLogger(__name__)

#: For a whole desktop; the server waits longer.
DESKTOP_SECONDS: Final = 10.0
#: For one list and for one window, so that whoever hangs leaves time for those that are to be read in its place.
WINDOW_SECONDS: Final = 3.0


async def read_desktop(
    connections: Mapping[SERVER_NAME, MCPConnection],
    size: int | None,
    window: str | None,
    history: Sequence[ToolCallRecord],
) -> list[Desktop]:
    """The windows of these servers as agents see them; with `window`, only the one of exactly this URI."""
    if size is not None and size <= 0:
        return []
    read: dict[WindowKey, ReadResourceResult | None] = {}
    listed: list[ListedWindow] = []
    with anyio.move_on_after(DESKTOP_SECONDS):
        listed = listed_windows(await _list_windows(connections), window)
        while missing := windows_to_read(listed, read, size, history):
            async with anyio.create_task_group() as tasks:
                for server, resource in missing:
                    tasks.start_soon(_read_window, connections[server], resource.uri, read)
    windows = [(server, resource, read.get((server, resource.uri))) for server, resource in listed]
    return organize_desktop([(s, resource, result) for s, resource, result in windows if result], size, history)


async def _list_windows(connections: Mapping[SERVER_NAME, MCPConnection]) -> dict[SERVER_NAME, list[Resource]]:
    # Filled before it is known who answers: the order of servers is that of the configs.
    listed: dict[SERVER_NAME, list[Resource]] = {name: [] for name in connections}

    async def list_one(name: SERVER_NAME, connection: MCPConnection) -> None:
        try:
            with anyio.fail_after(WINDOW_SECONDS):
                listed[name] = await connection.list_windows()
        except (SMCPError, MCPError, TimeoutError) as error:
            logger.warning("the windows of MCP server %s could not be listed: %s", name, error or "no answer in time")

    async with anyio.create_task_group() as tasks:
        for name, connection in connections.items():
            tasks.start_soon(list_one, name, connection)
    return listed


async def _read_window(connection: MCPConnection, uri: str, read: dict[WindowKey, ReadResourceResult | None]) -> None:
    key = (connection.name, uri)
    try:
        read[key] = await connection.read_window(uri, WINDOW_SECONDS)
    except (SMCPError, MCPError) as error:
        logger.warning("window %s of MCP server %s could not be read: %s", uri, connection.name, error)
        read[key] = None
