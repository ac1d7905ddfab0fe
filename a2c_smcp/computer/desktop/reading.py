"""Reads the windows that a desktop needs, from all servers at once. Which those are, and how they show, is decided
in `organize`.

One window that hangs, or cannot be read, is left out with a warning; the rest come.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import anyio
from mcp import MCPError
from mcp_types import ReadResourceResult, Resource

from a2c_smcp.computer.desktop.organize import WindowKey, listed_windows, organize_desktop, windows_to_read
from a2c_smcp.computer.types import ToolCallRecord
from a2c_smcp.errors import SMCPError
from a2c_smcp.types import SERVER_NAME, Desktop

__all__ = ["DESKTOP_SECONDS", "ReadWindow", "read_desktop"]

logger = logging.getLogger(__name__)

#: For a whole desktop: longer than one window may take, so that others can be read in the place of one that hangs; with
#: the wait for lists before it, shorter than the server waits.
DESKTOP_SECONDS: Final = 12.0

#: Reads one window of a server, under a deadline of its own.
ReadWindow: TypeAlias = Callable[[SERVER_NAME, str], Awaitable[ReadResourceResult]]


async def read_desktop(
    resources: Mapping[SERVER_NAME, Iterable[Resource]],
    read_window: ReadWindow,
    size: int | None,
    window: str | None,
    history: Sequence[ToolCallRecord],
    quote: Callable[[object], str] = str,
) -> list[Desktop]:
    """The windows among these resources as agents see them; with `window`, only the one of exactly this URI.

    `quote` is how a log line has what a server wrote.
    """
    listed = listed_windows(resources, window)
    read: dict[WindowKey, ReadResourceResult | None] = {}

    async def read_one(server: SERVER_NAME, uri: str) -> None:
        try:
            read[server, uri] = await read_window(server, uri)
        except (SMCPError, MCPError) as error:
            logger.warning("window %s of MCP server %s could not be read: %s", quote(uri), server, error)
            read[server, uri] = None

    with anyio.move_on_after(DESKTOP_SECONDS) as scope:
        while missing := windows_to_read(listed, read, size, history):
            async with anyio.create_task_group() as tasks:
                for server, resource in missing:
                    tasks.start_soon(read_one, server, resource.uri)
    if scope.cancelled_caught and (missing := windows_to_read(listed, read, size, history)):
        logger.warning("%d windows were not read in time, the first: %s", len(missing), quote(missing[0][1].uri))
    windows = [(server, resource, read.get((server, resource.uri))) for server, resource in listed]
    return organize_desktop([(s, resource, result) for s, resource, result in windows if result], size, history)
