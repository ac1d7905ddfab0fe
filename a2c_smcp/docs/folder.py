"""The files of one folder as documents: what is there, what is known of it, its pages, and what changes."""

import asyncio
import base64
import json
import logging
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from a2c_smcp import __version__
from a2c_smcp.docs.describing import Facts, element_to_json, page_from_json, unreadable_page
from a2c_smcp.docs.formats import file_type, is_document_name
from a2c_smcp.docs.index import Found, Index
from a2c_smcp.docs.indexing import Indexer
from a2c_smcp.docs.limits import DocumentLimits, Unreadable
from a2c_smcp.docs.page_cache import PageCache, page_cache
from a2c_smcp.docs.queries import Query
from a2c_smcp.docs.references import doc_refs
from a2c_smcp.docs.served import FolderChange, RecognisedWords, ServedFile, request_for
from a2c_smcp.docs.walking import FoundFile, IncludeRules, Walk, include_rules, walk
from a2c_smcp.docs.watching import LONGEST_SECONDS, watching
from a2c_smcp.docs.workers import Workers
from a2c_smcp.errors import DocumentNotFoundError, PageOutOfRangeError
from a2c_smcp.mcp_server.documents import Document, Page, PageSummary
from a2c_smcp.mcp_server.elements import Element
from a2c_smcp.utils.text import well_formed

__all__ = ["NOT_A_DOCUMENT", "Folder", "facts_of"]

logger = logging.getLogger(__name__)

_BATCH: Final = 32
"""Files that are described in one request."""
_TRIES: Final = 3
_RETRY_SECONDS: Final = 1.0
_YOUNG_SECONDS: Final = 2.0
"""A broken file that was saved less than this long ago may still be incomplete: it is tried again."""
_FIRST_LISTED_SECONDS: Final = 1.0
"""At the start: when the files take longer than this to be described, the rest of them is listed by name."""
_LISTED_SECONDS: Final = 10.0
"""The same later on, when files are new."""
NOT_A_DOCUMENT: Final = "its content is no document"
"""The reason for a file whose name tells nothing, and whose content is not text."""


