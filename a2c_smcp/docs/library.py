"""Several folders as one source of documents for the kit, with one set of workers."""

import asyncio
import heapq
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from a2c_smcp.docs.folder import Folder
from a2c_smcp.docs.limits import DocumentLimits
from a2c_smcp.docs.page_cache import page_cache
from a2c_smcp.docs.served import FolderChange, ServedFile
from a2c_smcp.docs.workers import Workers
from a2c_smcp.errors import DocumentNotFoundError
from a2c_smcp.mcp_server.documents import Announcer, Document, Page, PageSummary
from a2c_smcp.mcp_server.elements import Element

__all__ = ["Found", "Library"]

_FIRST_ANSWER_SECONDS: Final = 3.0
"""How long the first question waits for all documents to be described."""


@dataclass(frozen=True, slots=True)
class Found:
    """An element that a search found."""

    document: Document
    page_index: int
    element_id: str
    snippet: str


class Library:
    """A `DocumentSource` of folders. Ask it inside `running()`."""

    def __init__(
        self,
        roots: Sequence[str | Path],
        limits: DocumentLimits | None = None,
        *,
        cache: Path | None = None,
        absolute_uris: bool = False,
        workers: int = 2,
    ) -> None:
        """Raises `ValueError` for folders that are none, or that stand inside each other."""
        limits = limits or DocumentLimits()
        self.workers = Workers(limits, workers)
        pages = page_cache(limits.cached_bytes)
        real = [os.path.realpath(root) for root in roots]
        _check(roots, real)
        self.folders = [
            Folder(root, self.workers, limits, label=label, cache=cache, absolute_uris=absolute_uris, pages=pages)
            for root, label in zip(real, _labels(real), strict=True)
        ]
        for folder in self.folders:
            folder.on_change = self._changed
        self._announcers: list[Announcer] = []
        self._waited = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.workers)
            for folder in self.folders:
                await stack.enter_async_context(folder.running())
            yield

    async def search(self, query: str, most: int) -> list[Found]:
        """Elements that hold the words of a query, best first."""
        found = [await folder.search(query, most) for folder in self.folders]
        best = heapq.nsmallest(most, [hit for hits in found for hit in hits], key=lambda hit: hit[1].rank)
        return [Found(file.document, hit.page, f"p{hit.page}-{hit.number}", hit.snippet) for file, hit in best]

    @property
    def words_known(self) -> bool:
        """Whether the words of every document are in the index by now."""
        return all(folder.indexer.known.is_set() for folder in self.folders)

    def on_progress(self, tell: Callable[[int, int], None]) -> None:
        for folder in self.folders:
            folder.on_progress = folder.indexer.on_progress = tell

    # --- a source

    def announce_to(self, announcer: Announcer) -> None:
        self._announcers.append(announcer)

    async def catalogue(self, offset: int, limit: int) -> tuple[Sequence[Document], int]:
        await self._first_documents()
        if len(self.folders) == 1:
            documents = self.folders[0].documents
        else:
            documents = [document for folder in self.folders for document in folder.documents]
        return documents[offset : offset + limit], len(documents)

    async def document(self, doc_ref: str) -> Document | None:
        file = await self._served(doc_ref)
        return None if file is None else file[1].document

    async def page(self, doc_ref: str, page_index: int) -> Page:
        return await (await self._folder(doc_ref)).page(doc_ref, page_index)

    async def page_summaries(self, doc_ref: str, offset: int, limit: int) -> Sequence[PageSummary]:
        return await (await self._folder(doc_ref)).page_summaries(doc_ref, offset, limit)

    async def element(self, doc_ref: str, element_id: str) -> tuple[int, Element] | None:
        """Elements are known by their place, which the kit finds by itself."""
        return None

    async def _first_documents(self) -> None:
        """Once, give the folders a moment: a catalogue that is there at once is better in one piece."""
        if self._waited:
            return
        passes = [asyncio.ensure_future(folder.first_pass.wait()) for folder in self.folders]
        _, late = await asyncio.wait(passes, timeout=_FIRST_ANSWER_SECONDS)
        for waiting in late:
            waiting.cancel()
        self._waited = True

    async def _served(self, doc_ref: str) -> tuple[Folder, ServedFile] | None:
        for folder in self.folders:
            if (file := await folder.served(doc_ref)) is not None:
                return folder, file
        return None

    async def _folder(self, doc_ref: str) -> Folder:
        if (found := await self._served(doc_ref)) is None:
            raise DocumentNotFoundError(doc_ref)
        return found[0]

    def _changed(self, change: FolderChange) -> None:
        for announcer in self._announcers:
            if change.listed:
                announcer.documents_changed()
            for doc_ref in change.updated:
                announcer.document_updated(doc_ref)


def _check(roots: Sequence[str | Path], real: Sequence[str]) -> None:
    if not roots:
        raise ValueError("name at least one folder")
    for given, root in zip(roots, real, strict=True):
        if not os.path.isdir(root):
            raise ValueError(f"{given} is not a folder")
    for root in real:
        for other in real:
            if root is not other and os.path.commonpath([root, other]) == root:
                raise ValueError(f"{other} is in {root}: its files would be served twice")


def _labels(roots: Sequence[str]) -> list[str]:
    """The name of each folder; those with the same name are numbered."""
    labels: list[str] = []
    for root in roots:
        name = os.path.basename(root) or "root"
        number = sum(label == name or label.startswith(f"{name}-") for label in labels)
        labels.append(f"{name}-{number + 1}" if number else name)
    return labels
