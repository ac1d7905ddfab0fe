"""What servers share with agents besides the Desktop and the Finder, kept up to date: resources, templates, prompts.

It is told when a server's resources were listed and when its prompts changed, and says when the lists that agents see
have changed. It also knows who wants to hear of which resource. It knows neither configs nor agents.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from a2c_smcp.computer.mcp_clients.item_lists import ItemKind, ItemList
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.resources.shared_lists import SharedItems, uris_of
from a2c_smcp.computer.utils.refresher import Refresher
from a2c_smcp.computer.watching.change_journal import ChangeFanOut
from a2c_smcp.computer.watching.events import ComputerEvent, SharedPromptsChanged, SharedResourcesChanged
from a2c_smcp.errors import SMCPError
from a2c_smcp.types import SERVER_NAME

__all__ = ["SharedResources"]

logger = logging.getLogger(__name__)

_NOTHING: Final = SharedItems()


class _PromptList:
    """The reading of one server's prompts over one connection."""

    def __init__(self, connection: MCPConnection) -> None:
        self.connection = connection
        self.refresher = Refresher()
        self.has_failed = False

    @property
    def is_read_again(self) -> bool:
        """Whether the list must be read for every request: the server does not say when it changes, or the last
        reading failed.
        """
        return self.has_failed or not self.connection.has_capability("prompts.list_changed")


class SharedResources:
    """Call `relisted` and `prompts_changed` when something changes on a server, `drop` when it stops, `aclose` in the
    end. `on_event` is called from the event loop and must return at once. `journals` are told what has changed.
    """

    def __init__(
        self,
        on_event: Callable[[ComputerEvent], None],
        quote: Callable[[object], str] = str,
        journals: ChangeFanOut | None = None,
    ) -> None:
        self._on_event = on_event
        self._journals = journals or ChangeFanOut()
        self._quote = quote
        self._items: dict[SERVER_NAME, SharedItems] = {}
        self._prompts: dict[SERVER_NAME, _PromptList] = {}
        self._watchers: dict[SERVER_NAME, dict[str, set[Callable[[str], None]]]] = {}

    # --- what there is

    def items(self, order: Iterable[SERVER_NAME]) -> Mapping[SERVER_NAME, SharedItems]:
        """What each server shares, in this order."""
        return {server: self._items[server] for server in order if server in self._items}

    async def prompts_current(self, seconds: float, of: SERVER_NAME | None = None) -> None:
        """Wait until the lists of prompts are up to date, or one server's list, but not for long. A list that could
        not be read is tried again, but nobody waits for it.
        """
        wanted = {server: prompts for server, prompts in self._prompts.items() if of in (None, server)}
        for server, prompts in wanted.items():
            if prompts.is_read_again:
                self._read_prompts_soon(server, prompts)
        reading = {task for it in wanted.values() if (task := it.refresher.running) is not None and not it.has_failed}
        if reading:
            await asyncio.wait(reading, timeout=seconds)

    # --- what changes

    def relisted(self, server: SERVER_NAME, connection: MCPConnection) -> None:
        """The resources of a server were listed."""
        if connection.listed is not None:
            self._set(server, self._items.get(server, _NOTHING).with_resources(connection.listed.shared))

    async def read_templates(self, server: SERVER_NAME, connection: MCPConnection) -> None:
        """Read the templates of a server that shares them. They count as changed whenever its resources do."""
        if connection.share == "all" and connection.has_capability("resources"):
            listed = await self._list(server, connection, "templates")
            if listed is not None and server in self._items:
                self._set(server, self._items[server].with_templates(listed))

    def prompts_changed(self, server: SERVER_NAME, connection: MCPConnection) -> None:
        """A server runs now, or has said that its prompts changed."""
        prompts = self._prompts.get(server)
        if prompts is None or prompts.connection is not connection:
            prompts = self._prompts[server] = _PromptList(connection)
        self._read_prompts_soon(server, prompts)

    def drop(self, server: SERVER_NAME) -> None:
        """A server has stopped, or shares less than before."""
        self._set(server, _NOTHING)
        self._items.pop(server, None)
        if (prompts := self._prompts.pop(server, None)) is not None and prompts.refresher.running is not None:
            prompts.refresher.running.cancel()

    async def aclose(self) -> None:
        tasks = {task for prompts in self._prompts.values() if (task := prompts.refresher.running) is not None}
        for server in {*self._items, *self._prompts}:
            self.drop(server)
        if tasks:
            await asyncio.wait(tasks)

    def _set(self, server: SERVER_NAME, items: SharedItems) -> None:
        before, self._items[server] = self._items.get(server, _NOTHING), items
        if (before.resources, before.templates) != (items.resources, items.templates):
            self._journals.note(SharedResourcesChanged.announced_by, server, lambda: uris_of(before.changed(items)))
            self._on_event(SharedResourcesChanged())
        if before.prompts != items.prompts:
            self._journals.note(SharedPromptsChanged.announced_by, server, lambda: [""])
            self._on_event(SharedPromptsChanged())

    def _read_prompts_soon(self, server: SERVER_NAME, prompts: _PromptList) -> None:
        connection = prompts.connection
        if connection.share == "all" and connection.has_capability("prompts"):
            prompts.refresher.soon(partial(self._read_prompts, server, prompts), f"prompts of MCP server {server}")

    async def _read_prompts(self, server: SERVER_NAME, prompts: _PromptList) -> None:
        listed = await self._list(server, prompts.connection, "prompts")
        prompts.has_failed = listed is None
        if listed is not None and self._prompts.get(server) is prompts:
            self._set(server, self._items.get(server, _NOTHING).with_prompts(listed))

    async def _list(self, server: SERVER_NAME, connection: MCPConnection, kind: ItemKind) -> ItemList | None:
        try:
            listed = await connection.list_items(kind)
        except (SMCPError, MCPError) as error:
            logger.warning("MCP server %s: its %s could not be listed: %s", server, kind, self._quote(error))
            return None
        if listed.ignored is not None:
            logger.warning("MCP server %s: %s are ignored", server, listed.ignored)
        return listed

    # --- who wants to hear of a resource

    def watch(self, server: SERVER_NAME, uri: str, callback: Callable[[str], None]) -> None:
        """Call back whenever this resource changes, with its URI, from the event loop."""
        self._watchers.setdefault(server, {}).setdefault(uri, set()).add(callback)

    def unwatch(self, server: SERVER_NAME, uri: str, callback: Callable[[str], None]) -> bool:
        """Stop calling back. Returns whether nobody wants to hear of this resource any more."""
        watchers = self._watchers.get(server, {})
        callbacks = watchers.get(uri, set())
        callbacks.discard(callback)
        if not callbacks:
            watchers.pop(uri, None)
        return not callbacks

    def forget_watchers(self, server: SERVER_NAME) -> None:
        self._watchers.pop(server, None)

    def watched(self, server: SERVER_NAME) -> frozenset[str]:
        """The resources of a server that somebody wants to hear of."""
        return frozenset(self._watchers.get(server, ()))

    def updated(self, server: SERVER_NAME, uri: str) -> None:
        """A resource has changed, or may have."""
        for callback in tuple(self._watchers.get(server, {}).get(uri, ())):
            callback(uri)
