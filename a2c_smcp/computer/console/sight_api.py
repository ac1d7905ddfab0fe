"""What an agent sees of the computer, for a page: tools, windows, documents and their parts."""

import json
from collections.abc import Mapping
from typing import Any

import anyio.to_thread
from mcp_types import ReadResourceResult, TextResourceContents
from starlette.requests import Request
from starlette.routing import Route

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.console.markdown import to_html
from a2c_smcp.computer.console.requests import number_field, query_field, read_routes
from a2c_smcp.computer.console.views import table_view, tool_view
from a2c_smcp.computer.decisions.shown_text import as_text, visible
from a2c_smcp.computer.finder.organize import file_name
from a2c_smcp.errors import BadRequestError, NotFoundError
from a2c_smcp.utils.dpe_uri import element_uri, page_uri, with_params

__all__ = ["SightAPI"]


class SightAPI:
    """The routes about what an agent sees."""

    def __init__(self, computer: Computer) -> None:
        self._computer = computer

    @property
    def routes(self) -> list[Route]:
        return read_routes(
            {
                "/tools": self._tools,
                "/desktop": self._desktop,
                "/finder": self._finder,
                "/document": self._document,
                "/page": self._page,
                "/element": self._element,
            }
        )

    async def _tools(self, request: Request) -> Any:
        servers = self._computer.tool_servers
        tools = [tool_view(tool, servers.get(tool["name"], "")) for tool in self._computer.get_available_tools()]
        conflicts = [{"tools": each.tool_names, "servers": each.servers} for each in self._computer.tool_conflicts]
        return {"tools": tools, "conflicts": conflicts}

    async def _desktop(self, request: Request) -> Any:
        windows = [desktop.partition("\n\n") for desktop in await self._computer.get_desktop()]
        return {"windows": [{"uri": uri, "text": text} for uri, _, text in windows]}

    async def _finder(self, request: Request) -> Any:
        query = request.query_params
        documents, total = await self._computer.get_finder(
            query.get("keywords", "").split(),
            query.get("type") or None,
            number_field(query.get("offset"), "offset", 0, 10**8),
            number_field(query.get("limit"), "limit", 20, 100),
            by_file_name=True,
        )
        shown = [{**document, "file_name": file_name(document)} for document in documents]
        return {"documents": [_visible_words(each) for each in shown], "total": total}

    async def _document(self, request: Request) -> Any:
        """A document's summary, and a part of the index of its pages."""
        offset = number_field(request.query_params.get("offset"), "offset", 0, 10**8)
        params = {"depth": "pages", "offset": str(offset), "limit": str(CONSOLE_LIMITS.pages)}
        return _object(await self._computer.read_resource(with_params(query_field(request, "uri"), params)))

    async def _page(self, request: Request) -> Any:
        """A page, rendered, and its elements."""
        number = number_field(query_field(request, "page"), "page", 0, 10**8)
        uri, most = page_uri(query_field(request, "uri"), number), CONSOLE_LIMITS.page_characters
        text = _text_of(await self._computer.read_resource(with_params(uri, {"format": "markdown"})))
        page = _object(await self._computer.read_resource(uri))
        html = await anyio.to_thread.run_sync(to_html, text[:most])
        return {"html": html, "cut": len(text) > most, "page": page}

    async def _element(self, request: Request) -> Any:
        """An element of a document as text, and a table also as its cells."""
        uri = element_uri(query_field(request, "uri"), query_field(request, "id"))
        found = _object(await self._computer.read_resource(uri))
        return {"text": as_text(found), "table": table_view(found.get("content"))}


def _visible_words(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document's summary with no hidden characters in its words. The URI stays as it is: it opens the document."""
    said = ("title", "summary", "file_name")
    return {key: visible(value) if key in said and isinstance(value, str) else value for key, value in document.items()}


def _text_of(found: ReadResourceResult) -> str:
    text = next((item.text for item in found.contents if isinstance(item, TextResourceContents)), None)
    if text is None:
        raise NotFoundError("there is no text at this place", {"says": "text"})
    return text


def _object(found: ReadResourceResult) -> dict[str, Any]:
    """The JSON object that a document server sent, or `BadRequestError`."""
    try:
        decoded = json.loads(_text_of(found))
    except (ValueError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        raise BadRequestError("the document server sent something that is not a JSON object", {"says": "document"})
    return decoded
