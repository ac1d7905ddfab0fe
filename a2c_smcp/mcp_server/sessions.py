"""Changes on their way to MCP clients, in either era: subscriptions and the session's own stream until 2025-11-25,
listen streams since 2026-07-28.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError

from a2c_smcp.mcp_server.changes import (
    ChangeNotice,
    Changes,
    Listener,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdate,
    ToolsChanged,
    TooManyListenersError,
)
from a2c_smcp.mcp_server.mcp_server_internals import SUBSCRIPTION_ID_META_KEY, connection_of

__all__ = ["Serving", "Sessions"]

logger = logging.getLogger(__name__)

_LISTENER = "a2c_smcp.listener"


@dataclass(frozen=True, slots=True)
class Serving:
    """The state of a server while it serves. mcp gives it to every request as its lifespan context."""

    tasks: anyio.abc.TaskGroup
    threads: anyio.CapacityLimiter
    """The limit on threads for tools that are not async."""


class Sessions:
    """Tells every client the changes that it asked for. A client that does not read delays no other."""

    def __init__(self, changes: Changes, topic: Callable[[str], str]) -> None:
        self._changes = changes
        self._topic = topic
        self._streams: dict[str, asyncio.Event] = {}
        self._open: set[str] = set()
        self._listens: set[Listener] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Serving"]:
        """The task group of the tasks that write to clients of the old era."""
        async with anyio.create_task_group() as tasks:
            try:
                yield Serving(tasks, anyio.CapacityLimiter(40))
            finally:
                tasks.cancel_scope.cancel()

    # --- until 2025-11-25

    async def initialized(self, ctx: ServerRequestContext[Any, Any], params: Any) -> None:
        """A session of the old era has begun. From now on it hears of changed lists, and of its subscriptions."""
        try:
            self._listener(ctx)
        except MCPError as error:
            # A notification has no answer that could carry the error.
            logger.warning("a client will not hear of changes: %s", error)

    async def subscribe(
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        with _refusals():
            self._listener(ctx).subscribe(self._topic(params.uri), [params.uri])
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: ServerRequestContext[Any, Any], params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._listener(ctx).unsubscribe(self._topic(params.uri), params.uri)
        return types.EmptyResult()

    def stream_opened(self, session_id: str) -> None:
        """An HTTP client of the old era has opened the stream for its notifications."""
        self._open.add(session_id)
        if (stream := self._streams.get(session_id)) is not None:
            stream.set()

    def stream_closed(self, session_id: str) -> None:
        """The client has closed that stream. Notices wait until it opens another."""
        self._open.discard(session_id)
        if (stream := self._streams.get(session_id)) is not None:
            stream.clear()

    def _listener(self, ctx: ServerRequestContext[Any, Any]) -> Listener:
        connection = connection_of(ctx.session)
        listener: Listener | None = connection.state.get(_LISTENER)
        if listener is None:
            with _refusals():
                listener = self._changes.listen(tools=True, resources=True, prompts=True)
            connection.state[_LISTENER] = listener
            stream = asyncio.Event()
            session_id = connection.session_id
            if session_id is None or session_id in self._open:
                stream.set()  # a pipe stays open as long as its session
            if session_id is not None:
                self._streams[session_id] = stream
            connection.exit_stack.callback(self._ended, listener, stream, session_id)
            ctx.lifespan_context.tasks.start_soon(self._deliver, listener, stream, ctx.session)
        return listener

    def _ended(self, listener: Listener, stream: asyncio.Event, session_id: str | None) -> None:
        if session_id is not None:
            self._streams.pop(session_id, None)
        listener.abandon()
        stream.set()

    async def _deliver(self, listener: Listener, stream: asyncio.Event, session: ServerSession) -> None:
        while (notice := await listener.next()) is not None:
            await stream.wait()
            try:
                await session.send_notification(_notification(notice, None))
            except Exception:
                # This task shares a group with those of other clients.
                logger.exception("a client could not be told of a change")

    # --- since 2026-07-28

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one listen stream until the client, or the server, ends it."""
        if ctx.request_id is None:
            raise MCPError(types.INVALID_REQUEST, "subscriptions/listen needs a request id")
        wanted = params.notifications
        uris = wanted.resource_subscriptions or []
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
        with _refusals():
            listener = self._changes.listen(
                tools=bool(wanted.tools_list_changed),
                resources=bool(wanted.resources_list_changed),
                prompts=bool(wanted.prompts_list_changed),
            )
        self._listens.add(listener)
        try:
            with _refusals():
                for topic, same in self._by_topic(uris):
                    listener.subscribe(topic, same)
            granted = types.SubscriptionFilter(
                tools_list_changed=wanted.tools_list_changed or None,
                resources_list_changed=wanted.resources_list_changed or None,
                prompts_list_changed=wanted.prompts_list_changed or None,
                resource_subscriptions=uris or None,
            )
            acknowledged = types.SubscriptionsAcknowledgedNotificationParams(notifications=granted, _meta=meta)
            await self._send(ctx, types.SubscriptionsAcknowledgedNotification(params=acknowledged))
            while (notice := await listener.next()) is not None:
                await self._send(ctx, _notification(notice, meta))
        finally:
            self._listens.discard(listener)
            listener.close()
        return types.SubscriptionsListenResult(_meta=meta)

    def end_listens(self) -> None:
        """End every listen stream so that its client is told. Waiting notices are still delivered."""
        for listener in list(self._listens):
            listener.close()

    def _by_topic(self, uris: Iterable[str]) -> Iterable[tuple[str, list[str]]]:
        topics: dict[str, list[str]] = {}
        for uri in uris:
            topics.setdefault(self._topic(uri), []).append(uri)
        return topics.items()

    async def _send(self, ctx: ServerRequestContext[Any, Any], notification: types.ServerNotification) -> None:
        await ctx.session.send_notification(notification, related_request_id=ctx.request_id)


@contextmanager
def _refusals() -> Iterator[None]:
    """A reached limit becomes MCP's internal error. Its message names the limit."""
    try:
        yield
    except TooManyListenersError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error)) from None


def _notification(notice: ChangeNotice, meta: dict[str, Any] | None) -> types.ServerNotification:
    match notice:
        case ToolsChanged():
            return types.ToolListChangedNotification(params=meta and types.NotificationParams(_meta=meta))
        case ResourcesChanged():
            return types.ResourceListChangedNotification(params=meta and types.NotificationParams(_meta=meta))
        case PromptsChanged():
            return types.PromptListChangedNotification(params=meta and types.NotificationParams(_meta=meta))
        case ResourceUpdate(uri):
            return types.ResourceUpdatedNotification(
                params=types.ResourceUpdatedNotificationParams(uri=uri, _meta=meta)
            )
