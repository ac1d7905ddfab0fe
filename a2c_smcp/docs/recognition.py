"""The words of pages that are pictures: read in the background by a process of its own, when such a page was asked for.

A page without text is answered at once and says that it is being read. When its words are known, its document counts as
updated. They are kept in memory as long as there is room for them, and where the place of the page keeps them.
"""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from a2c_smcp.docs.ocr_child import engine_name
from a2c_smcp.docs.served import RecognisedWords
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Annotation, Image, Text
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.kept_child import KeptChild
from a2c_smcp.utils.serving_child import ChildBounds

__all__ = ["OCR_PICTURE", "Recognition", "ScannedPage", "is_picture_only", "number_of_words", "with_words"]

logger = logging.getLogger(__name__)

OCR_PICTURE: Final = 2000
"""The longest side, in pixels, of the picture of a page whose words are read."""
_CHILD: Final = ("-m", "a2c_smcp.docs.ocr_child")
_BOUNDS: Final = ChildBounds(memory_bytes=4 * 2**30, answer_seconds=120.0, answer_bytes=8 * 2**20)
_MOST_WAITING: Final = 100
_MOST_KEPT: Final = 8 * 2**20
"""Characters of pages that were read."""


async def _nothing_kept() -> RecognisedWords | None:
    return None


async def _not_kept(words: RecognisedWords) -> None:
    pass


@dataclass(frozen=True, slots=True)
class ScannedPage:
    """Where the picture of a page comes from, and where its words go."""

    picture: Callable[[], Awaitable[bytes | None]]
    done: Callable[[], None]
    """Called when the words are known."""
    kept: Callable[[], Awaitable[RecognisedWords | None]] = _nothing_kept
    """The words, if they were read and kept before."""
    keep: Callable[[RecognisedWords], Awaitable[None]] = _not_kept


@dataclass(frozen=True, slots=True)
class _Task:
    """A page that waits to be read."""

    key: Hashable
    place: "ScannedPage"


class Recognition:
    """Reads one page at a time. Ask it inside `running()`."""

    def __init__(self, engine: str, program: Sequence[str] = _CHILD) -> None:
        self.engine = engine
        self._program = program
        self._words: BoundedDict[Hashable, RecognisedWords] = BoundedDict(
            heaviest=_MOST_KEPT, weigh=lambda words: 200 + sum(map(len, words.lines))
        )
        self._waiting: dict[Hashable, _Task] = {}
        self._work = asyncio.Event()

    @classmethod
    def if_installed(cls) -> "Recognition | None":
        """What can read pictures here; `None` if neither rapidocr nor tesseract is installed."""
        engine = engine_name()
        return None if engine is None else cls(engine)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        child = KeptChild(self._program, _BOUNDS, env={"OMP_NUM_THREADS": "1"})
        task = asyncio.create_task(self._run(child))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await child.aclose()

    async def page(self, key: Hashable, page: Page, place: ScannedPage) -> Page:
        """A page that is only a picture, with its words if they are known. If not, they are read in the background."""
        words = self._words.use(key) or await place.kept()
        if words is not None:
            return with_words(page, words.lines, words.engine)
        if key not in self._waiting and len(self._waiting) < _MOST_WAITING:
            self._waiting[key] = _Task(key, place)
            self._work.set()
        note = f"This page is a picture. Its words are being read by {self.engine} (OCR): read the page again later."
        return replace(page, elements=[*page.elements, Annotation(note)])

    async def _run(self, child: KeptChild) -> None:
        while True:
            await self._work.wait()
            while self._waiting:
                task = next(iter(self._waiting.values()))
                words = RecognisedWords(self.engine, await self._read(child, task.place))
                self._words.put(task.key, words)
                if words.lines:
                    await task.place.keep(words)
                del self._waiting[task.key]
                task.place.done()
            self._work.clear()

    async def _read(self, child: KeptChild, place: ScannedPage) -> tuple[str, ...]:
        """The lines of a page. One that cannot be read has none, and is not tried again."""
        try:
            if (picture := await place.picture()) is None:
                return ()
            async with child.exchange({"picture": base64.b64encode(picture).decode("ascii")}) as next_answer:
                answer: dict[str, Any] = await next_answer()
            if "lines" in answer:
                return tuple(text for text, *_ in answer["lines"])
            logger.warning("the words of a picture cannot be read: %s", answer.get("problem"))
        except Exception as error:
            # Whatever happens to one picture, the next one is read.
            logger.warning("the words of a picture cannot be read: %s", error or type(error).__name__)
        return ()


def is_picture_only(page: Page) -> bool:
    """Whether a page has images and nothing else."""
    return bool(page.elements) and all(isinstance(element, Image) for element in page.elements)


def with_words(page: Page, lines: Sequence[str], engine: str) -> Page:
    """The page with the words that were read from its picture, marked as such."""
    if not lines:
        return replace(page, elements=[*page.elements, Annotation(f"{engine} (OCR) found no words on this page.")])
    note = f"The words of this page were read from its picture by {engine} (OCR). They may have mistakes."
    return replace(page, elements=[*page.elements, Annotation(note), Text("\n".join(lines), metadata={"ocr": engine})])


def number_of_words(page: Page) -> int:
    """The number of the element with the words, once `with_words` has put it behind the page's own elements."""
    return len(page.elements) + 1
