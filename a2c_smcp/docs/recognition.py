"""The words of pages that are pictures: read in the background by a process of its own, when such a page was asked for.

A page without text is answered at once and says that it is being read. When its words are known, its document counts as
updated. They are kept as long as there is room for them.
"""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from a2c_smcp.docs.ocr_child import engine_name
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Annotation, Image, Text
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.kept_child import KeptChild
from a2c_smcp.utils.serving_child import ChildBounds

__all__ = ["OCR_PICTURE", "Recognition", "is_picture_only", "with_words"]

logger = logging.getLogger(__name__)

OCR_PICTURE: Final = 2000
"""The longest side, in pixels, of the picture of a page whose words are read."""
_CHILD: Final = ("-m", "a2c_smcp.docs.ocr_child")
_BOUNDS: Final = ChildBounds(memory_bytes=4 * 2**30, answer_seconds=120.0, answer_bytes=8 * 2**20)
_MOST_WAITING: Final = 100
_MOST_KEPT: Final = 8 * 2**20
"""Characters of pages that were read."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A page that waits to be read."""

    key: Hashable
    picture: Callable[[], Awaitable[bytes | None]]
    done: Callable[[], None]


class Recognition:
    """Reads one page at a time. Ask it inside `running()`."""

    def __init__(self, engine: str, program: Sequence[str] = _CHILD) -> None:
        self.engine = engine
        self._program = program
        self._lines: BoundedDict[Hashable, tuple[str, ...]] = BoundedDict(
            heaviest=_MOST_KEPT, weigh=lambda lines: 200 + sum(map(len, lines))
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

    def page(
        self, key: Hashable, page: Page, picture: Callable[[], Awaitable[bytes | None]], done: Callable[[], None]
    ) -> Page:
        """A page that is only a picture, with its words if they are known. If not, they are read in the background, and
        `done` is called when they are known.
        """
        if (lines := self._lines.use(key)) is not None:
            return with_words(page, lines, self.engine)
        if key not in self._waiting and len(self._waiting) < _MOST_WAITING:
            self._waiting[key] = _Task(key, picture, done)
            self._work.set()
        note = f"This page is a picture. Its words are being read by {self.engine} (OCR): read the page again later."
        return replace(page, elements=[*page.elements, Annotation(note)])

    async def _run(self, child: KeptChild) -> None:
        while True:
            await self._work.wait()
            while self._waiting:
                task = next(iter(self._waiting.values()))
                self._lines.put(task.key, await self._read(child, task))
                del self._waiting[task.key]
                task.done()
            self._work.clear()

    async def _read(self, child: KeptChild, task: _Task) -> tuple[str, ...]:
        """The lines of a page. One that cannot be read has none, and is not tried again."""
        try:
            if (picture := await task.picture()) is None:
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
