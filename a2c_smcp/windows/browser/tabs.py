"""All tabs of a browser as windows, and the tools that open, click, fill in and read."""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Final

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from pydantic import Field

from a2c_smcp.errors import BadRequestError
from a2c_smcp.mcp_server.server import ContextServer
from a2c_smcp.mcp_server.windows import Window
from a2c_smcp.utils.text import on_one_line
from a2c_smcp.windows.annotations import BROWSER_TOOLS
from a2c_smcp.windows.browser.chromium import BrowserOptions, browser_context, why_not
from a2c_smcp.windows.browser.outline import checked_address, parse_reference
from a2c_smcp.windows.browser.tab import BrowserTab
from a2c_smcp.windows.masking import SecretMask

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Download, Page

__all__ = ["MOST_TABS", "BrowserTabs"]

logger = logging.getLogger(__name__)

#: Tabs of the agent. What pages open has a share of its own: no page can use up the agent's.
MOST_TABS: Final = 20
_MOST_OF_PAGES: Final = MOST_TABS - 1
#: Characters that `browser_read` returns at most. Looking for secrets in more would hold up the other windows.
_MOST_READ: Final = 250_000
#: Seconds between two attempts to reach a browser of the person's.
_TRY_AGAIN: Final = 5.0
_PROBLEM_WINDOW: Final = ("tabs", "problem")
#: Seconds that an action has for its first effects before the tab is looked at.
_SETTLE: Final = 0.3

TabArgument = Annotated[
    int | None, Field(description="The number of the tab, as its window shows it; the current tab without it.")
]
RefArgument = Annotated[str, Field(description="What to act on, as the tab's window shows it, such as e12.")]


async def _close_page(page: "Page") -> None:
    from playwright.async_api import Error

    with suppress(Error):
        await page.close()


