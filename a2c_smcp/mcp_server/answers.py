"""What a document source answers at a `dpe://` URI: every level, in JSON, Markdown and plain text; and completions."""

import base64
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import mcp_types as types

from a2c_smcp.errors import DocumentNotFoundError, ElementNotFoundError, PageOutOfRangeError, SMCPError
from a2c_smcp.mcp_server.changes import Changes
from a2c_smcp.mcp_server.documents import (
    AnnouncingSource,
    Document,
    DocumentSource,
    NotingSource,
    Page,
    PageSummary,
    PicturingSource,
    SummarisingSource,
    place_of,
    placed,
)
from a2c_smcp.mcp_server.elements import Element
from a2c_smcp.mcp_server.rendering import (
    elements_markdown,
    elements_text,
    heading_markdown,
    link_markdown,
    markdown,
    one_line,
    plain,
)
from a2c_smcp.mcp_server.resources import Completions, Contents, Listing, UnknownResourceError
from a2c_smcp.utils.dpe_uri import ParsedDPEUri, build_dpe_uri, is_dpe_uri, parse_dpe_uri, try_parse_dpe_uri
from a2c_smcp.utils.text import well_formed

__all__ = ["DocumentRoom"]

logger = logging.getLogger(__name__)

_MIME_TYPES = {"json": "application/json", "markdown": "text/markdown", "text": "text/plain"}
_DEFAULT_LIMIT = 20
_MOST_COMPLETIONS = 100
_CATALOGUE_STEP = 500
_PAGES_TO_COMPLETE_FROM = 50
_PNG = b"\x89PNG\r\n\x1a\n"
_LARGEST_PICTURE = 4 * 2**20


