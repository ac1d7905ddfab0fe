"""What changes on an MCP server, as one kind of event for both eras. Knows one session; nothing of restarts.

Before 2026-07-28 a server notifies by itself and takes one subscription for each resource. Since then it takes a listen
stream with a fixed filter. To watch something else, a new stream is opened before the old one is closed, so that no
change is missed. A stream that breaks is opened again, and everything that is watched counts as changed.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Final

import anyio
import mcp_types as types

from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.protocol_client import ProtocolClient, ServerSaid
from a2c_smcp.computer.utils.pool import for_each, slices
from a2c_smcp.utils.backoff import backoff

__all__ = ["ChangeFeed", "ChangeFeedTimings", "ChangeKind", "ServerChange"]

logger = logging.getLogger(__name__)


class ChangeKind(Enum):
    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"
    """The list of resources changed."""
    RESOURCE = "resource"
    """The content of one resource changed."""


#: What each notification of a server says.
_KINDS: Final = {
    "notifications/tools/list_changed": ChangeKind.TOOLS,
    "notifications/prompts/list_changed": ChangeKind.PROMPTS,
    "notifications/resources/list_changed": ChangeKind.RESOURCES,
    "notifications/resources/updated": ChangeKind.RESOURCE,
}


@dataclass(frozen=True, slots=True)
class ServerChange:
    """Something changed on a server, perhaps several times, and may be read again."""

    server: str
    kind: ChangeKind
    uri: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeFeedTimings:
    """The waits of a `ChangeFeed`, in seconds."""

    debounce: float = 0.05
    """How long to collect changes of the watched resources before the server is told."""
    answer: float = 5.0
    """How long a server may take to acknowledge a stream."""
    subscribe: float = 30.0
    """How long it may take to answer one subscription. There may be thousands of them, and none is sent twice."""
    retry_first: float = 0.5
    retry_most: float = 30.0


class _OpeningStream:
    """A listen stream that is being opened, or that is open."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def open(self) -> None:
        if not self.opened.done():
            self.opened.set_result(None)

    def refuse(self, error: MCPError) -> bool:
        """Returns `False` if it was open."""
        if self.opened.done():
            return False
        self.opened.set_exception(error)
        return True


