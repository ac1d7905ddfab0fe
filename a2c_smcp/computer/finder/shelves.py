"""The documents of one MCP server: it lists them, or lists parts of them, or its catalogue names them.

Keeps what is known of each document, and how often it has changed. The aggregator decides when to read it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from mcp_types import ReadResourceResult

from a2c_smcp.computer.finder.clients import DocumentReader
from a2c_smcp.computer.finder.summaries import Described, Fields, build_summary
from a2c_smcp.computer.mcp_clients.resource_lists import MAX_DOCUMENTS, ListedDocument
from a2c_smcp.smcp import DPEDocumentSummary
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.dpe_uri import build_dpe_uri

__all__ = [
    "CATALOGUE",
    "CATALOGUE_LIMIT",
    "READERS",
    "Discovery",
    "DocumentReading",
    "KnownDocument",
    "ServerDocuments",
    "is_catalogue_wanted",
    "keep",
    "put_on_shelf",
]

#: How many documents of one server are read at once.
READERS: Final = 16
#: The largest `limit` that a `dpe://` URI may have.
CATALOGUE_LIMIT: Final = 100
#: The `doc_ref` of a catalogue, which no document can have.
CATALOGUE: Final = ""


class KnownDocument(msgspec.Struct, eq=False, gc=False):
    """A document, and what is known of it; or a listed catalogue, which has the `doc_ref` "" and no summary.

    The garbage collector skips these: there may be a hundred thousand, and nothing in them refers back to them.
    """

    resource: Described
    host: str
    doc_ref: str
    summary: DPEDocumentSummary | None = None
    marks: int = 0
    """How often it has changed. A reading that began before the last change is not kept."""
    read_at: float = 0.0
    """When the last reading began; 0 before the first."""


class DocumentReading(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A document that is being read, and how often it had changed when its reading began."""

    document: KnownDocument
    marks: int
    entry: Fields | None = None
    """The document's entry in the catalogue, if some fields are missing there."""


class ServerDocuments:
    """The documents of one server, in the order of its list."""

    def __init__(self, server: SERVER_NAME, connection: DocumentReader, read_seconds: float) -> None:
        self.server = server
        self.connection = connection
        self._read_seconds = read_seconds
        self.documents: dict[str, KnownDocument] = {}
        self.catalogues: dict[str, str] = {}
        """The URIs of the listed catalogues, by host."""
        self.told: dict[str, dict[str, str]] = {}
        """The URIs of the documents that only a listed catalogue names, by host and `doc_ref`."""
        self.notes: dict[str, str] = {}
        """What each catalogue that was read says of itself, by host."""
        self.stale: dict[str, None] = {}
        self.turn = asyncio.Lock()
        """Held while all documents are read."""
        self.rests_until = 0.0
        """When all documents may be read again, by the clock of the aggregator."""
        self.waits_for_turn = False
        self.limit = asyncio.Semaphore(READERS)
        self.without_catalogue: set[str] = set()
        """The hosts whose catalogue cannot be read."""
        self.warming: set[asyncio.Task[None]] = set()
        """The readings that requests wait for."""
        self.refreshing: set[asyncio.Task[None]] = set()

    async def read(self, uri: str) -> ReadResourceResult:
        async with self.limit:
            return await self.connection.read_resource(uri, self._read_seconds)


class Discovery:
    """Finds the documents that only a listed catalogue names, while that catalogue is read."""

    def __init__(self, shelf: ServerDocuments, host: str) -> None:
        self._shelf = shelf
        self._host = host
        self._seen: set[str] = set()
        told = shelf.told.setdefault(host, {})
        self._listed = {it.doc_ref for it in shelf.documents.values() if it.host == host and it.doc_ref not in told}

    def found(self, doc_ref: str) -> DocumentReading | None:
        """The reading of a document that was not known before; `None` for a known one."""
        shelf, told = self._shelf, self._shelf.told.get(self._host)
        if told is None or doc_ref in self._seen or doc_ref in self._listed:
            return None
        self._seen.add(doc_ref)
        if doc_ref in told or len(shelf.documents) >= MAX_DOCUMENTS:
            return None
        try:
            uri = build_dpe_uri(self._host, doc_ref)
        except ValueError:
            return None
        document = KnownDocument(ListedDocument(uri, doc_ref), self._host, doc_ref)
        if shelf.documents.setdefault(uri, document) is not document:
            return None
        told[doc_ref] = uri
        return DocumentReading(document, document.marks)

    def end(self) -> None:
        """The catalogue was read to its end. Forget the documents that it names no more."""
        told = self._shelf.told.get(self._host, {})
        for doc_ref in told.keys() - self._seen:
            self._shelf.documents.pop(told.pop(doc_ref), None)


def put_on_shelf(
    shelf: ServerDocuments,
    documents: dict[str, KnownDocument],
    implied: Mapping[tuple[str, str], str],
    catalogues: dict[str, str],
) -> list[str]:
    """Put documents on the shelf: those that are listed, and those that are known by their parts or by a catalogue.

    Returns the URIs that are new: of documents that are known by their parts, and of catalogues.
    """
    known, changed = shelf.documents, []
    listed = {(it.host, it.doc_ref) for it in documents.values()} if implied or shelf.told else set()
    others = {uri: ref for ref, uri in implied.items() if ref not in listed}
    others |= {uri: (host, CATALOGUE) for host, uri in catalogues.items()}
    for uri, (host, doc_ref) in others.items():
        documents[uri] = known.get(uri) or KnownDocument(ListedDocument(uri, doc_ref), host, doc_ref)
        if uri not in known:
            changed.append(uri)
    shelf.catalogues = catalogues
    shelf.told = {
        host: {ref: uri for ref, uri in told.items() if (host, ref) not in listed and uri not in documents}
        for host, told in shelf.told.items()
        if host in catalogues
    }
    documents |= {uri: known[uri] for told in shelf.told.values() for uri in told.values() if uri in known}
    shelf.documents = documents
    return changed


def is_catalogue_wanted(shelf: ServerDocuments, host: str, readings: Sequence[DocumentReading]) -> bool:
    """Whether to read the catalogue. That is so if the catalogue itself was asked for, if only the catalogue names a
    document, or if it takes fewer requests than its documents.
    """
    told = shelf.told.get(host, {})
    if any(reading.document.doc_ref in told or not reading.document.doc_ref for reading in readings):
        return True
    fewer = len(readings) > -(-len(shelf.documents) // CATALOGUE_LIMIT)
    return fewer and host not in shelf.without_catalogue


def keep(shelf: ServerDocuments, reading: DocumentReading, fields: Fields | None) -> None:
    """Keep what was read, unless the document has changed since. Then a later reading is under way."""
    document = reading.document
    if document.marks == reading.marks:
        document.summary = None if fields is None else build_summary(shelf.server, document.resource, fields)