class Folder:
    """One folder. `running()` reads it and follows its changes, which are told to `on_change`."""

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
        included: IncludeRules | None = None,
    ) -> None:
        """`included` are patterns: what they name is served, even if it would be left out by default."""
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
        self._included = included or include_rules(())
        self.problem: str | None = None
        """Why the folder cannot be looked at."""
        self._walk = Walk()
        self._refs: dict[str, str] = {}
        self._ref_of: dict[str, str] = {}
        self._served: dict[str, ServedFile] = {}
        """By path. Files that are no documents are not here."""
        self._no_documents: dict[str, tuple[int, int]] = {}
        self._told: dict[str, Document] = {}
        """The documents as they were when `on_change` was called last."""
        self._not_kept: list[tuple[FoundFile, dict[str, Any] | None]] = []
        """What could not be written into the index, and is tried again."""
        self._being_read: set[str] = set()
        self._sorted: list[Document] | None = None
        self._unsettled = False
        self.indexer = Indexer(self.root, self._index, workers, lambda: self._served.values(), self._keep_facts)
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
        """A document by its reference. A file that was found and not read yet is read now."""
        path = self._refs.get(doc_ref)
        if path is None:
            return None
        known, found = self._served.get(path), self._walk.files.get(path)
        if (known is None or known.unread) and found is not None:
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

    async def picture(self, doc_ref: str, page_index: int, element: Element | None, longest: int) -> bytes | None:
        """A PNG of a page or of one of its elements; `None` if there is none. Raises an `SMCPError` if it fails."""
        file = await self.served(doc_ref)
        if file is None:
            raise DocumentNotFoundError(doc_ref)
        if file.problem is not None:
            return None
        facts = None if element is None else element_to_json(element)
        answer = await self._workers.picture(request_for(self.root, file.found), page_index, facts, longest)
        if "picture" not in answer:
            raise _problem_of(answer).as_error()
        return None if answer["picture"] is None else base64.b64decode(answer["picture"])

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

    async def search(self, query: Query, most: int) -> Found:
        """Places in documents that are there now."""
        found = await asyncio.to_thread(self._index.search, query, most * 2)
        return replace(found, hits=tuple(hit for hit in found.hits if hit.path in self._served)[:most])

    async def recognised(self, file: FoundFile, page_index: int) -> RecognisedWords | None:
        """The words that were read from the picture of a page, if they are in the index."""
        return await asyncio.to_thread(self._index.recognised, file, page_index)

    async def add_recognised(self, file: FoundFile, page_index: int, number: int, words: RecognisedWords) -> None:
        """Put the words that were read from the picture of a page into the index, as the element with this number."""
        await asyncio.to_thread(self._index.add_recognised, file, page_index, number, words)

    def file(self, path: str) -> ServedFile:
        return self._served[path]

    async def not_indexed(self) -> list[ServedFile]:
        """Documents whose words are not in the index yet, or not all of them."""
        missing = set(await asyncio.to_thread(self._index.unfinished)) | {file.path for file, _ in self._not_kept}
        missing |= self._being_read
        return [file for path, file in self._served.items() if file.unread or path in missing]

    @property
    def being_read(self) -> int:
        """How many files are new or changed, and were not described yet."""
        return len(self._being_read)

    async def missed_pages(self) -> dict[str, int]:
        """By document: how many pages could not be read when it was indexed."""
        missed = await asyncio.to_thread(self._index.missed)
        return {self._served[path].document.doc_ref: count for path, count in missed.items() if path in self._served}

    @property
    def index_problem(self) -> str | None:
        """Why words could not be kept or looked up, if that is so now."""
        return self._index.problem

    @property
    def left_out(self) -> Counter[str]:
        """How many files and folders are not served, by reason."""
        counts = Counter(self._walk.left_out.counts)
        if self._no_documents:
            counts[NOT_A_DOCUMENT] += len(self._no_documents)
        return counts

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

    def walk(self) -> Walk:
        """What is in the folder now. Raises `OSError` if it cannot be looked at."""
        return walk(self.root, self.limits.files, self._included)

    async def _look(self) -> Walk:
        try:
            found = await asyncio.to_thread(self.walk)
        except OSError as error:
            problem = f"the folder {self.root} cannot be looked at: {error.strerror}"
            if self.problem != problem:
                logger.warning("%s", problem)
            self.problem = problem
            # Nothing is watched then, so that a folder which comes back is another one.
            return Walk()
        if self.problem is not None:
            logger.warning("the folder %s can be looked at again", self.root)
            self.problem = None
        return found

    async def _catch_up(self, found: Walk | None = None) -> None:
        """Describe what is new or changed, and tell it. Without `found`, the folder is walked first."""
        async with self._turn:
            self._unsettled = False
            for _ in range(_TRIES):
                if not await self._take(found or await self._look()):
                    break
                found = None
        self.first_pass.set()
        self.indexer.look()

    async def _take(self, found: Walk) -> bool:
        """Make the result of a walk the current state. True if files changed meanwhile: then another walk is needed."""
        old = self._walk
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
        if first or self._is_back(old):
            todo = await self._from_index(todo)
        self._being_read = {file.path for file in todo}
        try:
            changed = await self._describe(todo, background=True, first=first)
        finally:
            self._being_read = set()
        # The words of a folder that is away for a while are kept: it may be a disk that was unplugged.
        if (gone or first) and self.problem is None:
            await asyncio.to_thread(self._index.forget_others, found.files)
        self._tell()
        return changed

    def _is_back(self, old: Walk) -> bool:
        """Whether the folder could not be looked at before this walk."""
        return not old.folders

    def _is_news(self, file: FoundFile) -> bool:
        served = self._served.get(file.path)
        return self._no_documents.get(file.path) != file.version and (
            served is None or served.unread or served.found != file
        )

    async def _from_index(self, files: list[FoundFile]) -> list[FoundFile]:
        """Serve the files that the index already describes, and return the others."""
        known = await asyncio.to_thread(self._index.known, {file.path: file for file in files}, self._limits_name)
        for file in files:
            if file.path in known:
                self._keep(file, known[file.path])
        return [file for file in files if file.path not in known]

    @property
    def _limits_name(self) -> str:
        """The version and the limits as a text. If one of them changes, a file that a worker died of is tried again."""
        return f"{__version__} {json.dumps(self.limits.to_json(), sort_keys=True)}"

    async def _describe(self, files: Sequence[FoundFile], *, background: bool, first: bool = False) -> bool:
        """Have files described by the workers. True if a file changed meanwhile.

        What is known is served at once. If it takes long, the other files are listed by their names.
        """
        # The small ones first: they are many, and quick to read.
        files = sorted(files, key=lambda file: file.size)
        batches = [files[start : start + _BATCH] for start in range(0, len(files), _BATCH)]
        done = 0
        changed = False
        pacing = _ChangePacing()
        gate = asyncio.Semaphore(self._workers.background_count)

        async def one(batch: Sequence[FoundFile]) -> None:
            nonlocal done, changed
            lasting: list[tuple[FoundFile, dict[str, Any] | None]] = []
            costly: list[tuple[FoundFile, dict[str, Any] | None]] = []

            def told(number: int, answer: dict[str, Any]) -> None:
                nonlocal done, changed
                file = batch[number]
                done += 1
                if "changed" in answer:
                    changed = True
                    return
                facts = facts_of(file, answer)
                if facts is not None and facts["problem"] and _is_young(file):
                    self._unsettled = True
                    self._forget_unread(file)
                    return
                self._keep(file, facts)
                if facts is None or facts["problem"] is None or facts["problem"]["lasting"]:
                    lasting.append((file, facts))
                elif facts["problem"]["costly"]:
                    costly.append((file, facts))

            async with gate:
                requests = [request_for(self.root, file) for file in batch]
                await self._workers.describe(requests, background=background, told=told)
            await self._remember(lasting)
            if costly:
                await asyncio.to_thread(self._index.remember, costly, self._limits_name)
            self._being_read.difference_update(file.path for file in batch)
            self.on_progress(done, len(files))
            if first and done < len(files) and pacing.is_over():
                self._tell()

        readers = [asyncio.ensure_future(one(batch)) for batch in batches]
        reading = asyncio.gather(*readers)
        try:
            if background:
                await asyncio.wait({reading}, timeout=_FIRST_LISTED_SECONDS if first else _LISTED_SECONDS)
                if not reading.done():
                    self._list_unread(files)
            await reading
        finally:
            reading.cancel()
            await asyncio.gather(*readers, return_exceptions=True)  # they hold workers, and write into the index
        return changed

    def _list_unread(self, files: Sequence[FoundFile]) -> None:
        """List files by their names while they are still being read. Only names that tell what they are: another file
        may turn out to be no document.
        """
        for file in files:
            known = file.path in self._served or file.path in self._no_documents
            if not known and is_document_name(file.path) and not _is_young(file):
                self._keep(file, Facts.unread(file.path.rpartition("/")[2]).to_json(), unread=True)
        self._tell()

    def _forget_unread(self, file: FoundFile) -> None:
        if (served := self._served.get(file.path)) is not None and served.unread:
            del self._served[file.path]
            self._sorted = None

    async def _remember(self, described: list[tuple[FoundFile, dict[str, Any] | None]]) -> None:
        if described and not await asyncio.to_thread(self._index.remember, described):
            self._not_kept += described

    async def _keep_facts(self) -> bool:
        """Write into the index what could not be written before. True if everything is written now."""
        waiting, self._not_kept = self._not_kept, []
        await self._remember([(file, facts) for file, facts in waiting if self._walk.files.get(file.path) == file])
        return not self._not_kept

    def _keep(self, file: FoundFile, facts: dict[str, Any] | None, *, unread: bool = False) -> None:
        if file.path not in self._ref_of:
            return  # it has gone meanwhile
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
        self._served[file.path] = ServedFile(document, file, problem, unread)

    def _file_uri(self, path: str) -> str:
        relative = quote(os.fsencode(path))
        return f"file://{quote(os.fsencode(self.root)).rstrip('/')}/{relative}" if self._absolute_uris else relative

    def _tell(self) -> None:
        """Say what is different from what was said before."""
        before, now = self._told, {path: file.document for path, file in self._served.items()}
        self._told = now
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


def facts_of(file: FoundFile, answer: dict[str, Any]) -> dict[str, Any] | None:
    """What a worker's answer says of a file; `None` if the file is no document."""
    if "facts" in answer:
        facts: dict[str, Any] | None = answer["facts"]
        return facts
    return Facts.unreadable(file.path.rpartition("/")[2], _problem_of(answer)).to_json()


def _problem_of(answer: dict[str, Any]) -> Unreadable:
    if "problem" in answer:
        return Unreadable.from_json(answer["problem"])
    return Unreadable(f"the file is being written: {answer.get('changed', '')}", lasting=False)


def _instant(mtime_ns: int) -> str | None:
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(mtime_ns // 1_000_000 / 1000, UTC).isoformat()
    return None
