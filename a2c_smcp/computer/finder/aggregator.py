"""The summaries of the documents of all MCP servers, read in the background and kept fresh.

The caller says which documents a server lists, and which of them have changed. The summaries are read from the server's
catalogue (level 0) where that takes fewer requests, and the rest from the documents themselves (level 1). If a server
lists its catalogue, all documents in it count as listed. This module knows neither subscriptions nor agents.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Any, Final

from a2c_smcp.computer.finder.clients import DocumentReader, MCPClient, TimedClient
from a2c_smcp.computer.finder.shelves import (
    CATALOGUE,
    CATALOGUE_LIMIT,
    READERS,
    Discovery,
    DocumentReading,
    KnownDocument,
    ServerDocuments,
    is_catalogue_wanted,
    keep,
    put_on_shelf,
)
from a2c_smcp.computer.finder.summaries import (
    CataloguePage,
    Described,
    Fields,
    is_complete,
    merged,
    read_catalogue,
    read_document,
)
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.resource_lists import MAX_DOCUMENTS
from a2c_smcp.computer.utils.pool import for_each, slices
from a2c_smcp.errors import PayloadTooLargeError, RequestTimeoutError, SMCPError, ToolError
from a2c_smcp.smcp import DPEDocumentSummary
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.dpe_uri import build_dpe_uri, document_ref, document_uri, try_parse_dpe_uri, with_params
from a2c_smcp.utils.text import cut

__all__ = ["FRESH_SECONDS", "WARMING_SECONDS", "FinderAggregator"]

logger = logging.getLogger(__name__)

#: A summary that is older than this is read again, in the background, when a request comes.
FRESH_SECONDS: Final = 60.0
#: How long a request waits for summaries that are new or have changed.
WARMING_SECONDS: Final = 5.0


class FinderAggregator:
    """Call `relist`, `mark` and `drop` from the event loop when servers change, and `aclose` in the end.

    Or hand in clients: then `collect_documents` lists their documents itself. `quote` makes a server's words safe for a
    log line.
    """

    def __init__(
        self,
        mcp_clients: Mapping[SERVER_NAME, MCPClient] | None = None,
        *,
        read_seconds: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        quote: Callable[[object], str] = str,
    ) -> None:
        self._clients = mcp_clients
        self._read_seconds = read_seconds
        self._clock = clock
        self._quote = quote
        self._shelves: dict[SERVER_NAME, ServerDocuments] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._uri_cache: frozenset[str] = frozenset()

    # --- what there is

    async def collect_documents(self, timeout: float = WARMING_SECONDS) -> list[DPEDocumentSummary]:
        """The summaries of all servers. Waits up to `timeout` seconds for those that are new or have changed.

        Do not change them.
        """
        if self._clients is not None:
            await self._relist_clients(self._clients)
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

    def note(self, may_tell: Callable[[SERVER_NAME, str], bool] = lambda _server, _host: True) -> str:
        """What the catalogues of the servers say of themselves: a line for each catalogue that says something, and of
        whose server and host we `may_tell`.
        """
        notes = (
            f"{server}: {' '.join(cut(note, 500).split())}"
            for server, shelf in self._shelves.items()
            for host, note in shelf.notes.items()
            if note.strip() and may_tell(server, host)
        )
        return cut("\n".join(islice(notes, 20)), 4000)

    def update_uri_cache(self, current_uris: Set[str]) -> bool:
        """Remember the URIs of all documents. Returns whether they differ from those of the last time."""
        before, self._uri_cache = self._uri_cache, frozenset(current_uris)
        return before != self._uri_cache

    async def _relist_clients(self, clients: Mapping[SERVER_NAME, MCPClient]) -> None:
        for server in self._shelves.keys() - clients.keys():
            self.drop(server)
        for server, client in clients.items():
            shelf = self._shelves.get(server)
            known = shelf.connection if shelf is not None else None
            reader = known if isinstance(known, TimedClient) and known.client is client else TimedClient(client)
            try:
                await self.relist(server, reader, await reader.list_documents())
            except (MCPError, SMCPError) as error:
                logger.warning("the documents of MCP server %s could not be listed: %s", server, self._quote(error))

    def unlisted(self, server: SERVER_NAME, uri: str) -> Set[str]:
        """The URI of the document that a `dpe://` URI belongs to, if only the server's catalogue names that
        document.

        If `uri` is a listed catalogue: its URI, and the URIs of all documents that only this catalogue names.
        """
        shelf, parsed = self._shelves.get(server), try_parse_dpe_uri(uri)
        if shelf is None or parsed is None or parsed.host not in shelf.catalogues:
            return frozenset()
        told = shelf.told.get(parsed.host, {})
        if parsed.doc_ref is None:
            return frozenset({shelf.catalogues[parsed.host], *told.values()})
        return frozenset(filter(None, (told.get(parsed.doc_ref),)))

    def page_count(self, server: SERVER_NAME, uris: Iterable[str]) -> int:
        """How many pages the document with one of these URIs has; 0 if that is unknown."""
        shelf = self._shelves.get(server)
        documents = [shelf.documents.get(uri) for uri in uris] if shelf else []
        return max((found.summary["page_count"] for found in documents if found and found.summary), default=0)

    # --- what changes

    async def relist(self, server: SERVER_NAME, connection: DocumentReader, resources: Sequence[Described]) -> None:
        """A server has started, or its list has changed. Reads what is new; on a new connection, everything."""
        shelf = self._shelves.get(server)
        if shelf is None or shelf.connection is not connection:
            self.drop(server)
            shelf = self._shelves[server] = ServerDocuments(server, connection, self._read_seconds)
        known, documents = shelf.documents, dict[str, KnownDocument]()
        implied, catalogues = dict[tuple[str, str], str](), dict[str, str]()
        changed = []
        async for some in slices(resources):
            for resource in some:
                if resource.uri in documents:
                    continue
                if (ref := document_ref(resource.uri)) is not None:
                    document = documents[resource.uri] = known.get(resource.uri) or KnownDocument(resource, *ref)
                    if resource.uri not in known or document.resource != resource:
                        document.resource = resource
                        changed.append(resource.uri)
                elif (part := try_parse_dpe_uri(resource.uri)) is not None:
                    if part.doc_ref is None:
                        catalogues.setdefault(part.host, resource.uri)
                    elif (uri := document_uri(resource.uri)) is not None:
                        implied.setdefault((part.host, part.doc_ref), uri)
        if self._shelves.get(server) is shelf:  # the server may have gone meanwhile
            changed += put_on_shelf(shelf, documents, implied, catalogues)
            self.mark(server, changed)

    def mark(self, server: SERVER_NAME, uris: Iterable[str]) -> None:
        """Read these known documents again, and let requests wait for that.

        Documents that are marked at the same moment are read together.
        """
        shelf = self._shelves.get(server)
        marked = [uri for uri in uris if shelf and uri in shelf.documents]
        if shelf is None or not marked:
            return
        for uri in marked:
            shelf.documents[uri].marks += 1
        if not shelf.stale:
            self._spawn(self._read_stale(shelf), shelf.warming)
        shelf.stale.update(dict.fromkeys(marked))

    def mark_all(self, server: SERVER_NAME) -> None:
        """`mark` all documents of a server. However often this is called, only one further reading waits.

        It waits until the reading before it has ended, and then as long again as that reading took, at most 5 seconds.
        """
        shelf = self._shelves.get(server)
        if shelf is not None and shelf.documents and not shelf.waits_for_turn:
            shelf.waits_for_turn = True
            self._spawn(self._read_all(shelf), shelf.warming)

    def refresh(self, server: SERVER_NAME) -> None:
        """Read all documents of a server again, in the background."""
        if (shelf := self._shelves.get(server)) is not None:
            self._refresh(shelf, list(shelf.documents.values()))

    def drop(self, server: SERVER_NAME) -> None:
        """A server has stopped, has died or was removed."""
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

    async def _read_stale(self, shelf: ServerDocuments) -> None:
        stale, shelf.stale = shelf.stale, {}
        await self._read(shelf, [shelf.documents[uri] for uri in stale if uri in shelf.documents])

    async def _read_all(self, shelf: ServerDocuments) -> None:
        async with shelf.turn:
            # A server may say all the time that its list has changed. It must not take all of this computer's time.
            await asyncio.sleep(max(0.0, shelf.rests_until - self._clock()))
            shelf.waits_for_turn = False
            documents = list(shelf.documents.values())
            for document in documents:
                document.marks += 1
            began = self._clock()
            await self._read(shelf, documents)
            shelf.rests_until = self._clock() + min(self._clock() - began, 5.0)

    def _refresh_old(self, shelf: ServerDocuments) -> None:
        oldest = self._clock() - FRESH_SECONDS
        if shelf.refreshing:
            return  # a hundred thousand documents may take longer to read than they stay fresh
        self._refresh(shelf, [document for document in shelf.documents.values() if 0 < document.read_at < oldest])

    def _refresh(self, shelf: ServerDocuments, documents: list[KnownDocument]) -> None:
        if documents:
            now = self._clock()
            for document in documents:
                document.read_at = now  # so that the next request does not read it, too
            self._spawn(self._read(shelf, documents), shelf.refreshing)

    async def _read(self, shelf: ServerDocuments, documents: Sequence[KnownDocument]) -> None:
        by_host: dict[str, list[DocumentReading]] = {}
        now = self._clock()
        async for some in slices(documents):
            for document in some:
                document.read_at = now
                by_host.setdefault(document.host, []).append(DocumentReading(document, document.marks))
        failures: list[str] = []
        try:
            for host, readings in by_host.items():
                if is_catalogue_wanted(shelf, host, readings):
                    readings = await self._read_catalogue(shelf, host, readings)
                await for_each(readings, lambda reading: self._read_one(shelf, reading, failures), READERS)
        except ToolError:
            return  # the server has gone, and its documents with it
        if failures:
            text = "MCP server %s: %d documents could not be read; the first is %s"
            logger.warning(text, shelf.server, len(failures), self._quote(failures[0]))

    async def _read_one(self, shelf: ServerDocuments, reading: DocumentReading, failures: list[str]) -> None:
        uri = reading.document.resource.uri
        try:
            fields = read_document(await shelf.read(uri))
        except RequestTimeoutError as error:
            failures.append(f"{uri}: {error}")  # its old summary stays
        except (MCPError, PayloadTooLargeError, ValueError) as error:
            failures.append(f"{uri}: {error}")
            keep(shelf, reading, reading.entry)
        else:
            keep(shelf, reading, merged(reading.entry or {}, fields))

    async def _read_catalogue(
        self, shelf: ServerDocuments, host: str, readings: list[DocumentReading]
    ) -> list[DocumentReading]:
        """Take the summaries from the server's catalogue. Returns the documents that must be read themselves."""
        missing: dict[str, DocumentReading] = {}
        listed_twice: list[DocumentReading] = []
        async for some in slices(readings):
            for reading in some:
                if missing.setdefault(reading.document.doc_ref, reading) is not reading:
                    listed_twice.append(reading)
        # If the catalogue itself was asked for, all documents in it count.
        discovery = Discovery(shelf, host) if missing.pop(CATALOGUE, None) is not None else None
        incomplete: list[DocumentReading] = []
        catalogue = shelf.catalogues.get(host) or build_dpe_uri(host)

        async def read_page(uri: str) -> CataloguePage:
            page = read_catalogue(await shelf.read(uri))
            async for some in slices(list(page.documents.items())):
                for doc_ref, fields in some:
                    new = None if discovery is None else discovery.found(doc_ref)
                    reading = new or missing.pop(doc_ref, None)
                    if reading is not None and not _take(shelf, reading, fields):
                        incomplete.append(DocumentReading(reading.document, reading.marks, fields))
            return page

        async def read_from(offset: int) -> None:
            await read_page(with_params(catalogue, {"offset": str(offset), "limit": str(CATALOGUE_LIMIT)}))

        try:
            first = await read_page(catalogue)
            shelf.notes[host] = first.note
            if (missing or discovery) and first.count:
                # A catalogue may claim any size. Without a discovery only the listed documents are needed.
                most = MAX_DOCUMENTS if discovery else first.count + len(shelf.documents)
                await for_each(range(first.count, min(first.total_count, most), CATALOGUE_LIMIT), read_from, READERS)
            if discovery is not None:
                discovery.end()
        except ToolError:
            raise
        except (MCPError, SMCPError, ValueError) as error:
            logger.info("MCP server %s has no catalogue at %s: %s", shelf.server, self._quote(catalogue), error)
            shelf.without_catalogue.add(host)
        # Documents that only the catalogue names stay as they are when the catalogue cannot be read.
        told = shelf.told.get(host, {})
        return [*incomplete, *(reading for ref, reading in missing.items() if ref not in told), *listed_twice]


def _take(shelf: ServerDocuments, reading: DocumentReading, fields: Fields) -> bool:
    """Take a catalogue's entry. Returns whether it has every field; if not, it is shown until the rest is read."""
    if (complete := is_complete(fields)) or reading.document.summary is None:
        keep(shelf, reading, fields)
    return complete
