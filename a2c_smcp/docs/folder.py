"""The files of one folder as documents: what is there, what is known of it, its pages, and what changes."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from a2c_smcp.docs.describing import Facts, page_from_json, unreadable_page
from a2c_smcp.docs.formats import file_type
from a2c_smcp.docs.index import Hit, Index
from a2c_smcp.docs.indexing import Indexer
from a2c_smcp.docs.limits import DocumentLimits, Unreadable
from a2c_smcp.docs.page_cache import PageCache, page_cache
from a2c_smcp.docs.references import doc_refs
from a2c_smcp.docs.served import FolderChange, ServedFile, request_for
from a2c_smcp.docs.walking import FoundFile, Walk, walk
from a2c_smcp.docs.watching import LONGEST_SECONDS, watching
from a2c_smcp.docs.workers import Workers
from a2c_smcp.errors import DocumentNotFoundError, PageOutOfRangeError
from a2c_smcp.mcp_server.documents import Document, Page, PageSummary
from a2c_smcp.utils.text import well_formed

__all__ = ["Folder"]

logger = logging.getLogger(__name__)

_BATCH: Final = 32
"""Files that are described in one request."""
_TRIES: Final = 3
_RETRY_SECONDS: Final = 1.0
_YOUNG_SECONDS: Final = 2.0
"""A file that is broken and younger than this may still be on its way here."""


class Folder:
    """One folder. `running()` reads it and keeps up with it; what it says goes to `on_change`."""

    def __init__(
        self,
        root: str | Path,
        workers: Workers,
        limits: DocumentLimits,
        *,
        label: str = "",
        cache: Path | None = None,
        absolute_uris: bool = False,
        pages: PageCache | None = None,
    ) -> None:
        # What the person named may be a link; what is below it may not.
        self.root = os.path.realpath(root)
        if not os.path.isdir(self.root):
            raise NotADirectoryError(f"{root} is not a folder")
        self.label = label or os.path.basename(self.root) or "root"
        self.on_change: Callable[[FolderChange], None] = lambda change: None
        self.on_progress: Callable[[int, int], None] = lambda done, total: None
        self.first_pass = asyncio.Event()
        """Set when every file that was there at the start is described."""
        self.limits = limits
        self._workers = workers
        self._index = Index(self.root, cache)
        self._absolute_uris = absolute_uris
        self._pages = page_cache(limits.cached_bytes) if pages is None else pages
        self._walk = Walk({}, {}, 0)
        self._refs: dict[str, str] = {}
        self._ref_of: dict[str, str] = {}
        self._served: dict[str, ServedFile] = {}
        """By path. A file that is no document has none."""
        self._no_documents: dict[str, tuple[int, int]] = {}
        self._sorted: list[Document] | None = None
        self._unsettled = False
        self.indexer = Indexer(self.root, self._index, workers, lambda: self._served.values())
        self._turn = asyncio.Lock()

    # --- what is there

    @property
    def documents(self) -> Sequence[Document]:
        """Every document that is described, in the order of paths."""
        if self._sorted is None:
            self._sorted = [self._served[path].document for path in sorted(self._served)]
        return self._sorted

    @property
    def files(self) -> Iterable[ServedFile]:
        return self._served.values()

    async def served(self, doc_ref: str) -> ServedFile | None:
        """A document by its reference; one that was found and not described yet is described now."""
        path = self._refs.get(doc_ref)
        if path is None:
            return None
        if path not in self._served and (found := self._walk.files.get(path)) is not None:
            if self._no_documents.get(path) == found.version:
                return None
            await self._describe([found], background=False)
        return self._served.get(path)

    async def page(self, doc_ref: str, page_index: int) -> Page:
        """A page; raises an `SMCPError` if it cannot be read."""
        for last_try in (False, True):
            file = await self.served(doc_ref)
            if file is None:
                raise DocumentNotFoundError(doc_ref)
            if file.problem is not None:
                return unreadable_page(file.problem)
            if page_index >= file.document.page_count:
                raise PageOutOfRangeError(page_index, file.document.page_count)
            key = (self.root, file.found, page_index)
            if (known := self._pages.use(key)) is not None:
                return known
            [answer] = await self._workers.read("page", request_for(self.root, file.found), page_index)
            if "changed" in answer and not last_try:
                await self._catch_up()  # it was saved a moment ago: the watch will say so, but later
                continue
            if "page" not in answer:
                raise _problem_of(answer).as_error()
            page = page_from_json(answer["page"])
            self._pages.put(key, page)
            return page
        raise AssertionError

    async def page_summaries(self, doc_ref: str, offset: int, limit: int) -> list[PageSummary]:
        file = await self.served(doc_ref)
        if file is None:
            raise DocumentNotFoundError(doc_ref)
        if file.problem is not None:
            page = unreadable_page(file.problem)
            return [PageSummary(page.title, len(page.elements))][offset : offset + limit]
        count = max(0, min(limit, file.document.page_count - offset))
        answers = await self._workers.read("summary", request_for(self.root, file.found), offset, count)
        return [
            PageSummary(well_formed(answer["title"]), answer["element_count"])
            if "title" in answer
            else PageSummary(f"This page cannot be read: {_problem_of(answer).reason}", 0)
            for answer in answers
        ]

    async def search(self, query: str, most: int) -> list[tuple[ServedFile, Hit]]:
        """Elements of documents that are there now."""
        hits = await asyncio.to_thread(self._index.search, query, most * 2)
        return [(self._served[hit.path], hit) for hit in hits if hit.path in self._served][:most]

    # --- keeping up

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read the folder, and follow its changes, inside this block."""
        tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self.indexer.run())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.to_thread(self._index.close)

    async def _follow(self) -> None:
        """Look, watch, and look again after every change."""
        folders: dict[str, int] = {}
        growing_since: float | None = None
        clock = asyncio.get_running_loop().time
        while True:
            try:
                async with watching([os.path.join(self.root, folder) for folder in folders]) as watch:
                    if growing_since is not None:
                        await watch.quiet()
                    # What happened before the watch began is not heard of.
                    while (found := await self._look()).folders == folders:
                        growing_since = None
                        await self._catch_up(found)
                        with suppress(TimeoutError):
                            async with asyncio.timeout(_RETRY_SECONDS if self._unsettled else None):
                                await watch.settled()
                # There are other folders now. They are watched too, and looked at when nothing more happens in them.
                if self.first_pass.is_set() and growing_since is None:
                    growing_since = clock()
                elif growing_since is not None and clock() - growing_since > LONGEST_SECONDS:
                    await self._catch_up(found)
                folders = found.folders
            except Exception:
                # Whatever a file system does, the next change is looked at.
                logger.exception("%s could not be looked at; it is tried again", self.root)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _look(self) -> Walk:
        try:
            return await asyncio.to_thread(walk, self.root, self.limits.files)
        except OSError as error:
            logger.warning("%s cannot be looked at: %s", self.root, error.strerror)
            # Nothing is watched then, so that a folder which comes back is another one.
            return Walk({}, {}, 0)

    async def _catch_up(self, found: Walk | None = None) -> None:
        """Describe what is new or changed, and say what is different. Without a walk, walk."""
        async with self._turn:
            self._unsettled = False
            for _ in range(_TRIES):
                if not await self._take(found or await self._look()):
                    break
                found = None
        self.first_pass.set()
        self.indexer.look()

    async def _take(self, found: Walk) -> bool:
        """Make a walk the state of things. True if files have changed under way, and another walk is due."""
        old, before = self._walk, {path: file.document for path, file in self._served.items()}
        first = not self.first_pass.is_set()
        self._walk = found
        if old.files.keys() != found.files.keys():
            self._refs = doc_refs(self.label, found.files)
            self._ref_of = {path: ref for ref, path in self._refs.items()}
        gone = [path for path in self._served if path not in found.files]
        for path in gone:
            del self._served[path]
        self._no_documents = {path: version for path, version in self._no_documents.items() if path in found.files}
        self._sorted = None
        todo = [file for path, file in found.files.items() if self._is_news(file)]
        if first:
            todo = await self._from_index(todo)
        changed = await self._describe(todo, background=True, said=first)
        if gone or first:
            await asyncio.to_thread(self._index.forget_others, found.files)
        self._tell(before)
        return changed

    def _is_news(self, file: FoundFile) -> bool:
        served = self._served.get(file.path)
        return self._no_documents.get(file.path) != file.version and (served is None or served.found != file)

    async def _from_index(self, files: list[FoundFile]) -> list[FoundFile]:
        """Serve what was described at another time, and return the rest."""
        known = await asyncio.to_thread(self._index.known, {file.path: file for file in files})
        for file in files:
            if file.path in known:
                self._keep(file, known[file.path])
        return [file for file in files if file.path not in known]

    async def _describe(self, files: Sequence[FoundFile], *, background: bool, said: bool = False) -> bool:
        """Ask the workers what files are. `said` announces what is there already, while the rest is still to come."""
        batches = [files[start : start + _BATCH] for start in range(0, len(files), _BATCH)]
        done = 0
        changed = False
        pacing = _ChangePacing()
        gate = asyncio.Semaphore(self._workers.background_count)

        async def one(batch: Sequence[FoundFile]) -> None:
            nonlocal done, changed
            async with gate:
                requests = [request_for(self.root, file) for file in batch]
                answers = await self._workers.describe(requests, background=background)
            lasting: list[tuple[FoundFile, dict[str, Any] | None]] = []
            for file, answer in zip(batch, answers, strict=True):
                if "changed" in answer:
                    changed = True
                    continue
                facts = _facts_of(file, answer)
                if facts is not None and facts["problem"] and _is_young(file):
                    self._unsettled = True
                    continue
                self._keep(file, facts)
                if facts is None or facts["problem"] is None or facts["problem"]["lasting"]:
                    lasting.append((file, facts))
            await asyncio.to_thread(self._index.remember, lasting)
            done += len(batch)
            self.on_progress(done, len(files))
            if said and done < len(files) and pacing.is_over():
                self.on_change(FolderChange(True, ()))

        await asyncio.gather(*map(one, batches))
        return changed

    def _keep(self, file: FoundFile, facts: dict[str, Any] | None) -> None:
        self._sorted = None
        if facts is None:
            self._no_documents[file.path] = file.version
            self._served.pop(file.path, None)
            return
        problem = Unreadable.from_json(facts["problem"]) if facts["problem"] else None
        document = Document(
            self._ref_of[file.path],
            well_formed(facts["title"]),
            facts["page_count"],
            file_type=well_formed(file_type(file.path)),
            file_uri=self._file_uri(file.path),
            keywords=[well_formed(word) for word in facts["keywords"]],
            summary=well_formed(facts["summary"]),
            last_modified=_instant(file.mtime_ns),
        )
        self._served[file.path] = ServedFile(document, file, problem)

    def _file_uri(self, path: str) -> str:
        relative = quote(os.fsencode(path))
        return f"file://{quote(os.fsencode(self.root)).rstrip('/')}/{relative}" if self._absolute_uris else relative

    def _tell(self, before: dict[str, Document]) -> None:
        now = {path: file.document for path, file in self._served.items()}
        same = before.keys() & now.keys()
        updated = [path for path in same if before[path] != now[path]]
        listed = before.keys() != now.keys() or any(
            (before[path].title, before[path].summary) != (now[path].title, now[path].summary) for path in updated
        )
        if listed or updated:
            self.on_change(FolderChange(listed, tuple(sorted(now[path].doc_ref for path in updated))))


class _ChangePacing:
    """When to say that more documents are there while the first ones are still being described: after 1 s, 2 s, 4 s…"""

    def __init__(self) -> None:
        self._seconds = 1.0
        self._last = asyncio.get_running_loop().time()

    def is_over(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._last < self._seconds:
            return False
        self._seconds, self._last = self._seconds * 2, now
        return True


def _is_young(file: FoundFile) -> bool:
    return 0 <= time.time() - file.mtime_ns / 1e9 < _YOUNG_SECONDS


def _facts_of(file: FoundFile, answer: dict[str, Any]) -> dict[str, Any] | None:
    if "facts" in answer:
        facts: dict[str, Any] | None = answer["facts"]
        return facts
    return Facts.unreadable(file.path.rpartition("/")[2], Unreadable.from_json(answer["problem"])).to_json()


def _problem_of(answer: dict[str, Any]) -> Unreadable:
    if "problem" in answer:
        return Unreadable.from_json(answer["problem"])
    return Unreadable(f"the file is being written: {answer.get('changed', '')}", lasting=False)


def _instant(mtime_ns: int) -> str | None:
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(mtime_ns // 1_000_000 / 1000, UTC).isoformat()
    return None
