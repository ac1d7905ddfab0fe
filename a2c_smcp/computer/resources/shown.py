"""What agents see of a Computer besides its tools: the windows of the Desktop and the documents of the Finder.

It is told which servers run and what changes on them. It lists their resources, subscribes to them, and says when the
Desktop or the Finder has changed. `Watch` decides that; `desktop/` and `finder/` arrange what is shown. It knows
neither configs nor agents.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio
import anyio.to_thread
from mcp_types import ReadResourceResult, Resource, TextResourceContents

from a2c_smcp.computer.desktop.cutting import DesktopLimits
from a2c_smcp.computer.desktop.reading import read_desktop
from a2c_smcp.computer.finder.aggregator import WARMING_SECONDS, FinderAggregator
from a2c_smcp.computer.finder.organize import organize_finder
from a2c_smcp.computer.mcp_clients.change_feed import ChangeKind, ServerChange
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.resource_lists import ListedResource, Share
from a2c_smcp.computer.resources.polling import poll_windows
from a2c_smcp.computer.resources.read_guard import AgentSight
from a2c_smcp.computer.resources.routing import Target
from a2c_smcp.computer.resources.server_shelf import ServerShelf
from a2c_smcp.computer.resources.shared import SharedResources
from a2c_smcp.computer.rules.reads import ReadKind
from a2c_smcp.computer.utils.pool import slices
from a2c_smcp.computer.watching.announcements import Channel, Listed, Watch, channel_of
from a2c_smcp.computer.watching.change_journal import ChangeFanOut
from a2c_smcp.computer.watching.events import ComputerEvent, DesktopChanged, FinderChanged
from a2c_smcp.errors import BadRequestError, ServerNotActiveError, SMCPError
from a2c_smcp.smcp import DPEDocumentSummary
from a2c_smcp.types import SERVER_NAME, Desktop
from a2c_smcp.utils.window_uri import try_parse_window_uri

__all__ = ["ResourceTimings", "ShownResources"]

logger = logging.getLogger(__name__)

_EVENTS: Final[Mapping[Channel, ComputerEvent]] = {
    Channel(event.announced_by): event for event in (DesktopChanged(), FinderChanged())
}


@dataclass(frozen=True, slots=True)
class ResourceTimings:
    """Every wait for windows and documents, in seconds."""

    list: float = 2.0
    """How long requests wait for a list, counted from the beginning of its reading."""
    subscribe: float = 1.0
    """How long to wait for a server to accept our subscriptions. After that its resources are read anyway."""
    read: float = 10.0
    warm: float = WARMING_SECONDS
    """How long requests wait for summaries that are new or have changed."""


class ShownResources:
    """Call `changed` from the event loop when something happens on a server, and `aclose` in the end.

    `on_event` is called from the event loop and must return at once. `quote` makes a server's words safe for a log
    line.
    """

    def __init__(
        self,
        on_event: Callable[[ComputerEvent], None],
        timings: ResourceTimings | None = None,
        quote: Callable[[object], str] = str,
    ) -> None:
        self._on_event = on_event
        self._timings = timings or ResourceTimings()
        self._quote = quote
        self._finder = FinderAggregator(read_seconds=self._timings.read, quote=quote)
        self.watch = Watch()
        """What each server lists for both."""
        self.journals = ChangeFanOut()
        """Told what the announced changes are about."""
        self.shared = SharedResources(on_event, quote, self.journals)
        """What servers share besides."""
        self._unshown: set[SERVER_NAME] = set()
        """The servers of which the log says that their windows are not shown."""
        self._shelves: dict[SERVER_NAME, ServerShelf] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # --- what is asked

    async def listed(self) -> None:
        """Wait until the lists of all running servers are read, but not for long."""
        with anyio.move_on_after(self._timings.list):
            for shelf in tuple(self._shelves.values()):
                await shelf.listed.wait()

    async def current(self) -> None:
        """Wait until lists and subscriptions are up to date: what is read afterwards misses no change."""
        for shelf in self._shelves.values():
            if shelf.is_listed_again:
                self._refresh_soon(shelf)
        # A list that could not be read is tried again, but nobody waits for it.
        pending = [
            shelf
            for shelf in self._shelves.values()
            if shelf.is_shown and shelf.refresher.running and not shelf.has_failed
        ]
        if pending:
            latest = max(shelf.refresher.since for shelf in pending) + self._timings.list
            tasks = {shelf.refresher.running for shelf in pending if shelf.refresher.running}
            await asyncio.wait(tasks, timeout=max(0.0, latest - _now()))

    async def desktop(
        self,
        size: int | None,
        window: str | None,
        used: Sequence[SERVER_NAME],
        limits: DesktopLimits | None = None,
        sight: AgentSight | None = None,
    ) -> list[Desktop]:
        """The windows of all servers as agents see them, as `Computer.get_desktop` says. `used` names the servers of
        the last calls, oldest first.
        """
        if size is not None and size <= 0:
            return []
        await self.current()
        windows = {server: shelf.windows for server, shelf in self._shelves.items()}
        read = self._read_window
        if sight is not None:
            await sight.require_record()
            if window is not None:
                await self._check_window(window, windows, sight)
            windows = {server: sight.windows(server, listed) for server, listed in windows.items()}
            read = partial(self._read_window_for, sight)
        return await read_desktop(windows, read, size, window, used, limits, self._quote)

    async def _check_window(
        self, window: str, windows: Mapping[SERVER_NAME, Sequence[Resource]], sight: AgentSight
    ) -> None:
        """Raise if the agent may not read this window, whether or not it exists; a person may be asked."""
        listing = [server for server, listed in windows.items() if any(it.uri == window for it in listed)]
        for server in listing or [""]:
            await sight.check(ReadKind.WINDOW, server, window)

    async def _read_window_for(self, sight: AgentSight, server: SERVER_NAME, uri: str) -> ReadResourceResult:
        if not sight.may_read(ReadKind.WINDOW, server, uri):
            # A person must allow it first, when the agent reads it by its URI. Until then the URI shows alone.
            return ReadResourceResult(contents=[TextResourceContents(uri=uri, text="")])
        async with sight.reading(ReadKind.WINDOW, server, uri):
            return await self._read_window(server, uri)

    async def finder(
        self,
        keywords: Sequence[str] | None,
        file_type: str | None,
        used: Sequence[SERVER_NAME],
        offset: int,
        limit: int,
        *,
        by_file_name: bool = False,
        sight: AgentSight | None = None,
    ) -> tuple[list[DPEDocumentSummary], int]:
        """One page of the matching documents, and how many match in all, as `Computer.get_finder` says.

        Raises `BadRequestError` for too many keywords. At most 1,000 documents come at once.
        """
        _check_keywords(keywords or ())
        deadline = _now() + self._timings.warm
        await self.current()
        documents: Sequence[DPEDocumentSummary] = await self._finder.collect_documents(max(0.0, deadline - _now()))
        if sight is not None:
            async with sight.listing("documents"):
                documents = sight.documents(documents)
        organize = partial(
            organize_finder, documents, keywords, file_type, used, offset, min(limit, 1000), by_file_name=by_file_name
        )
        # 5,000 documents take 10 ms, and about as long for each keyword. In a thread, the event loop goes on meanwhile.
        takes_long = len(documents) * max(1, len(keywords or ())) > 5000
        return await anyio.to_thread.run_sync(organize) if takes_long else organize()

    def finder_note(self, sight: AgentSight | None) -> str:
        """What the catalogues say of themselves: of those that the agent may read whole, if one asks."""
        if sight is None:
            return self._finder.note()
        return self._finder.note(lambda server, host: sight.may_read_below(server, f"dpe://{host}/"))

    def unlisted_documents(self, server: SERVER_NAME, uri: str) -> Set[str]:
        """The URIs of a document that a server does not list, but has in its catalogue."""
        return self._finder.unlisted(server, uri)

    def page_count(self, target: Target) -> int:
        """How many pages a document has, as far as it is known."""
        return self._finder.page_count(target.server, target.listed)

    async def _read_window(self, server: SERVER_NAME, uri: str) -> ReadResourceResult:
        connection = self.connection(server)
        async with self._shelves[server].limit:
            return await connection.read_resource(uri, self._timings.read)

    def connection(self, server: SERVER_NAME) -> MCPConnection:
        """The connection to a server that runs, or `ServerNotActiveError`."""
        try:
            return self._shelves[server].connection
        except KeyError:
            raise ServerNotActiveError(server) from None

    def share(self, server: SERVER_NAME) -> Share:
        """What agents may read of a server; nothing of one that does not run."""
        shelf = self._shelves.get(server)
        return "none" if shelf is None else shelf.connection.share

    def subscribe(self, server: SERVER_NAME) -> None:
        """Tell a server again what is watched: the resources that are shown, and those that agents subscribed to."""
        if (shelf := self._shelves.get(server)) is not None and shelf.listed.is_set():
            shelf.connection.subscribe(self.watch.of(server).uris | self.shared.watched(server))

    # --- what changes

    def changed(self, change: ServerChange, connection: MCPConnection | None) -> None:
        """Something changed on a server, or it started or stopped. `connection` is `None` if it does not run now."""
        if connection is None:
            self._drop(change.server)
        elif change.kind is ChangeKind.RESOURCE:
            self._updated(change.server, change.uri or "")
        elif change.kind is ChangeKind.PROMPTS:
            self.shared.prompts_changed(change.server, connection)
        else:
            shelf = self._shelves.get(change.server)
            if shelf is None or shelf.connection is not connection:
                shelf = self._replace(change.server, connection)
            else:
                shelf.was_told = True
            self._refresh_soon(shelf)

    async def aclose(self) -> None:
        """Forget every server. A server that changes after this becomes known again."""
        for server in tuple(self._shelves):
            self._drop(server)
        await self._finder.aclose()
        await self.shared.aclose()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _updated(self, server: SERVER_NAME, uri: str) -> None:
        channel = channel_of(uri)
        if channel is Channel.FINDER:
            self._finder.mark(server, self.watch.stale_documents(server, uri) | self._finder.unlisted(server, uri))
        if channel is not None:
            self.journals.note(channel.value, server, lambda: [uri])
            self._on_event(_EVENTS[channel])
        self.shared.updated(server, uri)

    def _replace(self, server: SERVER_NAME, connection: MCPConnection) -> ServerShelf:
        """Take a new connection. Until its list is read, the old windows stay, unless the config says that less is
        shared now.
        """
        old = self._shelves.get(server)
        if old is not None and old.connection.share != connection.share:
            self._drop(server)
            self.shared.forget_watchers(server)
            old = None
        shelf = self._shelves[server] = ServerShelf(server, connection, old.windows if old else ())
        if old is not None:
            old.cancel()
        self.shared.prompts_changed(server, connection)
        return shelf

    def _drop(self, server: SERVER_NAME) -> None:
        if (shelf := self._shelves.pop(server, None)) is not None:
            shelf.cancel()
            self._finder.drop(server)
            self.shared.drop(server)
            before = self.watch
            self.watch, changed = before.drop(server)
            self._announce_listed(changed, server, before)

    def _refresh_soon(self, shelf: ServerShelf) -> None:
        task = shelf.refresher.soon(partial(self._refresh, shelf), f"resources of MCP server {shelf.server}")
        if task not in shelf.tasks:
            self._keep(shelf, task)

    async def _refresh(self, shelf: ServerShelf) -> None:
        began = _now()
        try:
            resources = await shelf.connection.list_resources() if shelf.connection.has_capability("resources") else []
        except (SMCPError, MCPError) as error:
            shelf.has_failed = True
            shelf.listed.set()
            logger.warning("MCP server %s: its resources could not be listed: %s", shelf.server, error)
            return
        shelf.has_failed = False
        shelf.log_ignored()
        self._log_unshown(shelf)
        await self._relisted(shelf, resources)
        if shelf.refresher.is_stale and len(resources) > 1000:
            # A long list may change all the time. It must not take all of this computer's time.
            await asyncio.sleep(min(_now() - began, 5.0))

    def _log_unshown(self, shelf: ServerShelf) -> None:
        """Log once for each server that its windows are not shown, and what to do about it."""
        if (count := shelf.unshown_windows) and shelf.server not in self._unshown:
            self._unshown.add(shelf.server)
            text = "MCP server %s: its windows (%d) are not shown, because it does not say when they change; %s"
            logger.warning(text, shelf.server, count, "with `poll` in its config they are read every so many seconds")

    async def _relisted(self, shelf: ServerShelf, resources: Sequence[ListedResource]) -> None:
        listed, windows = Listed(), list[Resource]()
        async for some in slices(resources):
            listed.add(resource.uri for resource in some)
            # The URIs are parsed here, where other tasks have their turns, and not by the first desktop.
            windows += [it for it in some if isinstance(it, Resource) and try_parse_window_uri(it.uri)]
        listed.add_others(shelf.connection.listed.others if shelf.connection.listed is not None else ())
        shelf.windows, is_first = windows, not shelf.has_list
        shelf.has_list = True
        before = self.watch
        self.watch, changed = before.relist(shelf.server, listed)
        was_told, shelf.was_told = shelf.was_told, False
        if was_told and (same := [channel.value for channel in Channel if channel not in changed]):
            text = "MCP server %s said that its list of resources changed, but its URIs are the same; not announced: %s"
            logger.info(text, shelf.server, ", ".join(same))
        self._announce_listed(changed, shelf.server, before)
        shelf.listed.set()
        if is_first and (seconds := shelf.polls) is not None:
            polling = poll_windows(shelf, seconds, self._read_window, partial(self._updated, shelf.server))
            self._keep(shelf, asyncio.create_task(polling, name=f"polling of MCP server {shelf.server}"))
        self.subscribe(shelf.server)
        self.shared.relisted(shelf.server, shelf.connection)
        # Before we are subscribed, nobody announces changes. So this waits, but not for long.
        with anyio.move_on_after(self._timings.subscribe) as late:
            await shelf.subscribed()
        await self._finder.relist(shelf.server, shelf.connection, resources)
        if was_told and Channel.FINDER not in changed:
            self._finder.mark_all(shelf.server)  # the URIs are the same, so the content of documents may have changed
        for uri in self.shared.watched(shelf.server) if is_first else ():
            self.shared.updated(shelf.server, uri)  # it may have changed while the server was away
        await self.shared.read_templates(shelf.server, shelf.connection)
        if late.cancelled_caught:
            waiting = self._catch_up_when_subscribed(shelf, listed)
            self._keep(shelf, asyncio.create_task(waiting, name=f"subscriptions of MCP server {shelf.server}"))

    async def _catch_up_when_subscribed(self, shelf: ServerShelf, listed: Listed) -> None:
        """Read and announce again what may have changed before the server subscribed us."""
        await shelf.subscribed()
        self._finder.refresh(shelf.server)
        for channel, uris in listed.channels.items():
            if uris:
                self.journals.note(channel.value, shelf.server, lambda uris=uris: uris)  # type: ignore[misc]
        self._announce_all({channel for channel, uris in listed.channels.items() if uris})

    def _keep(self, shelf: ServerShelf, task: asyncio.Task[None]) -> None:
        for tasks in (shelf.tasks, self._tasks):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    def _announce_listed(self, changed: Set[Channel], server: SERVER_NAME, before: Watch) -> None:
        """Announce what came or went in the list of a server."""
        was, now = before.of(server).channels, self.watch.of(server).channels
        for channel in changed:
            self.journals.note(
                channel.value, server, partial(set[str].symmetric_difference, was[channel], now[channel])
            )
        self._announce_all(changed)

    def _announce_all(self, changed: Iterable[Channel]) -> None:
        for channel in Channel:
            if channel in changed:
                self._on_event(_EVENTS[channel])


def _now() -> float:
    return asyncio.get_running_loop().time()


def _check_keywords(keywords: Sequence[str]) -> None:
    # Each keyword is looked for in each document.
    most, characters = 100, 10_000
    if len(keywords) > most or sum(map(len, keywords)) > characters:
        raise BadRequestError(
            f"field 'keywords': at most {most} keywords, with {characters} characters in all", {"field": "keywords"}
        )
