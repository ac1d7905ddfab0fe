"""Windows as a mapping. Setting, changing or deleting one is announced to every client."""

import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

import mcp_types as types

from a2c_smcp.errors import InvalidWindowURIError
from a2c_smcp.mcp_server.changes import Changes
from a2c_smcp.mcp_server.resources import Completions, Contents, Listing, UnknownResourceError
from a2c_smcp.utils.text import well_formed
from a2c_smcp.utils.window_uri import WindowURI, is_window_uri

__all__ = ["Window", "WindowPath", "WindowText", "Windows"]

WindowText: TypeAlias = str | Callable[[], str | Awaitable[str]]

#: `"door"`, `"rooms/kitchen"`, or the segments one by one: `("src/main", "a file")`. `""` is the host without a path.
WindowPath: TypeAlias = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """What a window shows, and its place among the windows of its server.

    `text` is a text, or a function, sync or async, that is called whenever the window is read. A value that breaks a
    rule raises `ValueError` or `TypeError`.
    """

    text: WindowText
    priority: int | None = None
    """0 to 100; windows with a higher one come first. `None` is like 0."""
    fullscreen: bool | None = None
    """Show this window only, and no other of this server."""
    title: str = ""
    description: str = ""
    mime_type: str = "text/plain"
    params: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Query parameters of your own, in the window's URI."""

    def __post_init__(self) -> None:
        if not (isinstance(self.text, str) or callable(self.text)):
            raise TypeError(
                f"a window's text is a text, or a function that returns one, not {type(self.text).__name__}"
            )
        if self.priority is not None and (type(self.priority) is not int or not 0 <= self.priority <= 100):
            raise ValueError(f"a window's priority is an integer from 0 to 100, not {self.priority!r}")
        if not isinstance(self.fullscreen, bool | None):
            raise ValueError(f"a window's fullscreen is true or false, not {self.fullscreen!r}")
        for name in ("title", "description", "mime_type"):
            if not isinstance(value := getattr(self, name), str):
                raise TypeError(f"a window's {name} is a text, not {type(value).__name__}")
        WindowURI("host", params=self.params)  # Raises what is wrong with them.

    async def current(self) -> str:
        """The text, or what its function returns now."""
        if isinstance(self.text, str):
            return self.text
        text = self.text()
        return await text if inspect.isawaitable(text) else text


class Windows(MutableMapping[WindowPath, Window]):
    """The windows of one server, by path. `"a/b"` and `("a", "b")` are the same window."""

    def __init__(self, host: str, changes: Changes) -> None:
        self._host = host
        self._changes = changes
        self._windows: dict[tuple[str, ...], tuple[str, Window]] = {}
        self._by_uri: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    # --- the mapping

    def __getitem__(self, path: WindowPath) -> Window:
        return self._windows[_segments(path)][1]

    def __setitem__(self, path: WindowPath, window: Window) -> None:
        if not isinstance(window, Window):
            raise TypeError(f"windows[{path!r}] is a Window, not {type(window).__name__}")
        key = _segments(path)
        uri = self._uri(key, window)
        with self._lock:
            old = self._windows.get(key)
            self._windows[key] = (uri, window)
            if old is not None:
                self._by_uri.pop(old[0], None)
            self._by_uri[uri] = key
        if old is None or _as_listed(*old) != _as_listed(uri, window):
            self._changes.resources_changed()
        # A function may return something new, also when it is the same function.
        if old is not None and old[0] == uri and (old[1].text != window.text or callable(window.text)):
            self._changes.updated(uri)

    def __delitem__(self, path: WindowPath) -> None:
        with self._lock:
            uri, _ = self._windows.pop(_segments(path))
            self._by_uri.pop(uri, None)
        self._changes.resources_changed()

    def __iter__(self) -> Iterator[WindowPath]:
        return iter(["/".join(key) if not any("/" in part for part in key) else key for key in list(self._windows)])

    def __len__(self) -> int:
        return len(self._windows)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str | tuple) and _segments(path) in self._windows

    # --- beyond a mapping

    def add(self, path: WindowPath, window: Window) -> None:
        """Add a window. Raises `ValueError` if there is one already."""
        if path in self:
            raise ValueError(f"there is a window {path!r} already")
        self[path] = window

    def uri(self, path: WindowPath) -> str:
        """The current URI of a window. It changes with the window's priority."""
        return self._windows[_segments(path)][0]

    def changed(self, path: WindowPath) -> None:
        """Announce that a window whose text is a function would show something new now."""
        self._changes.updated(self.uri(path))

    # --- a room of resources

    def owns(self, uri: str) -> bool:
        return is_window_uri(uri)

    def topic(self, uri: str) -> str:
        return uri

    async def listing(self, offset: int, limit: int) -> Listing:
        with self._lock:
            found = list(islice(self._windows.values(), offset, offset + limit))
            more = offset + limit < len(self._windows)
        return Listing([_resource(uri, window) for uri, window in found], more)

    async def read(self, uri: str) -> Sequence[Contents]:
        if (key := self._by_uri.get(uri)) is None or (found := self._windows.get(key)) is None:
            raise UnknownResourceError(uri)
        window = found[1]
        text = well_formed(await window.current())
        return [types.TextResourceContents(uri=uri, text=text, mime_type=window.mime_type)]

    async def templates(self) -> Sequence[types.ResourceTemplate]:
        return ()

    async def complete(self, template: str, name: str, typed: str, known: Mapping[str, str]) -> Completions:
        return Completions()

    def _uri(self, key: tuple[str, ...], window: Window) -> str:
        try:
            return WindowURI(self._host, key, window.priority, window.fullscreen, window.params).build()
        except InvalidWindowURIError as problem:
            raise ValueError(f"the window {'/'.join(key)!r} cannot have a URI: {problem.message}") from None


def _segments(path: WindowPath) -> tuple[str, ...]:
    if isinstance(path, str):
        return tuple(path.split("/")) if path else ()
    return tuple(path)


def _as_listed(uri: str, window: Window) -> tuple[str, str, str, str]:
    return uri, window.title, window.description, window.mime_type


def _resource(uri: str, window: Window) -> types.Resource:
    return types.Resource(
        uri=uri,
        name=well_formed(window.title) or uri,
        title=well_formed(window.title) or None,
        description=well_formed(window.description) or None,
        mime_type=window.mime_type,
    )
