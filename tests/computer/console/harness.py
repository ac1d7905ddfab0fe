"""A computer with its console, a visitor that speaks HTTP, and a tab of a browser."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import urlsplit

import anyio
import httpx2
from anyio.abc import TaskGroup
from playwright.async_api import Browser, BrowserContext, Locator, Page, expect

from a2c_smcp.computer.asker import ASKER, Asker
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console import Console, ConsoleAddress, ConsoleMemory
from a2c_smcp.computer.home import ComputerHome
from tests.computer.fakes.computers import FAST

DEADLINE = 30.0
expect.set_options(timeout=DEADLINE * 1000)


@asynccontextmanager
async def opened(
    *servers: dict[str, Any], memory: ConsoleMemory | None = None, home: ComputerHome | None = None, **options: Any
) -> AsyncIterator[tuple[Computer, Console]]:
    """A booted Computer whose console runs."""
    computer = Computer("pc", mcp_servers=servers, **{"timings": FAST, **options})
    async with computer, anyio.create_task_group() as tasks:
        console = Console(computer, ConsoleAddress("127.0.0.1", 0), memory=memory, home=home)
        await tasks.start(console.run)
        try:
            yield computer, console
        finally:
            tasks.cancel_scope.cancel()


class Visitor:
    """What a browser, or somebody who is none, sends to a console."""

    def __init__(self, link: str) -> None:
        url = urlsplit(link)
        self.base = f"{url.scheme}://{url.netloc}"
        self.token = url.fragment.removeprefix("link=")
        self.headers = {"origin": self.base}
        self._client = httpx2.AsyncClient(base_url=self.base, timeout=DEADLINE, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self._client.get(path, headers={**self.headers, **_named(headers)})

    async def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        content = body if isinstance(body, bytes) else json.dumps(body)
        given = {**self.headers, "content-type": "application/json", **_named(headers)}
        return await self._client.post(path, content=content, headers=given)

    async def enter(self) -> Self:
        """Use the link; from now on the session's key is sent along."""
        answer = await self.post("/api/session", {"token": self.token})
        assert answer.status_code == 200, answer.text
        self.headers["x-a2c-session"] = answer.json()["key"]
        return self

    @asynccontextmanager
    async def feed(self) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """The messages of the stream, decoded."""
        async with self._client.stream("GET", "/api/feed", headers=self.headers) as response:
            assert response.status_code == 200

            async def messages() -> AsyncIterator[dict[str, Any]]:
                async for line in response.aiter_lines():
                    yield json.loads(line)

            yield messages()


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


async def as_agent(computer: Computer, tool: str, timeout: float = DEADLINE, **params: Any) -> Any:
    """A call as an agent makes it."""
    ASKER.set(Asker("planner"))
    return await computer.execute_tool("r", tool, params, timeout)


@asynccontextmanager
async def tab(
    browser: Browser, link: str, context: BrowserContext | None = None, **options: Any
) -> AsyncIterator[Page]:
    """The console in a tab, live. Nothing may go wrong in the page: no error, no refused file, no dialog."""
    wrong: list[str] = []
    own = context is None
    context = context or await browser.new_context(
        **{"locale": "en-US", "viewport": {"width": 1400, "height": 900}, **options}
    )
    page = await context.new_page()
    page.set_default_timeout(DEADLINE * 1000)
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
    page.on(
        "console", lambda line: wrong.append(line.text) if line.type == "error" and not _is_cut(line.text) else None
    )
    await page.goto(link)
    await page.wait_for_selector(".status.live")
    try:
        yield page
    finally:
        await (context if own else page).close()
    assert wrong == []


def _is_cut(text: str) -> bool:
    """What Chromium says of connections that a test ends, and of answers that are refusals."""
    return "Failed to load resource" in text or "net::ERR_" in text


@asynccontextmanager
async def one_page(browser: Browser, **options: Any) -> AsyncIterator[tuple[Computer, Page, TaskGroup]]:
    """A computer without servers, its page, and tasks that may wait for a decision; `options` are the tab's."""
    async with (
        opened() as (computer, console),
        tab(browser, console.link(), **options) as page,
        anyio.create_task_group() as tasks,
    ):
        yield computer, page, tasks


#: A button that waits after a movement prevents what a click does otherwise.
_LISTEN = (
    "() => document.addEventListener('click', (event) => { window.ignored = event.defaultPrevented }, { once: true })"
)


async def press(button: Locator) -> None:
    """Click as a person does: bring it into sight, press when it listens, and press again if it moved just then."""
    with anyio.fail_after(DEADLINE):
        while True:
            await button.scroll_into_view_if_needed()
            await expect(button).to_be_enabled()
            await button.page.evaluate(_LISTEN)
            await button.click()
            if not await button.page.evaluate("window.ignored"):
                return


async def go(page: Page, view: str) -> None:
    """Show another view, with the pointer and the focus out of the way: what they are on stands still."""
    await page.mouse.move(0, 0)
    await page.evaluate("document.activeElement?.blur()")
    await page.evaluate("view => { location.hash = view }", f"#/{view}")
    await page.wait_for_selector(f".frame[data-view={view.partition('/')[0]}]")
