"""Puts the words of a folder's documents into its index, a few pages at a time, in the background."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from a2c_smcp.docs.index import Index, PageTexts
from a2c_smcp.docs.served import ServedFile, request_for
from a2c_smcp.docs.walking import FoundFile
from a2c_smcp.docs.workers import Workers
from a2c_smcp.utils.text import well_formed

__all__ = ["Indexer"]

logger = logging.getLogger(__name__)

_AGAIN_SECONDS = 10.0
"""When it looks again at what could not be read or kept now."""


@dataclass(frozen=True, slots=True)
class _IndexPacing:
    """How much is read at once, and when."""

    pages_at_once: int = 16
    large_bytes: int = 2**20
    restless_seconds: float = 10.0  # a large file that was saved so lately waits


_PACING: Final = _IndexPacing()


class Indexer:
    """Runs beside a folder. `look()` says that there may be something to do."""

    def __init__(
        self,
        root: str,
        index: Index,
        workers: Workers,
        served: Callable[[], Collection[ServedFile]],
        keep_facts: Callable[[], Awaitable[bool]],
    ) -> None:
        """`keep_facts` puts into the index what could not be kept there before, and says whether that worked."""
        self.known = asyncio.Event()
        """Set while the words of every document are in the index."""
        self.on_progress: Callable[[int, int], None] = lambda done, total: None
        self._root = root
        self._index = index
        self._workers = workers
        self._served = served
        self._keep_facts = keep_facts
        self._work = asyncio.Event()

    def look(self) -> None:
        self._work.set()

    async def run(self) -> None:
        """Index until it is cancelled."""
        while True:
            await self._work.wait()
            self._work.clear()
            try:
                whole = await self._catch_up()
            except Exception:
                # Search is worth less without these words; everything else works.
                logger.exception("the words of %s could not be read; they are tried again", self._root)
                whole = False
            if not whole:
                asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self.look)
            elif not self._work.is_set():
                self.known.set()

    async def _catch_up(self) -> bool:
        """Index what is not in the index; whether that is all by now."""
        whole = await self._keep_facts()
        todo = await asyncio.to_thread(self._index.unfinished)
        # The short ones first: a document of many thousand pages does not keep the others waiting.
        files = sorted((file for file in self._served() if file.found.path in todo), key=_pages)
        if files or not whole:
            self.known.clear()
        for number, file in enumerate(files):
            if file in self._served():
                whole &= not _is_restless(file.found) and await self._add(file, todo[file.found.path])
            self.on_progress(number + 1, len(files))
        return whole

    async def _add(self, file: ServedFile, first: int) -> bool:
        """Index a document from a page on; whether all of it could be kept."""
        count = 0 if file.problem else file.document.page_count
        next_page: int | None = first
        while next_page is not None:
            wanted = min(_PACING.pages_at_once, max(0, count - next_page))
            request = request_for(self._root, file.found)
            answers = await self._workers.read("texts", request, next_page, wanted, background=True) if wanted else []
            if any("changed" in answer for answer in answers):
                return True  # it is described again, and then indexed
            last = next_page + wanted >= count
            pages = [_texts(answer) for answer in answers]
            added = await asyncio.to_thread(self._index.add_pages, file.found, next_page, pages, last=last)
            if last and added == next_page + wanted:
                return True
            next_page = added
        # The file has changed meanwhile, or another process has indexed it, or the index cannot be written.
        return self._index.problem is None


def _texts(answer: dict[str, Any]) -> PageTexts:
    """The texts of a page; `None` for a page that cannot be read."""
    return [(number, well_formed(text)) for number, text in answer["texts"]] if "texts" in answer else None


def _pages(file: ServedFile) -> int:
    return file.document.page_count


def _is_restless(file: FoundFile) -> bool:
    """A date in the future says nothing: such a file may have it for years."""
    age = time.time() - file.mtime_ns / 1e9
    return file.size > _PACING.large_bytes and 0 <= age < _PACING.restless_seconds
