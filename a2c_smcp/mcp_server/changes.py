"""Which client hears of which change, and what waits for a client that reads slowly. No sockets, no MCP session.

Every notice means "this has changed, read it again". A second notice adds nothing while the first still waits. So the
notices that wait for a client are a set, and never more than the client asked for. A client that does not read costs a
few references, and misses nothing when it reads again.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "ChangeNotice",
    "Changes",
    "Listener",
    "ResourceUpdate",
    "ResourcesChanged",
    "TooManyListenersError",
    "ToolsChanged",
]


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """The list of tools has changed."""


@dataclass(frozen=True, slots=True)
class ResourcesChanged:
    """The list of resources has changed."""


@dataclass(frozen=True, slots=True)
class ResourceUpdate:
    """The content of a resource that the client subscribed to has changed."""

    uri: str


ChangeNotice: TypeAlias = ToolsChanged | ResourcesChanged | ResourceUpdate


class TooManyListenersError(RuntimeError):
    """There are too many clients, or too many subscriptions of this client."""


class Changes:
    """Takes changes and passes them on to every listener. Any thread may call it.

    A resource belongs to a topic: a window is its own topic, and the pages of a document share the document's topic. A
    change is announced for a topic. A client hears of it under each URI of the topic to which it has subscribed.
    """

    def __init__(self, max_listeners: int, max_subscriptions: int) -> None:
        self._max_listeners = max_listeners
        self._max_subscriptions = max_subscriptions
        self._listeners: set[Listener] = set()
        self._lock = threading.Lock()

    def listen(self, *, tools: bool, resources: bool) -> "Listener":
        """A new listener on the running loop. Close it at the end."""
        listener = Listener(self._forget, self._max_subscriptions, tools=tools, resources=resources)
        with self._lock:
            if len(self._listeners) >= self._max_listeners:
                raise TooManyListenersError(f"{self._max_listeners} clients listen already")
            self._listeners.add(listener)
        return listener

    def tools_changed(self) -> None:
        for listener in self._everyone():
            listener.hear_of_tools()

    def resources_changed(self) -> None:
        for listener in self._everyone():
            listener.hear_of_resources()

    def updated(self, topic: str) -> None:
        for listener in self._everyone():
            listener.hear_of(topic)

    def __len__(self) -> int:
        return len(self._listeners)

    def _everyone(self) -> "list[Listener]":
        with self._lock:
            return list(self._listeners)

    def _forget(self, listener: "Listener") -> None:
        with self._lock:
            self._listeners.discard(listener)


class Listener:
    """What one client wants to hear, and what waits for it."""

    def __init__(
        self, forget: "Callable[[Listener], None]", max_subscriptions: int, *, tools: bool, resources: bool
    ) -> None:
        self._forget = forget
        self._max_subscriptions = max_subscriptions
        self._tools = tools
        self._resources = resources
        self._topics: dict[str, set[str]] = {}
        self._subscriptions = 0
        self._waiting: dict[ChangeNotice, None] = {}
        self._closed = False
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._more = asyncio.Event()

    def subscribe(self, topic: str, uris: Iterable[str]) -> None:
        """Listen to this topic under these URIs."""
        with self._lock:
            known = self._topics.setdefault(topic, set())
            new = set(uris) - known
            if self._subscriptions + len(new) > self._max_subscriptions:
                raise TooManyListenersError(f"one client may subscribe to {self._max_subscriptions} resources")
            known |= new
            self._subscriptions += len(new)

    def unsubscribe(self, topic: str, uri: str) -> None:
        with self._lock:
            known = self._topics.get(topic, set())
            if uri in known:
                known.remove(uri)
                self._subscriptions -= 1
            if not known:
                self._topics.pop(topic, None)
            self._waiting.pop(ResourceUpdate(uri), None)

    def hear_of_tools(self) -> None:
        if self._tools:
            self._put([ToolsChanged()])

    def hear_of_resources(self) -> None:
        if self._resources:
            self._put([ResourcesChanged()])

    def hear_of(self, topic: str) -> None:
        if topic in self._topics:
            with self._lock:
                notices = [ResourceUpdate(uri) for uri in self._topics.get(topic, ())]
            self._put(notices)

    async def next(self) -> ChangeNotice | None:
        """The notice that has waited longest; `None` if the listener is closed and nothing waits."""
        while True:
            with self._lock:
                if self._waiting:
                    return self._take()
                if self._closed:
                    return None
                self._more.clear()
            await self._more.wait()

    def close(self) -> None:
        """No more notices are added; waiting ones can still be taken. May be called twice."""
        self._forget(self)
        self._closed = True
        self._wake()

    def abandon(self) -> None:
        """The client has gone: nothing more is delivered."""
        self.close()
        with self._lock:
            self._waiting.clear()

    def _take(self) -> ChangeNotice:
        notice = next(iter(self._waiting))
        del self._waiting[notice]
        return notice

    def _put(self, notices: "Iterable[ChangeNotice]") -> None:
        with self._lock:
            if self._closed:
                return
            idle = not self._waiting
            self._waiting.update(dict.fromkeys(notices))
        if idle:
            self._wake()

    def _wake(self) -> None:
        """Wake the listener in its own loop: a tool's worker thread may announce a change."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            self._more.set()
        else:
            with suppress(RuntimeError):  # that loop has ended, and its client with it
                self._loop.call_soon_threadsafe(self._more.set)
