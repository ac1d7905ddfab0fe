"""Folders of files as an MCP server: documents at `dpe://`, and a tool that searches inside them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Final

import mcp_types as types
from pydantic import Field
from typing_extensions import TypedDict

from a2c_smcp import __version__
from a2c_smcp.docs.library import Library
from a2c_smcp.mcp_server.server import ContextServer
from a2c_smcp.utils.dpe_uri import build_dpe_uri, element_uri, page_uri

__all__ = ["DEFAULT_HOST", "docs_server"]

DEFAULT_HOST: Final = "local.docs"
_INSTRUCTIONS: Final = (
    "Documents of a folder. Find one with search_documents or in the list of resources, read its pages by "
    "…?depth=pages, and then one page or one element. ?format=markdown is for reading."
)


class SearchHit(TypedDict):
    """An element that holds the words."""

    title: str
    doc_ref: str
    page_index: int
    page_uri: str
    element_uri: str
    snippet: str


class SearchResult(TypedDict):
    hits: list[SearchHit]
    complete: bool
    """False while some documents are not in the index yet."""


def docs_server(library: Library, host: str = DEFAULT_HOST) -> ContextServer:
    """A server of these folders, for `run()` or `run_http()`. Raises `ValueError` for a host that cannot be one."""

    @asynccontextmanager
    async def lifespan(_: ContextServer) -> AsyncIterator[None]:
        async with library.running():
            yield

    server = ContextServer(
        "a2c-docs",
        host=host,
        version=__version__,
        title="Documents",
        instructions=_INSTRUCTIONS,
        documents=library,
        lifespan=lifespan,
    )

    @server.tool(
        title="Search inside documents",
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
    async def search_documents(
        query: Annotated[
            str, Field(description="Words, in any language; all of them are looked for.", max_length=1000)
        ],
        limit: Annotated[int, Field(description="How many places to answer with.", ge=1, le=50)] = 10,
    ) -> SearchResult:
        """Search the text of all documents. Answers with pages and elements that hold the words, best first."""
        hits: list[SearchHit] = []
        for found in await library.search(query, limit):
            uri = build_dpe_uri(host, found.document.doc_ref)
            hits.append(
                {
                    "title": found.document.title,
                    "doc_ref": found.document.doc_ref,
                    "page_index": found.page_index,
                    "page_uri": page_uri(uri, found.page_index),
                    "element_uri": element_uri(uri, found.element_id),
                    "snippet": found.snippet,
                }
            )
        return {"hits": hits, "complete": library.words_known}

    return server
