"""Which windows the desktop shows, in which order, and which ones must be read to decide that. Pure: reads nothing.

A window without text does not show, and then another one shows in its place. So the caller reads what
`windows_to_read` names, and asks again with what it read, until nothing is left to read. Then `show_windows` renders.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mcp_types import BlobResourceContents, ReadResourceResult, Resource, TextResourceContents

from a2c_smcp.computer.resources.server_order import order_servers
from a2c_smcp.computer.types import ToolCallRecord
from a2c_smcp.types import SERVER_NAME, Desktop
from a2c_smcp.utils.text import cut
from a2c_smcp.utils.window_uri import is_window_uri, try_parse_window_uri

__all__ = [
    "ListedWindow",
    "WindowKey",
    "listed_windows",
    "organize_desktop",
    "ranks",
    "show_windows",
    "windows_to_read",
]

logger = logging.getLogger(__name__)

ListedWindow: TypeAlias = tuple[SERVER_NAME, Resource]
#: A server's name and the URI of a window that it lists.
WindowKey: TypeAlias = tuple[SERVER_NAME, str]


def organize_desktop(
    windows: Sequence[tuple[SERVER_NAME, Resource, ReadResourceResult]],
    size: int | None,
    history: Sequence[ToolCallRecord],
) -> list[Desktop]:
    """The windows as agents see them.

    Give the windows of a server in the order of its list, and the history with the oldest call first.
    """
    return show_windows(windows, size, [record["server"] for record in history])


def show_windows(
    windows: Sequence[tuple[SERVER_NAME, Resource, ReadResourceResult]], size: int | None, used: Sequence[SERVER_NAME]
) -> list[Desktop]:
    """`organize_desktop`, given the servers of the last calls, oldest first, instead of their records."""
    if size is not None and size <= 0:
        return []
    candidates = []
    for index, (server, resource, result) in enumerate(windows):
        if (candidate := _candidate(index, server, resource)) is not None:
            _warn_of_blobs(resource.uri, result)
            if _texts(result):
                candidates.append(candidate)
    return [_render(*windows[candidate.index][1:]) for candidate in _arrange(candidates, used)[:size]]


def listed_windows(
    resources: Mapping[SERVER_NAME, Iterable[Resource]], window: str | None = None
) -> list[ListedWindow]:
    """The windows among listed resources, each once per server; with `window`, only those of exactly this URI."""
    unique: dict[WindowKey, Resource] = {}
    for server, listed in resources.items():
        for resource in listed:
            if is_window_uri(resource.uri) and window in (None, resource.uri):
                unique.setdefault((server, resource.uri), resource)
    return [(server, resource) for (server, _), resource in unique.items()]


def windows_to_read(
    listed: Sequence[ListedWindow],
    read: Mapping[WindowKey, ReadResourceResult | None],
    size: int | None,
    used: Sequence[SERVER_NAME],
) -> list[ListedWindow]:
    """The windows that must still be read, in the order in which they would show; none when the desktop is known.

    `read` has what was read so far, with `None` for what could not be read. Every unread window is taken to have text.
    So this never names more than `size` windows. If a fullscreen window of a server may still show, this names no other
    window of that server.
    """
    if size is not None and size <= 0:
        return []
    candidates = [it for it in _candidates(listed) if _may_show(read, (it.server, listed[it.index][1].uri))]
    hopeful = [listed[candidate.index] for candidate in _arrange(candidates, used)[:size]]
    return [(server, resource) for server, resource in hopeful if (server, resource.uri) not in read]


def ranks(listed: Sequence[ListedWindow], used: Sequence[SERVER_NAME]) -> dict[WindowKey, int]:
    """How important each window is among all, shown or not; 0 is the most important."""
    candidates = _candidates(listed)
    servers = order_servers(used, {candidate.server for candidate in candidates})
    order = {server: rank for rank, server in enumerate(servers)}
    candidates.sort(key=lambda candidate: (order[candidate.server], -candidate.priority))
    windows = (listed[candidate.index] for candidate in candidates)
    return {(server, resource.uri): rank for rank, (server, resource) in enumerate(windows)}


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A window that can be shown, before it is compared with the others."""

    index: int
    server: SERVER_NAME
    priority: float
    """From 0 to 100."""
    fullscreen: bool


def _candidate(index: int, server: SERVER_NAME, resource: Resource) -> _Candidate | None:
    """A listed window; `None` if its URI is invalid. MCP's annotations and `_meta` say what the URI does not say."""
    if (uri := try_parse_window_uri(resource.uri)) is None:
        return None
    priority: float = uri.priority or 0
    if uri.priority is None and resource.annotations is not None and resource.annotations.priority is not None:
        annotated = resource.annotations.priority
        priority = annotated * 100 if 0 <= annotated <= 1 else 0
    fullscreen = (resource.meta or {}).get("fullscreen") is True if uri.fullscreen is None else uri.fullscreen
    return _Candidate(index, server, priority, fullscreen)


def _candidates(listed: Sequence[ListedWindow]) -> list[_Candidate]:
    found = (_candidate(index, server, resource) for index, (server, resource) in enumerate(listed))
    return [candidate for candidate in found if candidate is not None]


def _arrange(candidates: Iterable[_Candidate], used: Sequence[SERVER_NAME]) -> list[_Candidate]:
    """The windows that show. Servers come in the order of their use, the windows of a server by priority; a
    fullscreen window is the only one of its server.
    """
    by_server: dict[SERVER_NAME, list[_Candidate]] = {}
    for candidate in candidates:
        by_server.setdefault(candidate.server, []).append(candidate)
    return [candidate for server in order_servers(used, by_server) for candidate in _arrange_server(by_server[server])]


def _arrange_server(windows: Sequence[_Candidate]) -> Sequence[_Candidate]:
    for window in windows:
        if window.fullscreen:
            return [window]
    return sorted(windows, key=lambda window: -window.priority)


def _may_show(read: Mapping[WindowKey, ReadResourceResult | None], key: WindowKey) -> bool:
    """Whether a window is unread, or was read and has text."""
    return key not in read or ((result := read[key]) is not None and bool(_texts(result)))


def _texts(result: ReadResourceResult) -> list[str]:
    """The texts of a window, empty ones included. A window without a text never shows."""
    return [content.text for content in result.contents if isinstance(content, TextResourceContents)]


def _warn_of_blobs(uri: str, result: ReadResourceResult) -> None:
    for content in result.contents:
        if isinstance(content, BlobResourceContents):
            logger.warning("window %s has a blob, which the desktop does not show", cut(uri))


def _render(resource: Resource, result: ReadResourceResult) -> Desktop:
    body = "\n\n".join(filter(None, _texts(result)))
    return f"{resource.uri}\n\n{body}" if body else resource.uri
