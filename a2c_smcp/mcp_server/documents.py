"""Documents: what a source of them offers, and a shelf that holds them in memory. Knows neither URIs nor MCP."""

import threading
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote

from a2c_smcp.mcp_server.elements import Element
from a2c_smcp.utils.text import well_formed

__all__ = [
    "Announcer",
    "AnnouncingSource",
    "Document",
    "DocumentShelf",
    "DocumentSource",
    "NotingSource",
    "Page",
    "PageSummary",
    "PagedDocument",
    "PicturingSource",
    "SummarisingSource",
    "place_of",
    "placed",
]


@dataclass(frozen=True, slots=True)
class Document:
    """How a catalogue describes a document. Values that cannot be listed raise `ValueError` or `TypeError`."""

    doc_ref: str
    """Its name in URIs: unique on its server, and the same as long as the document is the same."""
    title: str
    page_count: int
    file_type: str = ""
    """xlsx, pdf, md…"""
    file_uri: str = ""
    """Where the file itself is, if an agent may know it."""
    keywords: Sequence[str] = ()
    summary: str = ""
    last_modified: str | datetime | None = None
    """A time with its offset from UTC, so that it means one moment everywhere."""

    def __post_init__(self) -> None:
        for name in ("doc_ref", "title", "file_type", "file_uri", "summary"):
            if not isinstance(value := getattr(self, name), str):
                raise TypeError(f"a document's {name} is a text, not {type(value).__name__}")
        if not self.doc_ref:
            raise ValueError("a document needs a doc_ref")
        if well_formed(self.doc_ref) != self.doc_ref or len(quote(self.doc_ref, safe="")) > 4096:
            raise ValueError(f"a doc_ref goes into URIs: {self.doc_ref[:40]!r} is too long or cannot be encoded")
        if type(self.page_count) is not int or self.page_count < 0:
            raise ValueError(f"a document's page_count is an integer from 0 up, not {self.page_count!r}")
        if isinstance(self.keywords, str) or not all(isinstance(word, str) for word in self.keywords):
            raise TypeError("a document's keywords are a list of texts")
        _check_instant(self.last_modified)

    @property
    def modified(self) -> str | None:
        """`last_modified` in ISO 8601."""
        return self.last_modified.isoformat() if isinstance(self.last_modified, datetime) else self.last_modified


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a document: its title and its elements, in order."""

    title: str
    elements: Sequence[Element] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.title, str):
            raise TypeError(f"a page's title is a text, not {type(self.title).__name__}")
        for element in self.elements:
            if not isinstance(element, Element):
                raise TypeError(f"a page is made of elements, not of {type(element).__name__}")


@dataclass(frozen=True, slots=True)
class PageSummary:
    """A page as the index of its document lists it."""

    title: str
    element_count: int


class DocumentSource(Protocol):
    """Where documents come from. Write a class with these four methods; the kit does URIs, formats, ranges, filters and
    error codes.

    The methods are called from the server's event loop, several at a time. Raise any `SMCPError` for what cannot be
    answered.
    A source may also have `page_summaries(doc_ref, offset, limit)`, where that is cheaper than reading the pages,
    `catalogue_note()`, a sentence at the end of the catalogue, `picture(doc_ref, page_index, element, longest)`, where
    a page or an element can be looked at, and `announce_to(announcer)`, which is called once, when the server is made.
    """

    async def catalogue(self, offset: int, limit: int) -> tuple[Sequence[Document], int]:
        """At most `limit` documents, beginning with number `offset`, and how many there are in all."""
        ...

    async def document(self, doc_ref: str) -> Document | None:
        """The document of that reference, `None` if there is none."""
        ...

    async def page(self, doc_ref: str, page_index: int) -> Page:
        """A page of a document that exists; the number is smaller than its `page_count`."""
        ...

    async def element(self, doc_ref: str, element_id: str) -> tuple[int, Element] | None:
        """An element of a document that exists, and the number of its page."""
        ...


@runtime_checkable
class SummarisingSource(Protocol):
    async def page_summaries(self, doc_ref: str, offset: int, limit: int) -> Sequence[PageSummary]: ...


@runtime_checkable
class PicturingSource(Protocol):
    async def picture(self, doc_ref: str, page_index: int, element: Element | None, longest: int) -> bytes | None:
        """A PNG of a page, or of one of its elements, whose longest side has at most `longest` pixels.

        The PNG may have 4 MiB: make the picture smaller until it fits. `None` if there is no picture.
        """
        ...


@runtime_checkable
class AnnouncingSource(Protocol):
    def announce_to(self, announcer: "Announcer") -> None: ...


@runtime_checkable
class NotingSource(Protocol):
    def catalogue_note(self) -> str: ...


class Announcer(Protocol):
    """What a source calls when its documents change: from any thread, and as often as there are changes."""

    def documents_changed(self) -> None:
        """Documents came or went, or are listed under another title."""
        ...

    def document_updated(self, doc_ref: str) -> None:
        """The content of a document changed."""
        ...


# --- elements without an id of their own are known by their place


def placed(page: Page, page_index: int) -> list[Element]:
    """The elements of a page; those without an id get one from their place."""
    return [
        element if element.element_id else replace(element, element_id=f"p{page_index}-{number}")
        for number, element in enumerate(page.elements)
    ]


def place_of(element_id: str) -> tuple[int, int] | None:
    """The page and the number that an id by place stands for, or `None` for any other id."""
    page, dash, number = element_id.removeprefix("p").partition("-")
    if not (dash and element_id.startswith("p") and page.isascii() and page.isdigit() and number.isascii()):
        return None
    if not number.isdigit() or len(element_id) > 30 or f"p{int(page)}-{int(number)}" != element_id:
        return None
    return int(page), int(number)


# --- in memory


@dataclass(frozen=True, slots=True)
class PagedDocument:
    """A document with all its pages, for a `DocumentShelf`. Values that cannot be shown raise `ValueError` or
    `TypeError`.
    """

    title: str
    pages: Sequence[Page] = ()
    file_type: str = ""
    file_uri: str = ""
    keywords: Sequence[str] = ()
    summary: str = ""
    last_modified: str | datetime | None = None

    def __post_init__(self) -> None:
        self.described_as("any")
        ids: set[str] = set()
        for index, page in enumerate(self.pages):
            if not isinstance(page, Page):
                raise TypeError(f"a document is made of pages, not of {type(page).__name__}")
            for element in placed(page, index):
                if element.element_id in ids:
                    raise ValueError(f"two elements of {self.title!r} have the id {element.element_id!r}")
                ids.add(element.element_id)

    def described_as(self, doc_ref: str) -> Document:
        """How the catalogue describes this document under that reference."""
        facts: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("title", "file_type", "file_uri", "keywords", "summary", "last_modified")
        }
        return Document(doc_ref, page_count=len(self.pages), **facts)


class DocumentShelf(MutableMapping[str, PagedDocument]):
    """Documents in memory, as a dictionary by `doc_ref`: `shelf["walden"] = PagedDocument("Walden", [Page(…)])`.

    It is a `DocumentSource` that announces its own changes. Any thread may change it.
    """

    def __init__(self, documents: Mapping[str, PagedDocument] | Iterable[tuple[str, PagedDocument]] = ()) -> None:
        self._documents: dict[str, tuple[Document, PagedDocument]] = {}
        self._announcers: list[Announcer] = []
        self._lock = threading.Lock()
        self.update(documents)

    def announce_to(self, announcer: Announcer) -> None:
        """Announce changes to this announcer, too. A `ContextServer` calls this itself."""
        self._announcers.append(announcer)

    # --- the mapping

    def __getitem__(self, doc_ref: str) -> PagedDocument:
        return self._documents[doc_ref][1]

    def __setitem__(self, doc_ref: str, document: PagedDocument) -> None:
        if not isinstance(document, PagedDocument):
            raise TypeError(f"documents[{doc_ref!r}] is a PagedDocument, not {type(document).__name__}")
        described = document.described_as(doc_ref)
        with self._lock:
            old = self._documents.get(doc_ref)
            self._documents[doc_ref] = described, document
        for announcer in self._announcers:
            if old is None or (old[0].title, old[0].summary) != (described.title, described.summary):
                announcer.documents_changed()
            if old is not None and old[1] != document:
                announcer.document_updated(doc_ref)

    def __delitem__(self, doc_ref: str) -> None:
        with self._lock:
            del self._documents[doc_ref]
        for announcer in self._announcers:
            announcer.documents_changed()

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._documents))

    def __len__(self) -> int:
        return len(self._documents)

    # --- a source

    async def catalogue(self, offset: int, limit: int) -> tuple[Sequence[Document], int]:
        """A part of the documents, in the order in which they were put here, and how many there are in all."""
        with self._lock:
            found = [described for described, _ in islice(self._documents.values(), offset, offset + limit)]
            return found, len(self._documents)

    async def document(self, doc_ref: str) -> Document | None:
        """The document of that reference, `None` if there is none."""
        found = self._documents.get(doc_ref)
        return found and found[0]

    async def page(self, doc_ref: str, page_index: int) -> Page:
        """A page of a document that exists."""
        return self[doc_ref].pages[page_index]

    async def page_summaries(self, doc_ref: str, offset: int, limit: int) -> Sequence[PageSummary]:
        """A part of the index of a document's pages."""
        pages = self[doc_ref].pages[offset : offset + limit]
        return [PageSummary(page.title, len(page.elements)) for page in pages]

    async def element(self, doc_ref: str, element_id: str) -> tuple[int, Element] | None:
        """The element of that id and the number of its page, `None` if there is none."""
        for index, page in enumerate(self[doc_ref].pages):
            for element in page.elements:
                if element.element_id == element_id:
                    return index, element
        return None


def _check_instant(value: Any) -> None:
    if value is None:
        return
    problem = f"a document's last_modified is an ISO 8601 time with its offset from UTC, not {value!r}"
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError(problem) from None
    if not isinstance(instant, datetime) or instant.tzinfo is None:
        raise ValueError(problem)