class BrowserTabs:
    """The tabs of one browser. The browser starts with the first `browser_open`, or when the server connects to one."""

    def __init__(
        self,
        server: ContextServer,
        options: BrowserOptions,
        environment: Mapping[str, str],
        mask: SecretMask,
        budget: int,
    ) -> None:
        self._server = server
        self._options = options
        self._environment = environment
        self._mask = mask
        self._budget = budget
        self._tabs: dict[int, BrowserTab] = {}
        self._next = 1
        self._current: int | None = None
        #: Held while the agent opens a tab: until then nobody knows that the new page is not one that a page opened.
        self._opening = asyncio.Lock()
        self._tasks: TaskGroup | None = None
        #: The browser, once it runs; `None` if nobody has started it.
        self._ready: asyncio.Future[BrowserContext] | None = None
        for name, annotations in BROWSER_TOOLS.items():
            server.tool(annotations=annotations)(getattr(self, name))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch tabs while this is open. A browser that was started ends with it."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                if not self._options.is_own:
                    tasks.start_soon(self._stay_connected)
                yield
            finally:
                tasks.cancel_scope.cancel()

    # --- tools

    async def browser_open(
        self,
        url: str,
        new_tab: Annotated[bool, Field(description="Open it in a new tab, not in the current one.")] = True,
    ) -> str:
        """Open a page. It stays in a window, as an outline with references to what can be clicked or filled in."""
        address = checked_address(url)
        context = await self._browser()
        if new_tab or not self._tabs:
            async with self._opening:
                if sum(not tab.is_of_page for tab in self._tabs.values()) >= MOST_TABS:
                    raise BadRequestError(f"{MOST_TABS} tabs are open: close one with browser_close")
                tab = self._add(await context.new_page(), is_of_page=False)
            self._choose(tab)
        else:
            tab = self._tab(None)
        await tab.act(lambda: tab.page.goto(address, wait_until="domcontentloaded", timeout=30_000))
        return await self._done(tab, f"Opened {address} in tab {tab.number}.")

    async def browser_click(self, ref: RefArgument, tab: TabArgument = None) -> str:
        """Click a link, a button, a checkbox or anything else with a reference."""
        chosen = self._tab(tab)
        element = await chosen.element(parse_reference(ref))
        await chosen.act(lambda: element.click(timeout=5000))
        return await self._done(chosen, f"Clicked {ref}.")

    async def browser_fill(
        self,
        ref: RefArgument,
        text: Annotated[str, Field(description="What the field holds afterwards; for a select, the option's text.")],
        submit: Annotated[bool, Field(description="Press Enter afterwards.")] = False,
        tab: TabArgument = None,
    ) -> str:
        """Fill in a field, a text area, an editable text, or choose an option of a select."""
        chosen = self._tab(tab)
        element = await chosen.element(parse_reference(ref))
        if await chosen.act(lambda: element.evaluate("element => element.tagName")) == "SELECT":
            await chosen.act(lambda: element.select_option(label=text, timeout=5000))
        else:
            await chosen.act(lambda: element.fill(text, timeout=5000))
        if submit:
            await chosen.act(lambda: element.press("Enter", timeout=5000))
        return await self._done(chosen, f"Filled in {ref}.")

    async def browser_press(
        self,
        key: Annotated[str, Field(description="Such as Enter, Escape, ArrowDown, Control+a, PageDown.")],
        tab: TabArgument = None,
    ) -> str:
        """Press a key where the focus is."""
        chosen = self._tab(tab)
        await chosen.act(lambda: chosen.page.keyboard.press(key))
        return await self._done(chosen, f"Pressed {key}.")

    async def browser_back(self, tab: TabArgument = None) -> str:
        """Go back to the page before."""
        chosen = self._tab(tab)
        before = chosen.page.url
        await chosen.act(lambda: chosen.page.go_back(wait_until="domcontentloaded", timeout=30_000))
        went = chosen.dialog is not None or chosen.page.url != before
        return await self._done(chosen, "Went back." if went else "Nothing changed: there is no page before this one.")

    async def browser_dialog(self, accept: bool, text: str = "", tab: TabArgument = None) -> str:
        """Answer the dialog of a page: an alert, a question, a prompt for a text."""
        chosen = self._tab(tab)
        return await self._done(chosen, await chosen.answer_dialog(accept, text))

    async def browser_close(self, tab: TabArgument = None) -> str:
        """Close a tab."""
        chosen = self._tab(tab)
        await chosen.close()
        self._remove(chosen)
        return f"Closed tab {chosen.number}."

    async def browser_screenshot(self, tab: TabArgument = None) -> types.CallToolResult:
        """A picture of what the tab shows now."""
        chosen = self._tab(tab)
        picture = await chosen.act(lambda: chosen.page.screenshot(type="jpeg", quality=70, timeout=10_000))
        if picture is None:
            raise BadRequestError("the page has opened a dialog: answer it with browser_dialog")
        data = base64.b64encode(picture).decode()
        return types.CallToolResult(content=[types.ImageContent(data=data, mime_type="image/jpeg")])

    async def browser_read(
        self,
        tab: TabArgument = None,
        most: Annotated[int, Field(description="Characters at most.", ge=100, le=_MOST_READ)] = 100_000,
    ) -> str:
        """Read the whole page as Markdown. The tab's window shows as much of it as fits."""
        return await self._tab(tab).markdown(most)

    # --- tabs

    async def _browser(self) -> "BrowserContext":
        """The browser, which is started if it does not run. A cancelled call does not stop its start."""
        if self._ready is None:
            if not self._options.is_own:
                raise BadRequestError(f"the browser cannot be reached; it is tried every {_TRY_AGAIN:g} s")
            assert self._tasks is not None, "tools are called while the server runs"
            self._ready = asyncio.get_running_loop().create_future()
            self._tasks.start_soon(self._serve, self._ready)
        return await asyncio.shield(self._ready)

    async def _stay_connected(self) -> None:
        """Show the tabs of a browser of the person's whenever it runs, and say so when it does not."""
        while True:
            self._ready = asyncio.get_running_loop().create_future()
            await self._serve(self._ready)
            await asyncio.sleep(_TRY_AGAIN)

    async def _serve(self, ready: "asyncio.Future[BrowserContext]") -> None:
        """Own the browser until it ends: the task that opens it also closes it."""
        problem = "the browser has ended"
        try:
            async with browser_context(self._options, self._environment) as context:
                ended = asyncio.Event()
                context.on("close", lambda *_: ended.set())
                context.on("page", self._on_page)
                self._server.windows.pop(_PROBLEM_WINDOW, None)
                for page in context.pages:
                    self._add(page)
                ready.set_result(context)
                await ended.wait()
                logger.warning("the browser has ended")
        except Exception as error:
            # Playwright raises a plain Exception when its own process ends. A browser must not end the other windows.
            problem = f"the browser did not start: {self._mask(on_one_line(why_not(str(error))))}"
            logger.warning("%s", problem)
        finally:
            self._ready = None
            for tab in list(self._tabs.values()):
                self._remove(tab)
            if not ready.done():
                ready.set_exception(BadRequestError(problem))
                # Nobody may wait for it.
                ready.exception()
            if not self._options.is_own:
                text = f"The tabs of your browser are not shown: {problem}. It is tried every {_TRY_AGAIN:g} s."
                self._server.windows[_PROBLEM_WINDOW] = Window(text, 40, title="your browser")

    def _on_page(self, page: "Page") -> None:
        if self._tasks is not None:
            self._tasks.start_soon(self._take, page)

    async def _take(self, page: "Page") -> None:
        """Show a page that another one has opened. A page may open others without end: then it is closed."""
        async with self._opening:
            if page.is_closed():
                return
            of_pages = [tab for tab in self._tabs.values() if tab.is_of_page]
            if not self._options.is_own or len(of_pages) < _MOST_OF_PAGES or self._tab_of(page) is not None:
                self._add(page)
                return
        if (opener := await page.opener()) is not None and (tab := self._tab_of(opener)) is not None:
            tab.note(f"It opened another tab, which was closed: pages have opened {len(of_pages)} that are still open.")
        await _close_page(page)

    def _tab_of(self, page: "Page") -> BrowserTab | None:
        return next((tab for tab in self._tabs.values() if tab.page is page), None)

    def _add(self, page: "Page", *, is_of_page: bool = True) -> BrowserTab:
        """Show a page, if it is not shown yet."""
        if (known := self._tab_of(page)) is not None:
            return known
        assert self._tasks is not None
        tab = BrowserTab(self._next, page, self._server.windows, self._mask, self._budget, is_of_page=is_of_page)
        self._next += 1
        self._tabs[tab.number] = tab
        page.on("close", lambda _: self._remove(tab))
        if self._options.is_own:
            page.on("download", lambda download: self._save(tab, download))
        self._tasks.start_soon(tab.run)
        return tab

    def _save(self, tab: BrowserTab, download: "Download") -> None:
        if self._tasks is not None:
            self._tasks.start_soon(tab.save, download, self._options.downloads)

    def _remove(self, tab: BrowserTab) -> None:
        self._tabs.pop(tab.number, None)
        tab.close_window()
        if self._current == tab.number:
            # No other tab takes its place: a click would land there.
            self._current = None

    def _choose(self, tab: BrowserTab) -> None:
        self._current = tab.number
        for each in self._tabs.values():
            each.set_current(each is tab)

    def _tab(self, number: int | None) -> BrowserTab:
        only = next(iter(self._tabs)) if len(self._tabs) == 1 else None
        chosen = number if number is not None else self._current or only
        if chosen is None or (tab := self._tabs.get(chosen)) is None:
            known = ", ".join(map(str, self._tabs)) or "none; open a page with browser_open"
            which = "there is no current tab: name one" if number is None else f"there is no tab {number}"
            raise BadRequestError(f"{which}; there are: {known}")
        self._choose(tab)
        return tab

    async def _done(self, tab: BrowserTab, words: str) -> str:
        """What an action did, with what the tab shows after a moment."""
        await asyncio.sleep(_SETTLE)
        if not tab.page.is_closed():
            await tab.look(again=True)
        shown = self._server.windows.get(("tabs", str(tab.number)))
        return words if shown is None else f"{words}\n\n{await shown.current()}"
