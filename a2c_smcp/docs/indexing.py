"""Puts the words of a folder's documents into its index, one document after the other, while nobody waits for it."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from a2c_smcp.docs.index import Index
from a2c_smcp.docs.served import ServedFile, request_for
from a2c_smcp.docs.walking import FoundFile
from a2c_smcp.docs.workers import Workers
from a2c_smcp.utils.text import well_formed

__all__ = ["Indexer"]

logger = logging.getLogger(__name__)

_AGAIN_SECONDS = 10.0
"""When it looks again at what could not be read now."""


@dataclass(frozen=True, slots=True)
class _IndexBounds:
    """How much of a document is indexed, and when."""

    pages_at_once: int = 16
    pages: int = 5000
    characters: int = 20_000_000
    large_bytes: int = 2**20
    restless_seconds: float = 10.0  # a large file that was saved so lately waits


_BOUNDS: Final = _IndexBounds()


class Indexer:
    """Runs beside a folder. `look()` says that there may be something to do."""

    def __init__(self, root: str, index: Index, workers: Workers, served: Callable[[], Collection[ServedFile]]) -> None:
        self.known = asyncio.Event()
        """Set while the words of every document are in the index."""
        self.on_progress: Callable[[int, int], None] = lambda done, total: None
        self._root = root
        self._index = index
        self._workers = workers
        self._served = served
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
        todo = await asyncio.to_thread(self._index.without_words)
        files = [file for file in self._served() if file.found.path in todo]
        if files:
            self.known.clear()
        whole = True
        for number, file in enumerate(files):
            if _is_restless(file.found):
                whole = False
            elif file in self._served():
                texts = await self._texts(file)
                await asyncio.to_thread(self._index.add_words, file.found, texts)
            self.on_progress(number + 1, len(files))
        return whole

    async def _texts(self, file: ServedFile) -> list[tuple[int, int, str]]:
        """The texts of a document, as far as the index takes them. Pages that cannot be read have none."""
        texts: list[tuple[int, int, str]] = []
        size = 0
        count = 0 if file.problem else min(file.document.page_count, _BOUNDS.pages)
        for first in range(0, count, _BOUNDS.pages_at_once):
            pages = min(_BOUNDS.pages_at_once, count - first)
            request = request_for(self._root, file.found)
            answers = await self._workers.read("texts", request, first, pages, background=True)
            for page, answer in enumerate(answers, first):
                found = [(page, number, well_formed(text)) for number, text in answer.get("texts", ())]
                size += sum(len(text) for _, _, text in found)
                texts += found
            if size > _BOUNDS.characters or any("changed" in answer for answer in answers):
                break
        return texts


def _is_restless(file: FoundFile) -> bool:
    """A date in the future says nothing: such a file may have it for years."""
    age = time.time() - file.mtime_ns / 1e9
    return file.size > _BOUNDS.large_bytes and 0 <= age < _BOUNDS.restless_seconds
