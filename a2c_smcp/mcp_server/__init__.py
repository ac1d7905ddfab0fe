"""MCP servers with windows, documents and tools, made easy: `ContextServer`, and what is put into it.

Names are imported when they are used: elements and documents need none of mcp, which takes its time to be imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from a2c_smcp.mcp_server.documents import (
        Announcer,
        Document,
        DocumentShelf,
        DocumentSource,
        Page,
        PagedDocument,
        PageSummary,
    )
    from a2c_smcp.mcp_server.elements import Element
    from a2c_smcp.mcp_server.http import HttpApp
    from a2c_smcp.mcp_server.resources import Completions, Listing, ResourceRoom, UnknownResourceError
    from a2c_smcp.mcp_server.server import ContextServer
    from a2c_smcp.mcp_server.tools import ToolCall, ToolTable
    from a2c_smcp.mcp_server.windows import Window

__all__ = [
    "Announcer",
    "Completions",
    "ContextServer",
    "Document",
    "DocumentShelf",
    "DocumentSource",
    "Element",
    "HttpApp",
    "Listing",
    "Page",
    "PageSummary",
    "PagedDocument",
    "ResourceRoom",
    "ToolCall",
    "ToolTable",
    "UnknownResourceError",
    "Window",
]

_ROOMS = {
    "documents": ("Announcer", "Document", "DocumentShelf", "DocumentSource", "Page", "PageSummary", "PagedDocument"),
    "elements": ("Element",),
    "http": ("HttpApp",),
    "resources": ("Completions", "Listing", "ResourceRoom", "UnknownResourceError"),
    "server": ("ContextServer",),
    "tools": ("ToolCall", "ToolTable"),
    "windows": ("Window",),
}
_ROOM_OF = {name: f"{__name__}.{room}" for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ROOM_OF[name]), name)
