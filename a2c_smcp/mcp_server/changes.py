"""Which client hears of which change, and what waits for a client that reads slowly. No sockets, no MCP session.

Every notice means "this has changed, read it again". A second notice adds nothing while the first still waits. So the
notices that wait for a client are a set, and never more than the client asked for. A client that does not read costs a
few references, and misses nothing when it reads again.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "ChangeNotice",
    "Changes",
    "Listener",
    "PromptsChanged",
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
class PromptsChanged:
    """The list of prompts has changed."""


@dataclass(frozen=True, slots=True)
class ResourceUpdate:
    """The content of a resource that the client subscribed to has changed."""

    uri: str


ChangeNotice: TypeAlias = ToolsChanged | ResourcesChanged | PromptsChanged | ResourceUpdate


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
        self._wanted: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.on_wanted: Callable[[str, bool], None] = lambda topic, wanted: None
        """Called when the first client subscribes to a topic, and when the last one has ended its subscription."""

    def listen(self, *, tools: bool, resources: bool, prompts: bool = False) -> "Listener":
        """A new listener on the running loop. Close it at the end."""
        lists = {
            ToolsChanged() if tools else None,
            ResourcesChanged() if resources else None,
            PromptsChanged() if prompts else None,
        }
        listener = Listener(self._forget, self._want, self._max_subscriptions, lists - {None})
        with self._lock:
            if len(self._listeners) >= self._max_listeners:
                raise TooManyListenersError(f"{self._max_listeners} clients listen already")
            self._listeners.add(listener)
        return listener

    def tools_changed(self) -> None:
        self._tell(ToolsChanged())

    def resources_changed(self) -> None:
        self._tell(ResourcesChanged())

    def prompts_changed(self) -> None:
        self._tell(PromptsChanged())

    def updated(self, topic: str) -> None:
        for listener in self._everyone():
            listener.hear_of(topic)

    def __len__(self) -> int:
        return len(self._listeners)

    def _tell(self, notice: "ChangeNotice") -> None:
        for listener in self._everyone():
            listener.hear_of_list(notice)

    def _everyone(self) -> "list[Listener]":
        with self._lock:
            return list(self._listeners)

    def _forget(self, listener: "Listener") -> None:
        with self._lock:
            self._listeners.discard(listener)

    def _want(self, topic: str, wanted: bool) -> None:
        with self._lock:
            before = self._wanted[topic]
            self._wanted[topic] += 1 if wanted else -1
            after = self._wanted[topic]
            if not after:
                del self._wanted[topic]
        if (before == 0) != (after == 0):
            self.on_wanted(topic, wanted)


class Listener:
    """What one client wants to hear, and what waits for it. `lists` has the notices of lists that it asked for."""

    def __init__(
        self,
        forget: "Callable[[Listener], None]",
        want: Callable[[str, bool], None],
        max_subscriptions: int,
        lists: "Collection[ChangeNotice | None]",
    ) -> None:
        self._forget = forget
        self._want = want
        self._max_subscriptions = max_subscriptions
        self._lists = lists
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
            is_new = topic not in self._topics
            new = set(uris) - self._topics.get(topic, set())
            if self._subscriptions + len(new) > self._max_subscriptions:
                raise TooManyListenersError(f"one client may subscribe to {self._max_subscriptions} resources")
            self._topics.setdefault(topic, set()).update(new)
            self._subscriptions += len(new)
        if is_new:
            self._want(topic, True)

    def unsubscribe(self, topic: str, uri: str) -> None:
        with self._lock:
            known = self._topics.get(topic, set())
            if uri in known:
                known.remove(uri)
                self._subscriptions -= 1
            is_last = not known and self._topics.pop(topic, None) is not None
            self._waiting.pop(ResourceUpdate(uri), None)
        if is_last:
            self._want(topic, False)

    def hear_of_list(self, notice: ChangeNotice) -> None:
        if notice in self._lists:
            self._put([notice])

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
        with self._lock:
            self._closed = True
            topics, self._topics = self._topics, {}
        for topic in topics:
            self._want(topic, False)
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
