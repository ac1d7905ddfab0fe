"""One tab of a browser: its window, and what can be done in it."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from a2c_smcp.errors import BadRequestError
from a2c_smcp.mcp_server.windows import Window, Windows
from a2c_smcp.utils.text import cut, on_one_line
from a2c_smcp.windows.browser.dialogs import ANSWER_WITHIN, DialogPace
from a2c_smcp.windows.browser.outline import Outline, References, WalkerLimits, file_name
from a2c_smcp.windows.live_window import UPDATES_APART
from a2c_smcp.windows.masking import SecretMask
from a2c_smcp.windows.recent import MarkedLines
from a2c_smcp.windows.window_texts import window_text

if TYPE_CHECKING:
    from playwright.async_api import Dialog, Download, ElementHandle, Frame, Page

__all__ = ["WALKER", "BrowserTab"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Runs in a page, and answers with its outline.
WALKER: Final = files("a2c_smcp.windows.browser").joinpath("walker.js").read_text("utf-8")
#: Asks for the version of the document that the walker has seen last.
_VERSION: Final = 'document[Symbol.for("a2c.windows")]?.version ?? 0'
#: Seconds for one answer of a page.
_PAGE_SECONDS: Final = 5.0
#: A tab that has not changed for ten seconds is looked at less often.
_QUIET_AFTER: Final = 10.0
_QUIET_APART: Final = 1.0
#: Seconds after which a page is looked at although it told of no change: scripts fill in fields without a word.
_LOOK_ANYWAY: Final = 5.0
_MOST_FRAMES: Final = 20
_WAITS: Final = "the page waits for the answer to a dialog: use browser_dialog first"


class BrowserTab:
    """A tab. `run` keeps its window up to date until it is cancelled or the tab closes."""

    def __init__(
        self, number: int, page: "Page", windows: Windows, mask: SecretMask, budget: int, *, is_of_page: bool
    ) -> None:
        self.number = number
        self.page = page
        self.is_of_page = is_of_page
        """Whether a page has opened it, or the person, and not the agent."""
        self._windows = windows
        self._path = ("tabs", str(number))
        self._mask = mask
        self._budget = budget
        self._outline: Outline | None = None
        self._marks = MarkedLines()
        self._references: References[Frame] = References()
        #: References are counted by one look at a time.
        self._looking = asyncio.Lock()
        self._versions: tuple[Any, ...] = ()
        self._problem = ""
        self.notes: list[str] = []
        """The last things that happened: downloads, dialogs that were closed."""
        self.dialog: Dialog | None = None
        self._dialog_pace = DialogPace()
        self._is_current = False
        self._is_closed = False
        page.on("dialog", self._on_dialog)

    # --- keeping the window up to date

    async def run(self) -> None:
        """Look at the page twice a second at most, and show it when it has changed."""
        changed = walked = time.monotonic()
        while not self.page.is_closed():
            again = time.monotonic() - walked > _LOOK_ANYWAY
            walked = time.monotonic() if again else walked
            try:
                if await self.look(again=again):
                    changed = time.monotonic()
            except Exception:
                # A page can answer anything. Whatever we did not expect must not end the other windows.
                if not self._problem:
                    logger.exception("tab %s could not be shown", self.number)
                self._problem = "its answer could not be read"
                self._show()
            quiet = time.monotonic() - changed > _QUIET_AFTER
            await asyncio.sleep(_QUIET_APART if quiet else UPDATES_APART)

    async def look(self, *, again: bool = False) -> bool:
        """Show what the page shows now. Returns whether that is new. `again`: look although nothing has changed."""
        if self.dialog is not None:
            return self._show()
        async with self._looking:
            return await self._look(again)

    async def _look(self, again: bool) -> bool:
        try:
            versions = await self._answer(self._all_versions())
            if versions == self._versions and not again:
                return False
            outline = Outline.of(await self._answer(self._walk()))
            self._versions = await self._answer(self._all_versions())
            self._problem = ""
        except _PageError as error:
            if self.page.is_closed():
                return False
            self._problem = str(error)
            return self._show()
        self._outline = outline
        return self._show()

    def set_current(self, is_current: bool) -> None:
        """Whether it is the tab that tools use when none is named."""
        if is_current != self._is_current:
            self._is_current = is_current
            self._show()

    def close_window(self) -> None:
        """Take the window away for good."""
        self._is_closed = True
        if self._path in self._windows:
            del self._windows[self._path]

    def _show(self) -> bool:
        if self._is_closed:
            return False
        outline = self._outline or Outline("", ())
        lines = self._mask("\n".join(outline.lines)).split("\n")
        marks = self._marks.update(lines, time.monotonic())
        priority = 85 if self.dialog is not None else 60 if self._is_current else 30
        window = Window(self._text, priority, title=cut(f"tab {self.number}: {self._mask(outline.title)}", 120))
        before = self._windows.get(self._path)
        is_new = (
            marks is not self._marks or before is None or before.priority != priority or before.title != window.title
        )
        self._marks = marks
        if is_new or self.dialog is not None:
            self._windows[self._path] = window
        return is_new

    def _text(self) -> str:
        outline = self._outline or Outline("", ())
        # The browser's own word for the address: the page could tell another.
        address = cut(self._mask(cut(self.page.url, 3000)), 300)
        head = [f"tab {self.number}: {self._mask(outline.title) or 'without a title'}", address]
        if self._is_current:
            head.append("This is the current tab.")
        if self.dialog is not None:
            asked = cut(self._mask(cut(self.dialog.message, 5000)), 500)
            head.append(
                f"The page waits: it shows a dialog ({self.dialog.type}): {asked!r}. Answer with browser_dialog."
            )
        if outline.scrolled:
            head.append(outline.scrolled)
        if self._problem:
            head.append(f"The page does not answer: {self._problem}")
        head += self.notes[-3:]
        return window_text(head, self._marks.marked(time.monotonic()), self._budget, keep="start")

    # --- asking the page

    async def _all_versions(self) -> tuple[Any, ...]:
        return tuple([(frame.url, await frame.evaluate(_VERSION)) for frame in self._frames()])

    def _frames(self) -> "list[Frame]":
        return [frame for frame in self.page.frames if not frame.is_detached()][: _MOST_FRAMES + 1]

    async def _walk(self) -> list[tuple[str, Any]]:
        """What each frame answers, the page itself first. A long page leaves a quarter of the room to its frames."""
        frames = self._frames()
        room = self._budget
        answers = []
        for number, frame in enumerate(frames):
            rest = len(frames) - number
            share = room if rest == 1 else room * 3 // 4 if number == 0 else room // rest
            limits = WalkerLimits(characters=max(300, share))
            answer = await frame.evaluate(WALKER, limits.options(self._references.begin(frame)))
            self._references.end(answer.get("next") if isinstance(answer, dict) else None)
            answers.append((cut(frame.url, 200), answer))
            room -= min(share, len(str(answer.get("text"))) if isinstance(answer, dict) else 0)
        return answers

    async def markdown(self, most: int) -> str:
        """The whole page as Markdown, without references."""
        limits = WalkerLimits(most, nodes=1_000_000, milliseconds=2000)
        if self.dialog is not None:
            raise BadRequestError(_WAITS)
        answer = await self._answer(self.page.evaluate(WALKER, limits.options(markdown=True)), BadRequestError)
        return self._mask("\n\n".join(Outline.of([("", answer)]).lines))

    async def element(self, reference: int) -> "ElementHandle":
        """The element behind a reference. Raises `BadRequestError` at once if it is gone."""
        if self.dialog is not None:
            raise BadRequestError(_WAITS)
        gone = BadRequestError(f"e{reference} is not on the page any more: look at the tab's window again")
        frame = self._references.place(reference)
        if frame is None or frame.is_detached():
            raise gone
        found = await self._answer(frame.evaluate_handle(WALKER, {"find": reference}), BadRequestError)
        if (element := found.as_element()) is None:
            raise gone
        return element

    async def act(self, action: Callable[[], Awaitable[T]]) -> T | None:
        """Do something in the page. It is refused while a dialog is open. A dialog that opens meanwhile ends the wait:
        the page stands still until it is answered.
        """
        if self.dialog is not None:
            raise BadRequestError(_WAITS)
        doing = asyncio.ensure_future(action())
        try:
            async with asyncio.timeout(30):
                while not doing.done() and self.dialog is None:
                    await asyncio.wait({doing}, timeout=0.05)
            if not doing.done():
                return None
            return doing.result()
        except TimeoutError:
            raise BadRequestError("the page did not do it within 30 s") from None
        except _playwright_error() as error:
            raise BadRequestError(f"the page could not do it: {_first_line(error)}") from None
        finally:
            if not doing.done():
                doing.cancel()

    async def close(self) -> None:
        """Close the page, also one that shows a dialog. Raises `BadRequestError` if it stays open."""
        try:
            async with asyncio.timeout(30):
                await self.page.close()
        except TimeoutError:
            raise BadRequestError("the page did not close within 30 s") from None
        except _playwright_error() as error:
            raise BadRequestError(f"the page did not close: {_first_line(error)}") from None

    async def _answer(self, question: Awaitable[T], kind: type[Exception] | None = None) -> T:
        """What the page answers, in time."""
        problem: type[Exception] = kind or _PageError
        try:
            async with asyncio.timeout(_PAGE_SECONDS):
                return await question
        except TimeoutError:
            raise problem(f"the page did not answer within {_PAGE_SECONDS:g} s") from None
        except _playwright_error() as error:
            raise problem(_first_line(error)) from None

    # --- dialogs and downloads

    def _on_dialog(self, dialog: "Dialog") -> None:
        if self.dialog is None and self._dialog_pace.shows(time.monotonic()):
            self.dialog = dialog
            self._show()
            asyncio.get_running_loop().call_later(ANSWER_WITHIN, self._give_up, dialog)
        else:
            self.note("The page opens dialogs in a loop: they are closed.")
            _in_background(dialog.dismiss())

    def _give_up(self, dialog: "Dialog") -> None:
        if self.dialog is dialog:
            self.dialog = None
            self.note(f"A dialog was closed after {ANSWER_WITHIN:g} s without an answer.")
            _in_background(dialog.dismiss())

    async def answer_dialog(self, accept: bool, text: str) -> str:
        """Answer the dialog that is open."""
        if (dialog := self.dialog) is None:
            raise BadRequestError("no dialog is open in this tab")
        self.dialog = None
        try:
            await (dialog.accept(text) if accept and text else dialog.accept() if accept else dialog.dismiss())
        except _playwright_error() as error:
            raise BadRequestError(f"the dialog is gone: {_first_line(error)}") from None
        return f"{'Accepted' if accept else 'Dismissed'} the dialog."

    async def save(self, download: "Download", folder: Path | None) -> None:
        """Keep a download in the folder, or refuse it."""
        name = file_name(download.suggested_filename)
        try:
            if folder is None:
                await download.cancel()
                self.note(f"The download {name!r} was refused: no folder was named with --downloads.")
                return
            target = _taken_path(folder, name)
            try:
                await download.save_as(target)
            except BaseException:
                target.unlink(missing_ok=True)
                raise
            self.note(f"Downloaded {target.name!r}.")
        except Exception as error:
            # The page chose the name, and the disk may be full: a download must not end the other windows.
            logger.warning("the download %r failed: %s", name, on_one_line(error))
            self.note(f"The download {name!r} failed: {_first_line(error)}")

    def note(self, words: str) -> None:
        """Show a sentence in the head of the window."""
        if self.notes[-1:] != [words]:
            self.notes = [*self.notes[-2:], words]
            if self._path in self._windows:
                self._windows[self._path] = self._windows[self._path]


class _PageError(Exception):
    """The page did not answer, or is gone."""


def _playwright_error() -> type[Exception]:
    from playwright.async_api import Error

    return Error


def _first_line(error: Exception) -> str:
    """Playwright appends a log of everything it tried."""
    return on_one_line(str(error).split("\n")[0])


_BACKGROUND: set[asyncio.Future[Any]] = set()


def _in_background(doing: Awaitable[Any]) -> None:
    """Do it without waiting. A page that is gone has no dialog any more."""
    task = asyncio.ensure_future(doing)
    _BACKGROUND.add(task)
    task.add_done_callback(_forget)


def _forget(task: "asyncio.Future[Any]") -> None:
    _BACKGROUND.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.debug("a dialog could not be closed: %s", on_one_line(error))


def _taken_path(folder: Path, name: str) -> Path:
    """An empty file of that name, or of one like it: another download may come at the same time."""
    for number in range(1, 10_000):
        path = folder / (name if number == 1 else f"{Path(name).stem}-{number}{Path(name).suffix}")
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{folder} has too many files called {name!r}")
