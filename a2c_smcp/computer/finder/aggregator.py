"""The documents of all MCP servers and their summaries, read in the background and kept fresh.

Is told which documents a server lists and which of them changed; reads the summaries from a server's catalogue
(level 0) where that takes fewer requests, and document by document (level 1) what the catalogue does not say. Knows
nothing of how changes are heard or announced, nor of what agents ask for.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final

import msgspec
from mcp import MCPError
from mcp_types import ReadResourceResult

from a2c_smcp.computer.finder.summaries import (
    CataloguePage,
    Described,
    Fields,
    build_summary,
    is_complete,
    listed_documents,
    merged,
    read_catalogue,
    read_document,
)
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.utils.pool import for_each, slices
from a2c_smcp.errors import PayloadTooLargeError, RequestTimeoutError, SMCPError, ToolError
from a2c_smcp.smcp import DPEDocumentSummary
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.dpe_uri import build_dpe_uri, document_ref, with_params

__all__ = ["FRESH_SECONDS", "WARMING_SECONDS", "FinderAggregator"]

logger = logging.getLogger(__name__)

#: How old a summary may get before it is read again, in the background of a request.
FRESH_SECONDS: Final = 60.0
#: How long a request waits for summaries that are being read for the first time, or since a change.
WARMING_SECONDS: Final = 5.0
_READ_SECONDS: Final = 10.0
#: How many documents of one server are read at once.
_READERS: Final = 16
#: The largest `limit` that a `dpe://` URI may have.
_CATALOGUE_LIMIT: Final = 100


class _KnownDocument(msgspec.Struct, eq=False, gc=False):
    """A listed document, and what is known of it.

    The garbage collector does not look at these: there may be a hundred thousand, and nothing refers back to them.
    """

    resource: Described
    host: str
    doc_ref: str
    summary: DPEDocumentSummary | None = None
    marks: int = 0
    """How often it was said to have changed. A reading that began before the last change is not kept."""
    read_at: float = 0.0
    """When the last reading began; 0 before the first."""


class _DocumentReading(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A document that is being read, and how often it was marked by then. As many as there are documents."""

    document: _KnownDocument
    marks: int
    entry: Fields | None = None
    """What the catalogue says of it, if that is not everything."""


class _ServerDocuments:
    """The documents of one server, in the order of its list."""

    def __init__(self, server: SERVER_NAME, connection: MCPConnection) -> None:
        self.server = server
        self.connection = connection
        self.documents: dict[str, _KnownDocument] = {}
        self.stale: dict[str, None] = {}
        self.limit = asyncio.Semaphore(_READERS)
        self.without_catalogue: set[str] = set()
        """Hosts that do not answer at level 0."""
        self.warming: set[asyncio.Task[None]] = set()
        """What requests wait for."""
        self.refreshing: set[asyncio.Task[None]] = set()

    async def read(self, uri: str) -> ReadResourceResult:
        async with self.limit:
            return await self.connection.read_resource(uri, _READ_SECONDS)