@dataclass
class ChangeFeed:
    """The changes in one session. Hand `on_message` to the client, then run `run` beside the session."""

    server: str
    notify: Callable[[ServerChange], None]
    """Called from the event loop; must return at once."""
    timings: ChangeFeedTimings = field(default_factory=ChangeFeedTimings)
    watched: frozenset[str] = frozenset()
    quote: Callable[[object], str] = str
    """Makes what the server said fit for a log line."""

    _modern: bool = field(default=False, init=False)
    _lost: bool = field(default=False, init=False)
    _refused: int = field(default=0, init=False)
    _over: bool = field(default=False, init=False)
    _wake: anyio.Event = field(default_factory=anyio.Event, init=False)
    _settled: anyio.Event = field(default_factory=anyio.Event, init=False)

    def watch(self, uris: Iterable[str]) -> None:
        """Set the resources whose content is watched."""
        wanted = frozenset(uris)
        if wanted != self.watched and not self._over:
            self.watched = wanted
            if self._settled.is_set():  # an event that is not set stays: a task may wait for it
                self._settled = anyio.Event()
            self._wake.set()

    async def settled(self) -> None:
        """Wait until the server has been told what is watched, or cannot be told."""
        await self._settled.wait()

    def on_message(self, message: ServerSaid) -> None:
        if not self._modern:  # otherwise the listen stream tells of the same changes
            uri = message.params.uri if isinstance(message, types.ResourceUpdatedNotification) else None
            self._on_event(message.method, uri)

    async def run(self, client: ProtocolClient) -> None:
        """Tell the server what is watched, now and when that changes, until cancelled.

        Returns early if the server does not announce changes.
        """
        self._modern = client.is_modern
        try:
            await (self._listen(client) if self._modern else self._subscribe(client))
        finally:
            self._over = True
            self._settled.set()

    def _settle(self, told: frozenset[str]) -> None:
        if told == self.watched:
            self._settled.set()

    def _on_event(self, method: str, uri: str | None) -> None:
        if (kind := _KINDS.get(method)) is not None:
            self._tell(kind, uri)

    def _tell(self, kind: ChangeKind, uri: str | None = None) -> None:
        try:
            self.notify(ServerChange(self.server, kind, uri))
        except Exception:
            # A boundary: the callback is not ours, and the next change must still be heard.
            logger.exception("the change callback of MCP server %s failed", self.server)

    async def _something_to_do(self) -> None:
        await self._wake.wait()
        await anyio.sleep(self.timings.debounce)
        self._wake = anyio.Event()

    # --- before 2026-07-28

    async def _subscribe(self, client: ProtocolClient) -> None:
        resources = client.server_capabilities.resources
        if resources is None or not resources.subscribe:
            return
        known: frozenset[str] = frozenset()
        while True:
            wanted = self.watched
            self._refused = 0
            # Eight at a time: there may be a hundred thousand.
            await for_each(list(wanted - known), partial(self._ask, client, True), 8)
            await for_each(list(known - wanted), partial(self._ask, client, False), 8)
            if self._refused > 3:
                logger.warning("MCP server %s: %d subscriptions failed in all", self.server, self._refused)
            known = wanted
            self._settle(wanted)
            await self._something_to_do()

    async def _ask(self, client: ProtocolClient, wanted: bool, uri: str) -> None:
        method = "resources/subscribe" if wanted else "resources/unsubscribe"
        try:
            async with asyncio.timeout(self.timings.subscribe):
                await client.send(method, {"uri": uri})
        except (MCPError, TimeoutError) as error:
            self._refused += 1
            if self._refused <= 3:
                why = self.quote(error) if isinstance(error, MCPError) else f"Request {method!r} timed out"
                logger.warning("MCP server %s: %s failed: %s", self.server, method, why)

    # --- since 2026-07-28

    async def _listen(self, client: ProtocolClient) -> None:
        capabilities = client.server_capabilities
        announced = types.SubscriptionFilter(
            tools_list_changed=bool(capabilities.tools and capabilities.tools.list_changed) or None,
            prompts_list_changed=bool(capabilities.prompts and capabilities.prompts.list_changed) or None,
            resources_list_changed=bool(capabilities.resources and capabilities.resources.list_changed) or None,
        )
        subscribe = bool(capabilities.resources and capabilities.resources.subscribe)
        if announced == types.SubscriptionFilter() and not subscribe:
            return
        failures = 0
        current: _OpeningStream | None = None
        async with anyio.create_task_group() as tasks:
            while True:
                wanted, since = self.watched, anyio.current_time()
                uris = sorted(wanted) if subscribe else []
                stream = _OpeningStream()
                tasks.start_soon(
                    self._follow, client, announced.model_copy(update={"resource_subscriptions": uris or None}), stream
                )
                try:
                    with anyio.fail_after(self.timings.answer):
                        await stream.opened
                except (MCPError, TimeoutError) as error:
                    stream.scope.cancel()
                    if isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND:
                        logger.warning("MCP server %s announces changes but has no listen stream", self.server)
                        return
                    self._lose()
                else:
                    if current is not None:
                        current.scope.cancel()
                    current = stream
                    if failures:
                        await self._tell_everything(wanted)
                self._settle(wanted)
                await self._something_to_do()
                failures = self._failures_after(failures, since)
                await anyio.sleep(self._delay(failures))

    async def _follow(self, client: ProtocolClient, wanted: types.SubscriptionFilter, stream: _OpeningStream) -> None:
        with stream.scope:
            try:
                await client.listen(wanted, stream.open, self._on_event)
                ended = MCPError(types.INTERNAL_ERROR, "the stream ended before it was acknowledged")
            except MCPError as error:
                ended = error
            if not stream.refuse(ended):
                self._lose()

    def _lose(self) -> None:
        self._lost = True
        self._wake.set()

    def _failures_after(self, failures: int, since: float) -> int:
        """How many times in a row a stream could not be opened, or broke soon."""
        lost, self._lost = self._lost, False
        if not lost:
            return 0
        return 1 if anyio.current_time() - since > self.timings.retry_most else failures + 1

    def _delay(self, failures: int) -> float:
        """The pause before a stream is opened again. After the first failure there is none."""
        if failures <= 1:
            return 0.0
        return backoff(failures - 1, self.timings.retry_first, self.timings.retry_most)

    async def _tell_everything(self, uris: Iterable[str]) -> None:
        """Everything counts as changed: what happened while there was no listen stream is unknown."""
        for kind in (ChangeKind.TOOLS, ChangeKind.PROMPTS, ChangeKind.RESOURCES):
            self._tell(kind)
        async for some in slices(list(uris)):
            for uri in some:
                self._tell(ChangeKind.RESOURCE, uri)
