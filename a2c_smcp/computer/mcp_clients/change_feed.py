"""What changes on an MCP server, as one kind of event for both eras. Knows one session; nothing of restarts.

Before 2026-07-28 a server notifies by itself and takes one subscription for each resource. Since then it takes a listen
stream with a fixed filter. To watch something else, a new stream is opened before the old one is closed, so that no
change is missed. A stream that breaks is opened again, and everything that is watched counts as changed.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

import anyio
import mcp_types as types
from anyio.abc import TaskStatus
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    Subscription,
    SubscriptionLost,
    ToolsListChanged,
)

from a2c_smcp.computer.mcp_clients.mcp_internals import MODERN_PROTOCOL_VERSIONS, IncomingMessage
from a2c_smcp.computer.mcp_clients.pipes.dispatcher import PipeDispatcher
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

    async def on_message(self, message: IncomingMessage) -> None:
        if self._modern:
            return  # the listen stream tells of the same changes
        match message:
            case types.ToolListChangedNotification():
                self._tell(ChangeKind.TOOLS)
            case types.PromptListChangedNotification():
                self._tell(ChangeKind.PROMPTS)
            case types.ResourceListChangedNotification():
                self._tell(ChangeKind.RESOURCES)
            case types.ResourceUpdatedNotification(params=params):
                self._tell(ChangeKind.RESOURCE, params.uri)

    async def run(self, client: Client, dispatcher: PipeDispatcher | None = None) -> None:
        """Tell the server what is watched, now and when that changes, until cancelled.

        Returns early if the server does not announce changes. Over a pipe, subscriptions go to its dispatcher directly:
        there may be a hundred thousand.
        """
        self._modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
        try:
            await (self._listen(client) if self._modern else self._subscribe(client, dispatcher))
        finally:
            self._over = True
            self._settled.set()

    def _settle(self, told: frozenset[str]) -> None:
        if told == self.watched:
            self._settled.set()

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

    async def _subscribe(self, client: Client, dispatcher: PipeDispatcher | None) -> None:
        resources = client.server_capabilities.resources
        if resources is None or not resources.subscribe:
            return
        known: frozenset[str] = frozenset()
        while True:
            wanted = self.watched
            self._refused = 0
            # Eight at a time: there may be a hundred thousand.
            await for_each(list(wanted - known), partial(self._ask, client, dispatcher, True), 8)
            await for_each(list(known - wanted), partial(self._ask, client, dispatcher, False), 8)
            if self._refused > 3:
                logger.warning("MCP server %s: %d subscriptions failed in all", self.server, self._refused)
            known = wanted
            self._settle(wanted)
            await self._something_to_do()

    async def _ask(self, client: Client, dispatcher: PipeDispatcher | None, wanted: bool, uri: str) -> None:
        method, timeout = "resources/subscribe" if wanted else "resources/unsubscribe", self.timings.subscribe
        try:
            if dispatcher is not None:
                await dispatcher.send_raw_request(method, {"uri": uri}, {"timeout": timeout})
            else:
                # Not `client.subscribe_resource`, which warns of its deprecation.
                request = (
                    types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
                    if wanted
                    else types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
                )
                await client.session.send_request(request, types.EmptyResult, timeout)
        except MCPError as error:
            self._refused += 1
            if self._refused <= 3:
                logger.warning("MCP server %s: %s failed: %s", self.server, method, self.quote(error))

    # --- since 2026-07-28

    async def _listen(self, client: Client) -> None:
        capabilities = client.server_capabilities
        tools = bool(capabilities.tools and capabilities.tools.list_changed)
        prompts = bool(capabilities.prompts and capabilities.prompts.list_changed)
        resources = bool(capabilities.resources and capabilities.resources.list_changed)
        subscribe = bool(capabilities.resources and capabilities.resources.subscribe)
        if not (tools or prompts or resources or subscribe):
            return
        failures = 0
        current: anyio.CancelScope | None = None
        async with anyio.create_task_group() as tasks:
            while True:
                wanted, since = self.watched, anyio.current_time()
                stream = client.listen(
                    tools_list_changed=tools,
                    prompts_list_changed=prompts,
                    resources_list_changed=resources,
                    resource_subscriptions=sorted(wanted) if subscribe else (),
                )
                try:
                    with anyio.fail_after(self.timings.answer):
                        scope: anyio.CancelScope = await tasks.start(self._follow, stream)
                except (MCPError, SubscriptionLost, TimeoutError) as error:
                    if isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND:
                        logger.warning("MCP server %s announces changes but has no listen stream", self.server)
                        return
                    self._lose()
                else:
                    if current is not None:
                        current.cancel()
                    current = scope
                    if failures:
                        await self._tell_everything(wanted)
                self._settle(wanted)
                await self._something_to_do()
                failures = self._failures_after(failures, since)
                await anyio.sleep(self._delay(failures))

    async def _follow(
        self,
        stream: AbstractAsyncContextManager[Subscription],
        *,
        task_status: TaskStatus[anyio.CancelScope],
    ) -> None:
        with anyio.CancelScope() as scope:
            async with stream as subscription:
                task_status.started(scope)
                with suppress(SubscriptionLost):
                    async for event in subscription:
                        match event:
                            case ToolsListChanged():
                                self._tell(ChangeKind.TOOLS)
                            case PromptsListChanged():
                                self._tell(ChangeKind.PROMPTS)
                            case ResourcesListChanged():
                                self._tell(ChangeKind.RESOURCES)
                            case ResourceUpdated(uri=uri):
                                self._tell(ChangeKind.RESOURCE, uri)
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
