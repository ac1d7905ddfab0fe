"""A library in this process, with real workers, for tests."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from a2c_smcp.docs.library import Library
from a2c_smcp.docs.limits import DocumentLimits
from a2c_smcp.mcp_server.documents import Document

DEADLINE = 60.0


class Heard:
    """What a library announced: `list`, or the reference of what was updated."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self._more = asyncio.Event()

    def documents_changed(self) -> None:
        self._add("list")

    def document_updated(self, doc_ref: str) -> None:
        self._add(doc_ref)

    def _add(self, event: str) -> None:
        self.events.append(event)
        self._more.set()

    async def until(self, happened: Callable[[], Any]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not happened():
                self._more.clear()
                await self._more.wait()


@asynccontextmanager
async def running(
    *roots: Path, limits: DocumentLimits | None = None, **options: Any
) -> AsyncIterator[tuple[Library, Heard]]:
    """A library whose files are all described."""
    library = Library(roots, limits, **options)
    heard = Heard()
    library.announce_to(heard)
    async with library.running(), asyncio.timeout(DEADLINE * 2):
        for folder in library.folders:
            await folder.first_pass.wait()
        yield library, heard


async def by_uri(library: Library) -> dict[str, Document]:
    """Every document, by where its file is."""
    documents, _ = await library.catalogue(0, 1_000_000)
    return {document.file_uri: document for document in documents}


async def words_known(library: Library) -> None:
    try:
        async with asyncio.timeout(DEADLINE):
            for folder in library.folders:
                await folder.indexer.known.wait()
    except TimeoutError:
        missing = [folder._index.unfinished() for folder in library.folders]
        raise AssertionError(f"without words: {missing}; workers: {library.workers.pids}") from None
