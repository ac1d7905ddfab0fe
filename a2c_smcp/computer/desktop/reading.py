"""Reads the windows that a desktop needs, from all servers at once. `organize` decides which windows those are.

A window that hangs or cannot be read is left out with a warning, and the others are shown. If all windows together are
too large for one message, the least important ones are left out, too. Their text is dropped at once, while other
windows are still being read.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias, TypeVar

import anyio
import anyio.to_thread
from mcp_types import ReadResourceResult, Resource

from a2c_smcp.computer.desktop.cutting import DesktopLimits, Room, cut_window, text_bytes, windows_within
from a2c_smcp.computer.desktop.organize import (
    ListedWindow,
    WindowKey,
    listed_windows,
    ranks,
    show_windows,
    windows_to_read,
)
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.utils.pool import for_each
from a2c_smcp.errors import PayloadTooLargeError, SMCPError
from a2c_smcp.types import SERVER_NAME, Desktop

__all__ = ["DESKTOP_SECONDS", "READERS", "ReadWindow", "read_desktop"]

logger = logging.getLogger(__name__)

#: How long the reading of all windows of a desktop may take. This is longer than the deadline of one window: if one
#: window hangs, there is time to read another one instead. This time and the wait for lists before it are together
#: shorter than the server's own wait.
DESKTOP_SECONDS: Final = 12.0
#: How many windows of one server are read at once.
READERS: Final = 16
#: How many windows that could not be read are named in the log for one desktop.
_FAILURES_LOGGED: Final = 10

#: Reads one window of a server, with a deadline of its own.
ReadWindow: TypeAlias = Callable[[SERVER_NAME, str], Awaitable[ReadResourceResult]]

_T = TypeVar("_T")


async def read_desktop(
    resources: Mapping[SERVER_NAME, Iterable[Resource]],
    read_window: ReadWindow,
    size: int | None,
    window: str | None,
    used: Sequence[SERVER_NAME],
    limits: DesktopLimits | None = None,
    quote: Callable[[object], str] = str,
) -> list[Desktop]:
    """The windows among these resources as agents see them, within the limits; or the window with the URI `window`,
    whole.

    Raises `PayloadTooLargeError` if that window is too large to be read. `used` names the servers of the last calls,
    oldest first. `quote` makes a server's words safe for a log line.
    """
    reading = _DesktopReading(listed_windows(resources, window), read_window, used, quote)
    if window is not None:
        await reading.run(size, None)
        if reading.too_large is not None:
            raise reading.too_large
        return await reading.desktop(size)
    limits = limits or DesktopLimits()
    await reading.run(size, limits)
    desktops = await reading.desktop(size)
    shown = windows_within(desktops, limits.message)
    left_out = [*(desktop.partition("\n")[0] for desktop in desktops[len(shown) :]), *reading.left_out]
    if left_out:
        text = "the desktop does not fit into %d bytes: the %d least important windows are left out, for example %s"
        logger.warning(text, limits.message, len(left_out), quote(left_out[0]))
    return shown


class _DesktopReading:
    """What was read for one desktop."""

    def __init__(
        self,
        listed: Sequence[ListedWindow],
        read_window: ReadWindow,
        used: Sequence[SERVER_NAME],
        quote: Callable[[object], str],
    ) -> None:
        self._listed = listed
        self._read_window = read_window
        self._used = used
        self._quote = quote
        self._read: dict[WindowKey, ReadResourceResult | None] = {}
        self._ranks = ranks(listed, used)
        self._by_rank = {rank: key for key, rank in self._ranks.items()}
        self._failures = 0
        self.left_out: list[str] = []
        """The windows for which there was no room."""
        self.too_large: PayloadTooLargeError | None = None
        """Set if a window was too large to be read."""

    async def desktop(self, size: int | None) -> list[Desktop]:
        windows = [(server, resource, self._read.get((server, resource.uri))) for server, resource in self._listed]
        there = [(server, resource, result) for server, resource, result in windows if result]
        return await self._worked_out(partial(show_windows, there, size, self._used))

    async def run(self, size: int | None, limits: DesktopLimits | None) -> None:
        """Read the windows that are needed, from all servers at once; without limits, whole."""
        room = Room(limits.message) if limits is not None else None

        async def read(item: ListedWindow) -> None:
            await self._read_one(item[0], item[1].uri, limits, room)

        with anyio.move_on_after(DESKTOP_SECONDS) as scope:
            while missing := await self._missing(size):
                by_server: dict[SERVER_NAME, list[ListedWindow]] = {}
                for item in missing:
                    by_server.setdefault(item[0], []).append(item)
                async with anyio.create_task_group() as tasks:
                    for items in by_server.values():
                        tasks.start_soon(for_each, items, read, READERS)
        if self._failures > _FAILURES_LOGGED:
            logger.warning("%d windows could not be read; the log names the first %d", self._failures, _FAILURES_LOGGED)
        if scope.cancelled_caught and (missing := await self._missing(size)):
            first = self._quote(missing[0][1].uri)
            logger.warning("%d windows were not read in time; the first is %s", len(missing), first)

    async def _missing(self, size: int | None) -> list[ListedWindow]:
        return await self._worked_out(partial(windows_to_read, self._listed, self._read, size, self._used))

    async def _worked_out(self, decide: Callable[[], list[_T]]) -> list[_T]:
        """Decide in a thread if there are many windows, so that the event loop goes on: 1,000 take 10 ms."""
        return await anyio.to_thread.run_sync(decide) if len(self._listed) > 1000 else decide()

    async def _read_one(self, server: SERVER_NAME, uri: str, limits: DesktopLimits | None, room: Room | None) -> None:
        key = (server, uri)
        rank = self._ranks[key]
        if room is not None and not room.takes(rank):
            self._leave_out(rank)
            return
        try:
            result = await self._read_window(server, uri)
        except (SMCPError, MCPError) as error:
            self._failed(server, uri, error)
            return
        if limits is None or room is None:
            self._read[key] = result
            return
        self._read[key] = result = cut_window(result, limits.shown)
        for without in room.keep(rank, text_bytes(result)):
            self._leave_out(without)

    def _leave_out(self, rank: int) -> None:
        key = self._by_rank[rank]
        self._read[key] = None
        self.left_out.append(key[1])

    def _failed(self, server: SERVER_NAME, uri: str, error: SMCPError | MCPError) -> None:
        self._read[server, uri] = None
        self._failures += 1
        if isinstance(error, PayloadTooLargeError):
            self.too_large = error
        if self._failures <= _FAILURES_LOGGED:
            logger.warning("window %s of MCP server %s could not be read: %s", self._quote(uri), server, error)