class FinderAggregator:
    """Tell it `relist`, `mark` and `drop` as servers change, from the event loop; `aclose` it in the end.

    `quote` is how a log line has what a server wrote.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, quote: Callable[[object], str] = str) -> None:
        self._clock = clock
        self._quote = quote
        self._shelves: dict[SERVER_NAME, _ServerDocuments] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # --- what there is

    async def collect_documents(self, timeout: float = WARMING_SECONDS) -> list[DPEDocumentSummary]:
        """The summaries of all servers, after waiting so long at most for those that are new or have changed.

        Not to be changed by its reader.
        """
        for shelf in self._shelves.values():
            self._refresh_old(shelf)
        warming = {task for shelf in self._shelves.values() for task in shelf.warming}
        if warming:
            await asyncio.wait(warming, timeout=timeout)
        return [
            document.summary
            for shelf in self._shelves.values()
            for document in shelf.documents.values()
            if document.summary is not None
        ]

    def page_count(self, server: SERVER_NAME, uris: Iterable[str]) -> int:
        """How many pages a document has that is listed under one of these URIs; 0 where that is unknown."""
        shelf = self._shelves.get(server)
        documents = [shelf.documents.get(uri) for uri in uris] if shelf else []
        return max((found.summary["page_count"] for found in documents if found and found.summary), default=0)

    # --- what changes

    async def relist(self, server: SERVER_NAME, connection: MCPConnection, resources: Sequence[Described]) -> None:
        """After a server started, or its list changed: reads what is new, or all where the connection is new."""
        shelf = self._shelves.get(server)
        if shelf is None or shelf.connection is not connection:
            self.drop(server)
            shelf = self._shelves[server] = _ServerDocuments(server, connection)
        known, documents = shelf.documents, dict[str, _KnownDocument]()
        changed = []
        async for some in slices(resources):
            for resource in listed_documents(some):
                if resource.uri in documents:
                    continue
                document = documents[resource.uri] = known.get(resource.uri) or _document(resource)
                if resource.uri not in known or document.resource != resource:
                    document.resource = resource
                    changed.append(resource.uri)
        if self._shelves.get(server) is shelf:  # it may have gone while others had their turns
            shelf.documents = documents
            self.mark(server, changed)

    def mark(self, server: SERVER_NAME, uris: Iterable[str]) -> None:
        """Read these listed documents again, and have requests wait for that. Marks of one moment are read together."""
        shelf = self._shelves.get(server)
        marked = [uri for uri in uris if shelf and uri in shelf.documents]
        if shelf is None or not marked:
            return
        for uri in marked:
            shelf.documents[uri].marks += 1
        if not shelf.stale:
            self._spawn(self._read_stale(shelf), shelf.warming)
        shelf.stale.update(dict.fromkeys(marked))

    def refresh(self, server: SERVER_NAME) -> None:
        """Read all documents of a server again, in the background."""
        if (shelf := self._shelves.get(server)) is not None:
            self._refresh(shelf, list(shelf.documents.values()))

    def drop(self, server: SERVER_NAME) -> None:
        """After a server stopped, died or was removed."""
        shelf = self._shelves.pop(server, None)
        for task in (*shelf.warming, *shelf.refreshing) if shelf else ():
            task.cancel()

    async def aclose(self) -> None:
        """Stop reading, and forget everything."""
        for server in tuple(self._shelves):
            self.drop(server)
        if self._tasks:
            await asyncio.wait(self._tasks)

    # --- reading

    def _spawn(self, work: Coroutine[Any, Any, None], kind: set[asyncio.Task[None]]) -> None:
        task = asyncio.create_task(work)
        for tasks in (kind, self._tasks):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _read_stale(self, shelf: _ServerDocuments) -> None:
        stale, shelf.stale = shelf.stale, {}
        await self._read(shelf, [shelf.documents[uri] for uri in stale if uri in shelf.documents])

    def _refresh_old(self, shelf: _ServerDocuments) -> None:
        oldest = self._clock() - FRESH_SECONDS
        if shelf.refreshing:
            return  # reading a hundred thousand documents may take longer than summaries stay fresh
        # Documents that could not be read before are tried again, too.
        self._refresh(shelf, [document for document in shelf.documents.values() if 0 < document.read_at < oldest])

    def _refresh(self, shelf: _ServerDocuments, documents: list[_KnownDocument]) -> None:
        if documents:
            now = self._clock()
            for document in documents:
                document.read_at = now  # so that the next request does not ask for it as well
            self._spawn(self._read(shelf, documents), shelf.refreshing)

    async def _read(self, shelf: _ServerDocuments, documents: Sequence[_KnownDocument]) -> None:
        by_host: dict[str, list[_DocumentReading]] = {}
        now = self._clock()
        async for some in slices(documents):
            for document in some:
                document.read_at = now
                by_host.setdefault(document.host, []).append(_DocumentReading(document, document.marks))
        failures: list[str] = []
        try:
            for host, readings in by_host.items():
                if _catalogue_is_cheaper(shelf, host, len(readings)):
                    readings = await self._read_catalogue(shelf, host, readings)
                await for_each(readings, lambda reading: self._read_one(shelf, reading, failures), _READERS)
        except ToolError:
            return  # the server has gone, and its documents with it
        if failures:
            first = self._quote(failures[0])
            logger.warning(
                "MCP server %s: %d documents could not be read, the first: %s", shelf.server, len(failures), first
            )

    async def _read_one(self, shelf: _ServerDocuments, reading: _DocumentReading, failures: list[str]) -> None:
        uri = reading.document.resource.uri
        try:
            fields = read_document(await shelf.read(uri))
        except RequestTimeoutError as error:
            failures.append(f"{uri}: {error}")  # what is known of it stays
        except (MCPError, PayloadTooLargeError, ValueError) as error:
            failures.append(f"{uri}: {error}")
            _keep(shelf, reading, reading.entry)
        else:
            _keep(shelf, reading, merged(reading.entry or {}, fields))

    async def _read_catalogue(
        self, shelf: _ServerDocuments, host: str, readings: list[_DocumentReading]
    ) -> list[_DocumentReading]:
        """Take what the server's catalogue says; the documents of which it does not say all come back."""
        missing: dict[str, _DocumentReading] = {}
        others: list[_DocumentReading] = []
        """Documents that are listed more than once, under URIs that differ: they come back."""
        async for some in slices(readings):
            for reading in some:
                if missing.setdefault(reading.document.doc_ref, reading) is not reading:
                    others.append(reading)
        incomplete: list[_DocumentReading] = []
        catalogue = build_dpe_uri(host)

        async def read_page(uri: str) -> CataloguePage:
            page = read_catalogue(await shelf.read(uri))
            for doc_ref, fields in page.documents.items():
                reading = missing.pop(doc_ref, None)
                if reading is not None and is_complete(fields):
                    _keep(shelf, reading, fields)
                elif reading is not None:
                    incomplete.append(_DocumentReading(reading.document, reading.marks, fields))
            return page

        async def read_from(offset: int) -> None:
            await read_page(with_params(catalogue, {"offset": str(offset), "limit": str(_CATALOGUE_LIMIT)}))

        try:
            first = await read_page(catalogue)
            if missing and first.count:
                # A catalogue may claim any size; of ours it cannot have more than are listed.
                total = min(first.total_count, first.count + len(shelf.documents))
                await for_each(range(first.count, total, _CATALOGUE_LIMIT), read_from, _READERS)
        except ToolError:
            raise
        except (MCPError, SMCPError, ValueError) as error:
            logger.info("MCP server %s has no catalogue at %s: %s", shelf.server, self._quote(catalogue), error)
            shelf.without_catalogue.add(host)
        return [*incomplete, *missing.values(), *others]


def _document(resource: Described) -> _KnownDocument:
    host, doc_ref = document_ref(resource.uri) or ("", "")
    return _KnownDocument(resource, host, doc_ref)


def _catalogue_is_cheaper(shelf: _ServerDocuments, host: str, wanted: int) -> bool:
    return host not in shelf.without_catalogue and wanted > -(-len(shelf.documents) // _CATALOGUE_LIMIT)


def _keep(shelf: _ServerDocuments, reading: _DocumentReading, fields: Fields | None) -> None:
    """Unless the document was marked since: then this may be old, and a later reading is under way."""
    document = reading.document
    if document.marks == reading.marks:
        document.summary = None if fields is None else build_summary(shelf.server, document.resource, fields)
