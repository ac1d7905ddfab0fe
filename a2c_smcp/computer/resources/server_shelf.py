"""The resources of one running server: its connection, its windows, and the tasks that keep them up to date."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from mcp_types import Resource

from a2c_smcp.computer.desktop.reading import READERS
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.resource_lists import WINDOWS
from a2c_smcp.computer.utils.refresher import Refresher
from a2c_smcp.errors import SMCPError
from a2c_smcp.types import SERVER_NAME

__all__ = ["ServerShelf"]

logger = logging.getLogger(__name__)


class ServerShelf:
    """The windows of one server on one connection. The `FinderAggregator` has its documents."""

    def __init__(self, server: SERVER_NAME, connection: MCPConnection, windows: Sequence[Resource] = ()) -> None:
        self.server = server
        self.connection = connection
        self.windows = windows
        self.limit = asyncio.Semaphore(READERS)
        self.was_told = False
        """Whether the server has said that its list changed, since the list was last read."""
        self.has_list = False
        """Whether its list was read."""
        self._ignored: str | None = None
        self.has_failed = False
        """Whether its list could not be read the last time."""
        self.refresher = Refresher()
        self.listed = asyncio.Event()
        """Set once its list was read, could not be read, or is not needed any more."""
        if not self.is_shown:
            self.listed.set()
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def is_shown(self) -> bool:
        """Whether agents may see something of its list."""
        connection = self.connection
        return connection.share == "all" or (connection.share == "shown" and bool(connection.shown_kinds))

    @property
    def is_listed_again(self) -> bool:
        """Whether its list is read for every request: the server does not announce changes of it, or the last reading
        failed.
        """
        return self.is_shown and (self.has_failed or not self.connection.has_capability("resources.list_changed"))

    @property
    def polls(self) -> float | None:
        """Every how many seconds its windows are read; `None` if it says when they change."""
        return None if self.connection.can_subscribe or not self.is_shown else self.connection.config.poll

    @property
    def unshown_windows(self) -> int:
        """How many windows the server lists that are not shown because it does not say when they change."""
        listed = self.connection.listed
        return 0 if listed is None or self.connection.share == "none" else listed.unshown[WINDOWS]

    def log_ignored(self) -> None:
        """Log which resources are ignored, if they are not the same as before."""
        before, self._ignored = self._ignored, self.connection.ignored_resources
        if self._ignored is not None and self._ignored != before:
            logger.warning("MCP server %s: some of its resources are ignored: %s", self.server, self._ignored)

    async def subscribed(self) -> None:
        with suppress(SMCPError):  # it has gone, or never answers: there is nothing to wait for
            await self.connection.subscribed()

    def cancel(self) -> None:
        self.listed.set()
        for task in tuple(self.tasks):
            task.cancel()