class DocumentRoom:
    """The documents of one source, as MCP resources."""

    def __init__(self, host: str, source: DocumentSource, changes: Changes) -> None:
        self._host = host
        self._source = source
        self._changes = changes
        if isinstance(source, AnnouncingSource):
            source.announce_to(self)

    # --- what the source, or the owner of the source, says

    def documents_changed(self) -> None:
        self._changes.resources_changed()
        self._changes.updated(self._uri())

    def document_updated(self, doc_ref: str) -> None:
        self._changes.updated(self._uri(doc_ref))
        self._changes.updated(self._uri())

    # --- a room of resources

    def owns(self, uri: str) -> bool:
        return is_dpe_uri(uri)

    def topic(self, uri: str) -> str:
        """The document's own URI, also if a part of it is asked for, or if it is spelled in another way."""
        parsed = try_parse_dpe_uri(uri)
        return uri if parsed is None else build_dpe_uri(parsed.host, parsed.doc_ref)

    async def listing(self, offset: int, limit: int) -> Listing:
        documents, total = await self._source.catalogue(offset, limit)
        found = [
            types.Resource(
                uri=self._uri(document.doc_ref),
                name=well_formed(document.title or document.doc_ref),
                title=well_formed(document.title) or None,
                description=well_formed(document.summary) or None,
                mime_type=_MIME_TYPES["json"],
            )
            for document in documents
        ]
        return Listing(found, offset + len(found) < total)

    async def read(self, uri: str) -> Sequence[Contents]:
        parsed = parse_dpe_uri(uri)
        if parsed.host != self._host:
            raise UnknownResourceError(uri)
        form = parsed.query_params.get("format", "json")
        longest = parsed.image_side
        text = await self._answer(parsed, form)
        contents: list[Contents] = [
            types.TextResourceContents(uri=uri, text=well_formed(text), mime_type=_MIME_TYPES[form])
        ]
        if longest is not None and (picture := await self._picture(parsed, longest)) is not None:
            blob = base64.b64encode(picture).decode("ascii")
            contents.append(types.BlobResourceContents(uri=uri, blob=blob, mime_type="image/png"))
        return contents

    async def templates(self) -> Sequence[types.ResourceTemplate]:
        documents, _ = await self._source.catalogue(0, 1)
        if not documents:
            return ()
        base = self._uri()
        kinds = {
            "document": ("", "A document: what it is, and with ?depth=pages its pages"),
            "page": ("/pages/{page_index}", "A page of a document, numbered from 0"),
            "element": ("/elements/{element_id}", "An element of a document: a table, a chart, a paragraph"),
        }
        return [
            types.ResourceTemplate(name=name, uri_template=f"{base}/{{doc_ref}}{path}", description=description)
            for name, (path, description) in kinds.items()
        ]

    async def complete(self, template: str, name: str, typed: str, known: Mapping[str, str]) -> Completions:
        if not template.startswith(f"{self._uri()}/"):
            return Completions()
        if name == "doc_ref":
            return await self._doc_refs(typed)
        document = await self._document_of(known)
        if document is None:
            return Completions()
        match name:
            case "page_index":
                return _first(number for number in map(str, range(document.page_count)) if number.startswith(typed))
            case "element_id":
                return await self._element_ids(document, typed)
            case _:
                return Completions()

    # --- level by level

    async def _answer(self, uri: ParsedDPEUri, form: str) -> str:
        if uri.doc_ref is None:
            return await self._catalogue(uri, form)
        document = await self._source.document(uri.doc_ref)
        if document is None:
            raise DocumentNotFoundError(uri.doc_ref)
        if uri.page_index is not None:
            return await self._page(document, uri.page_index, uri, form)
        if uri.element_id is not None:
            return await self._element(document, uri.element_id, form)
        return await self._document(document, uri, form)

    async def _catalogue(self, uri: ParsedDPEUri, form: str) -> str:
        offset, limit = _range(uri)
        documents, total = await self._source.catalogue(offset, limit)
        note = self._source.catalogue_note() if isinstance(self._source, NotingSource) else ""
        if form == "json":
            found = {"documents": [self._facts(document) for document in documents], "total_count": total}
            return _json(found | ({"note": note} if note else {}))
        shown = [
            self._line(document.title, self._uri(document.doc_ref), document.summary, form) for document in documents
        ]
        return "\n".join([*shown, *_remainder("documents", offset, len(shown), total), *filter(None, [note])])

    async def _document(self, document: Document, uri: ParsedDPEUri, form: str) -> str:
        facts = self._facts(document)
        offset, limit = _range(uri)
        with_pages = uri.query_params.get("depth") == "pages"
        summaries = await self._summaries(document, offset, limit) if with_pages else []
        if form == "json":
            if with_pages:
                facts["pages"] = [self._page_facts(document, index, page) for index, page in summaries]
                facts |= {"page_offset": offset, "page_limit": limit, "page_total": document.page_count}
            return _json(facts)
        known = {
            "type": document.file_type,
            "pages": str(document.page_count),
            "keywords": ", ".join(document.keywords),
            "modified": document.modified or "",
        }
        parts = [
            heading_markdown(document.title) if form == "markdown" else one_line(document.title),
            document.summary,
            " · ".join(f"{name}: {one_line(value)}" for name, value in known.items() if value),
        ]
        if with_pages:
            lines = [self._page_line(document, index, page, form) for index, page in summaries]
            parts.append("\n".join([*lines, *_remainder("pages", offset, len(lines), document.page_count)]))
        return "\n\n".join(filter(None, parts))

    async def _page(self, document: Document, index: int, uri: ParsedDPEUri, form: str) -> str:
        page = await self._read_page(document, index)
        categories = uri.query_params.get("categories")
        elements = [
            element
            for element in placed(page, index)
            if categories is None or element.category in categories.split(",")
        ]
        if form == "markdown":
            return elements_markdown(elements)
        if form == "text":
            return elements_text(elements)
        return _json(
            {
                "page_index": index,
                "title": page.title,
                "doc_ref": document.doc_ref,
                "uri": self._uri(document.doc_ref, f"pages/{index}"),
                "elements": [_element_facts(element) for element in elements],
                "element_count": len(elements),
            }
        )

    async def _element(self, document: Document, element_id: str, form: str) -> str:
        index, element = await self._find_element(document, element_id)
        if form == "markdown":
            return markdown(element)
        if form == "text":
            return plain(element)
        facts = {
            **_element_facts(element),
            "doc_ref": document.doc_ref,
            "page_index": index,
            "uri": self._uri(document.doc_ref, f"elements/{element_id}"),
        }
        if element.metadata:
            facts["metadata"] = dict(element.metadata)
        return _json(facts)

    async def _picture(self, uri: ParsedDPEUri, longest: int) -> bytes | None:
        """The picture of a page or an element that exists. If there is no picture, the answer is the text alone."""
        if not isinstance(self._source, PicturingSource) or uri.doc_ref is None:
            return None
        try:
            index, element = uri.page_index, None
            if uri.element_id is not None and (document := await self._source.document(uri.doc_ref)) is not None:
                index, element = await self._find_element(document, uri.element_id)
            picture = None if index is None else await self._source.picture(uri.doc_ref, index, element, longest)
        except SMCPError as error:
            logger.warning("there is no picture of %s: %s", uri, error.message)
            return None
        if picture is not None and (len(picture) > _LARGEST_PICTURE or not picture.startswith(_PNG)):
            logger.warning("the picture of %s is not a PNG, or has more than %d bytes", uri, _LARGEST_PICTURE)
            return None
        return picture

    # --- what the source is asked for

    async def _read_page(self, document: Document, index: int) -> Page:
        if index >= document.page_count:
            raise PageOutOfRangeError(index, document.page_count)
        return await self._source.page(document.doc_ref, index)

    async def _find_element(self, document: Document, element_id: str) -> tuple[int, Element]:
        if (found := await self._source.element(document.doc_ref, element_id)) is not None:
            return found
        place = place_of(element_id)
        if place is not None and place[0] < document.page_count:
            elements = placed(await self._source.page(document.doc_ref, place[0]), place[0])
            if place[1] < len(elements) and elements[place[1]].element_id == element_id:
                return place[0], elements[place[1]]
        raise ElementNotFoundError(element_id)

    async def _summaries(self, document: Document, offset: int, limit: int) -> list[tuple[int, PageSummary]]:
        numbers = range(offset, min(offset + limit, document.page_count))
        if isinstance(self._source, SummarisingSource):
            return list(zip(numbers, await self._source.page_summaries(document.doc_ref, offset, limit), strict=False))
        pages = [await self._source.page(document.doc_ref, number) for number in numbers]
        return [
            (number, PageSummary(page.title, len(page.elements))) for number, page in zip(numbers, pages, strict=True)
        ]

    async def _document_of(self, known: Mapping[str, str]) -> Document | None:
        """The document whose pages or elements are to be completed: the one that is named, or the only one."""
        if (doc_ref := known.get("doc_ref")) is not None:
            return await self._source.document(doc_ref)
        documents, total = await self._source.catalogue(0, 1)
        return documents[0] if total == 1 and documents else None

    async def _doc_refs(self, typed: str) -> Completions:
        found: list[str] = []
        offset, total = 0, 1
        while offset < total and len(found) <= _MOST_COMPLETIONS:
            documents, total = await self._source.catalogue(offset, _CATALOGUE_STEP)
            if not documents:
                break
            found += [document.doc_ref for document in documents if document.doc_ref.startswith(typed)]
            offset += len(documents)
        return _first(found)

    async def _element_ids(self, document: Document, typed: str) -> Completions:
        """From the first pages only: opening every page of a long document takes longer than typing an id."""
        found: list[str] = []
        pages = min(document.page_count, _PAGES_TO_COMPLETE_FROM)
        for index in range(pages):
            page = await self._source.page(document.doc_ref, index)
            found += [element.element_id for element in placed(page, index) if element.element_id.startswith(typed)]
            if len(found) > _MOST_COMPLETIONS:
                break
        return replace(_first(found), more=len(found) > _MOST_COMPLETIONS or pages < document.page_count)

    # --- what is said of them

    def _uri(self, doc_ref: str | None = None, sub_path: str | None = None) -> str:
        return build_dpe_uri(self._host, doc_ref, sub_path)

    def _facts(self, document: Document) -> dict[str, Any]:
        return {
            "doc_ref": document.doc_ref,
            "uri": self._uri(document.doc_ref),
            "file_uri": document.file_uri,
            "file_type": document.file_type,
            "title": document.title,
            "page_count": document.page_count,
            "keywords": list(document.keywords),
            "summary": document.summary,
            "last_modified": document.modified,
        }

    def _page_facts(self, document: Document, index: int, page: PageSummary) -> dict[str, Any]:
        return {
            "page_index": index,
            "title": page.title,
            "element_count": page.element_count,
            "uri": self._uri(document.doc_ref, f"pages/{index}"),
            "doc_ref": document.doc_ref,
        }

    def _page_line(self, document: Document, index: int, page: PageSummary, form: str) -> str:
        uri = self._uri(document.doc_ref, f"pages/{index}")
        return self._line(page.title or f"page {index}", uri, f"{page.element_count} elements", form)

    def _line(self, title: str, uri: str, about: str, form: str) -> str:
        about = f": {one_line(about)}" if about else ""
        return f"- {link_markdown(title, uri)}{about}" if form == "markdown" else f"{one_line(title)} ({uri}){about}"


def _element_facts(element: Element) -> dict[str, Any]:
    facts = {
        "element_id": element.element_id,
        "category": element.category,
        "summary": element.brief,
        "content": element.content,
    }
    return facts if element.bbox is None else {**facts, "bbox": list(element.bbox)}


def _remainder(what: str, offset: int, shown: int, total: int) -> list[str]:
    """A line about the part that is left out; no line if nothing is left out."""
    if shown == total:
        return []
    if not shown:
        return [f"none from {offset} on: there are {total} {what}"]
    return ["", f"{what} {offset} to {offset + shown - 1} of {total}; go on with ?offset={offset + shown}"]


def _range(uri: ParsedDPEUri) -> tuple[int, int]:
    return int(uri.query_params.get("offset", 0)), int(uri.query_params.get("limit", _DEFAULT_LIMIT))


def _first(values: Iterable[str]) -> Completions:
    found: list[str] = []
    for value in values:
        if len(found) == _MOST_COMPLETIONS:
            return Completions(found, more=True)
        found.append(value)
    return Completions(found)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
