"""Folders of files as an MCP server: documents at `dpe://`, and a tool that searches inside them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Final, Literal

import mcp_types as types
from pydantic import Field
from typing_extensions import TypedDict

from a2c_smcp import __version__
from a2c_smcp.docs.library import FoundPlace, Library, SearchAnswer
from a2c_smcp.docs.queries import QueryError
from a2c_smcp.errors import BadRequestError
from a2c_smcp.mcp_server.server import ContextServer
from a2c_smcp.utils.dpe_uri import build_dpe_uri, element_uri, page_uri

__all__ = ["DEFAULT_HOST", "docs_server"]

DEFAULT_HOST: Final = "local.docs"
_INSTRUCTIONS: Final = (
    "Documents of a folder. Find one with search_documents or in the list of resources, read its pages by "
    "…?depth=pages, and then one page or one element. ?format=markdown is for reading."
)


class SearchHit(TypedDict):
    """A place that has the words."""

    title: str
    doc_ref: str
    page_index: int
    page_uri: str
    element_uri: str
    """The page's, if the words are in the document's name, title or summary."""
    snippet: str
    matched: Literal["all", "some"]
    """Whether the page has all words, or only some of them."""
    ocr: str | None
    """What read the words from a picture, perhaps with mistakes; null if they are text in the file."""


class UnsearchedDocument(TypedDict):
    title: str
    doc_ref: str


class SearchResult(TypedDict):
    hits: list[SearchHit]
    complete: bool
    """True if everything that can be read was searched. `notes` says what was not."""
    corrected: dict[str, list[str]]
    """Words that no document has, and the words that were searched in their place."""
    not_indexed: list[UnsearchedDocument]
    """Documents that could not be searched yet, at most 20."""
    not_indexed_count: int
    notes: list[str]


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
            str,
            Field(
                description="Words in any language; a page that has all of them is best, in any grammatical form. "
                'A phrase in "quotes" must stand there word by word. Filters: type:pdf, path:reports/2024, '
                "after:2024-05-31 (saved on that day or later).",
                max_length=1000,
            ),
        ],
        limit: Annotated[int, Field(description="How many places to answer with.", ge=1, le=50)] = 10,
    ) -> SearchResult:
        """Search names, titles and text of all documents. Answers with the places that have the words, best first."""
        try:
            found = await library.search(query, limit)
        except QueryError as error:
            raise BadRequestError(str(error)) from None
        return _result(found, host)

    return server


def _result(found: SearchAnswer, host: str) -> SearchResult:
    return {
        "hits": [_hit(place, host) for place in found.places],
        "complete": found.complete,
        "corrected": {word: list(near) for word, near in found.corrected.items()},
        "not_indexed": [{"title": each.title, "doc_ref": each.doc_ref} for each in found.not_indexed[:20]],
        "not_indexed_count": len(found.not_indexed),
        "notes": list(found.notes),
    }


def _hit(place: FoundPlace, host: str) -> SearchHit:
    uri = build_dpe_uri(host, place.document.doc_ref)
    page = page_uri(uri, place.page_index)
    return {
        "title": place.document.title,
        "doc_ref": place.document.doc_ref,
        "page_index": place.page_index,
        "page_uri": page,
        "element_uri": page if place.element_id is None else element_uri(uri, place.element_id),
        "snippet": place.snippet,
        "matched": "all" if place.whole else "some",
        "ocr": place.engine,
    }
