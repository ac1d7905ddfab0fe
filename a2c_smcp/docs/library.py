"""Several folders as one source of documents for the kit, with one set of workers."""

import asyncio
import heapq
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from a2c_smcp.docs.folder import Folder
from a2c_smcp.docs.limits import DocumentLimits
from a2c_smcp.docs.page_cache import page_cache
from a2c_smcp.docs.queries import parse_query
from a2c_smcp.docs.recognition import OCR_PICTURE, Recognition, ScannedPage, is_picture_only, number_of_words
from a2c_smcp.docs.served import FolderChange, ServedFile
from a2c_smcp.docs.slide_pictures import SlidePictures, has_slides
from a2c_smcp.docs.walking import include_rules
from a2c_smcp.docs.workers import Workers
from a2c_smcp.errors import DocumentNotFoundError
from a2c_smcp.mcp_server.documents import Announcer, Document, Page, PageSummary
from a2c_smcp.mcp_server.elements import Element

__all__ = ["FoundPlace", "Library", "SearchAnswer"]

_FIRST_ANSWER_SECONDS: Final = 3.0
"""How long the first question waits for all documents to be described."""


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """A place in a document that a search found."""

    document: Document
    page_index: int
    element_id: str | None
    """`None` if the words are in the document's name, title or summary."""
    snippet: str
    whole: bool
    """Whether the page has all words, and not only some of them."""
    engine: str | None = None
    """What read the words from a picture (OCR); `None` if they are text in the file."""


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What a search found, and what it could not do."""

    places: tuple[FoundPlace, ...]
    """The best first."""
    corrected: Mapping[str, Sequence[str]]
    """Words that no document has, and those that were searched in their place."""
    not_indexed: tuple[Document, ...]
    """Documents whose words are not in the index yet, or not all of them."""
    complete: bool
    """Whether everything that can be read was searched."""
    notes: tuple[str, ...]
    """The same in sentences, and whatever else the reader of this answer should know."""


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
        recognition: Recognition | None = None,
        include: Sequence[str] = (),
        office: str | None = None,
    ) -> None:
        """`include` are patterns as in a `.gitignore`: what they name is served even if it would be left out.
        `office` is the command of LibreOffice, for pictures of slides.

        Raises `ValueError` for a path that is not a folder, for folders inside each other, and for a wrong pattern.
        """
        limits = limits or DocumentLimits()
        included = include_rules(include)
        self.workers = Workers(limits, workers)
        self._recognition = recognition
        self._slides = None if office is None else SlidePictures(office, self.workers, cache)
        pages = page_cache(limits.cached_bytes)
        real = [os.path.realpath(root) for root in roots]
        _check(roots, real)
        self.folders = [
            Folder(
                root,
                self.workers,
                limits,
                label=label,
                cache=cache,
                absolute_uris=absolute_uris,
                pages=pages,
                included=included,
            )
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
            if self._recognition is not None:
                await stack.enter_async_context(self._recognition.running())
            if self._slides is not None:
                await stack.enter_async_context(self._slides.running())
            for folder in self.folders:
                await stack.enter_async_context(folder.running())
            yield

    async def search(self, query: str, most: int) -> SearchAnswer:
        """The places that have the words of a query. Raises `QueryError` for a filter that cannot be understood."""
        asked = parse_query(query)
        found = [await folder.search(asked, most) for folder in self.folders]
        missing = [file.document for folder in self.folders for file in await folder.not_indexed()]
        hits = [(hit, folder) for folder, each in zip(self.folders, found, strict=True) for hit in each.hits]
        best = heapq.nsmallest(most, hits, key=lambda pair: (not pair[0].whole, pair[0].rank))
        places = [
            FoundPlace(
                folder.file(hit.path).document,
                hit.page,
                None if hit.number is None else f"p{hit.page}-{hit.number}",
                hit.snippet,
                hit.whole,
                hit.engine,
            )
            for hit, folder in best
        ]
        corrected = {word: near for each in found for word, near in (each.corrected or {}).items() if near}
        problems = [*self._problems()]
        if any(each.cut for each in found):
            problems.append("There were too many pages with the words of the phrase: not all were looked at.")
        if being_read := sum(folder.being_read for folder in self.folders):
            problems.append(f"{being_read} files are new or were saved, and are being read. Search again later.")
        notes = [*_notes(places, corrected, missing), *problems, *await self._unsearched(bool(places))]
        complete = not missing and not problems
        return SearchAnswer(tuple(places), corrected, tuple(missing), complete, tuple(notes))

    def _problems(self) -> list[str]:
        """What keeps a search from finding everything, in sentences."""
        found = [problem for folder in self.folders for problem in (folder.problem, folder.index_problem) if problem]
        return [f"{problem[0].upper()}{problem[1:]}." for problem in found]

    async def _unsearched(self, found: bool) -> list[str]:
        """What is not searched because it cannot be read, or is not served."""
        notes = []
        for folder in self.folders:
            for doc_ref, count in list((await folder.missed_pages()).items())[:_MOST_NAMED]:
                notes.append(f"{count} pages of {doc_ref} could not be read. Their words are not searched.")
        if unreadable := sum(file.problem is not None for folder in self.folders for file in folder.files):
            notes.append(f"{unreadable} documents cannot be read. Only their names are searched.")
        if not found and (note := self.catalogue_note()):
            notes.append(note)
        return notes

    def catalogue_note(self) -> str:
        """How many files of the folders are not served, and why; empty if all are."""
        counts: Counter[str] = Counter()
        for folder in self.folders:
            counts += folder.left_out
        if not counts:
            return ""
        reasons = ", ".join(f"{reason}: {count}" for reason, count in counts.most_common())
        return f"Not served: {counts.total()} files or folders ({reasons}). `a2c docs check` lists them."

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
        if (found := await self._served(doc_ref)) is None:
            raise DocumentNotFoundError(doc_ref)
        folder, file = found
        page = await folder.page(doc_ref, page_index)
        if self._recognition is None or not is_picture_only(page):
            return page
        place = ScannedPage(
            lambda: _scan(folder, doc_ref, page_index, page),
            lambda: self._changed(FolderChange(False, (doc_ref,))),
            lambda: folder.recognised(file.found, page_index),
            lambda words: folder.add_recognised(file.found, page_index, number_of_words(page), words),
        )
        return await self._recognition.page((folder.root, file.found, page_index), page, place)

    async def page_summaries(self, doc_ref: str, offset: int, limit: int) -> Sequence[PageSummary]:
        return await (await self._folder(doc_ref)).page_summaries(doc_ref, offset, limit)

    async def picture(self, doc_ref: str, page_index: int, element: Element | None, longest: int) -> bytes | None:
        if (found := await self._served(doc_ref)) is None:
            raise DocumentNotFoundError(doc_ref)
        folder, file = found
        if self._slides is None or element is not None or file.problem is not None or not has_slides(file.found.path):
            return await folder.picture(doc_ref, page_index, element, longest)
        return await self._slides.picture(
            folder.root,
            file.found,
            file.document.page_count,
            page_index,
            longest,
            lambda: self._changed(FolderChange(False, (doc_ref,))),
        )

    async def element(self, doc_ref: str, element_id: str) -> tuple[int, Element] | None:
        """Elements are known by their place, which the kit finds by itself."""
        return None

    async def _first_documents(self) -> None:
        """Wait a moment, once: then the first catalogue of a small folder is complete."""
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


_MOST_NAMED: Final = 10
"""How many documents a note names."""


def _notes(
    places: Sequence[FoundPlace], corrected: Mapping[str, Sequence[str]], missing: Sequence[Document]
) -> list[str]:
    notes = []
    whole = sum(place.whole for place in places)
    if not whole and places:
        notes.append("No page has all words. These have some of them.")
    elif whole < len(places):
        notes.append(f"Only the first {whole} have all words. The others have some of them.")
    for word, near in corrected.items():
        notes.append(f"No document has {word!r}. Searched in its place: {', '.join(near)}.")
    if missing:
        names = ", ".join(document.doc_ref for document in missing[:_MOST_NAMED])
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        notes.append(f"{len(missing)} documents are not in the index yet: {names}{more}. Search again later.")
    return notes


async def _scan(folder: Folder, doc_ref: str, page_index: int, page: Page) -> bytes | None:
    """What is read of a page that is nothing but images: its picture, or its one image where pages have no pictures."""
    picture = await folder.picture(doc_ref, page_index, None, OCR_PICTURE)
    if picture is None and len(page.elements) == 1:
        picture = await folder.picture(doc_ref, page_index, page.elements[0], OCR_PICTURE)
    return picture


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
