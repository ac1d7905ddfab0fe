"""MCP servers with windows, documents and tools, made easy: `ContextServer`, and what is put into it.

Names are imported when they are used: elements and documents do not need mcp, whose import is slow.
"""

from typing import TYPE_CHECKING

from a2c_smcp.utils.lazy_names import lazy_names

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
    from a2c_smcp.mcp_server.passed_meta import request_meta
    from a2c_smcp.mcp_server.prompts import AskingPromptTable, PromptTable, UnknownPromptError
    from a2c_smcp.mcp_server.resources import Completions, Listing, ResourceRoom, UnknownResourceError
    from a2c_smcp.mcp_server.server import ContextServer
    from a2c_smcp.mcp_server.tools import ToolCall, ToolTable
    from a2c_smcp.mcp_server.windows import Window

__all__ = [
    "Announcer",
    "AskingPromptTable",
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
    "PromptTable",
    "ResourceRoom",
    "ToolCall",
    "ToolTable",
    "UnknownPromptError",
    "UnknownResourceError",
    "Window",
    "request_meta",
]

_ROOMS = {
    "documents": ("Announcer", "Document", "DocumentShelf", "DocumentSource", "Page", "PageSummary", "PagedDocument"),
    "elements": ("Element",),
    "http": ("HttpApp",),
    "prompts": ("AskingPromptTable", "PromptTable", "UnknownPromptError"),
    "passed_meta": ("request_meta",),
    "resources": ("Completions", "Listing", "ResourceRoom", "UnknownResourceError"),
    "server": ("ContextServer",),
    "tools": ("ToolCall", "ToolTable"),
    "windows": ("Window",),
}
__getattr__ = lazy_names(__name__, {name: f"mcp_server.{room}" for room, names in _ROOMS.items() for name in names})
