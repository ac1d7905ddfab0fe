"""Starts a Chromium, or connects to one that runs. What is used of Playwright is in its documentation."""

import asyncio
import logging
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright

__all__ = ["BrowserOptions", "browser_context", "sandbox_problem", "why_not"]

logger = logging.getLogger(__name__)

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "chrome")
#: Seconds for a browser to start, and to end.
_PATIENCE: Final = 30.0
#: What a browser said, in an error of Playwright.
_SAID: Final = re.compile(r"\[pid=\d+\]\[err\] *(.*\S)")


@dataclass(frozen=True, slots=True)
class BrowserOptions:
    """Which browser, and what it may do."""

    url: str | None = None
    """Of a browser that runs with remote debugging. It is the person's: it and its tabs outlive the server."""
    path: str | None = None
    """The program to start; `None` looks for one on the PATH."""
    arguments: Sequence[str] = ()
    headed: bool = False
    downloads: Path | None = None
    """Where downloads go; `None` refuses them."""

    @property
    def is_own(self) -> bool:
        """Whether the server starts the browser, and ends it."""
        return self.url is None


@asynccontextmanager
async def browser_context(options: BrowserOptions, environment: Mapping[str, str]) -> AsyncIterator["BrowserContext"]:
    """A browser's tabs. A browser that was started here has this environment, and ends with this, with its profile."""
    async with _playwright() as playwright:
        with ExitStack() as exits:
            own = {"TMPDIR": exits.enter_context(_short_folder())} if options.is_own else {}
            browser = await _browser(playwright, options, {**environment, **own})
            try:
                if browser.contexts:
                    yield browser.contexts[0]
                else:
                    yield await browser.new_context(
                        accept_downloads=options.downloads is not None, no_viewport=options.headed
                    )
            finally:
                with anyio.move_on_after(_PATIENCE, shield=True):
                    # Of a browser that was found running, this ends the connection alone.
                    await browser.close()


@asynccontextmanager
async def _playwright() -> AsyncIterator["Playwright"]:
    """Playwright with its process. It is ended in every case, also if this is cancelled while it starts."""
    from playwright.async_api import async_playwright

    starting = asyncio.ensure_future(async_playwright().start())
    try:
        yield await asyncio.shield(starting)
    finally:
        with anyio.move_on_after(_PATIENCE, shield=True):
            await (await starting).stop()


async def _browser(playwright: "Playwright", options: BrowserOptions, environment: Mapping[str, str]) -> "Browser":
    from playwright.async_api import Error

    if options.url is not None:
        return await playwright.chromium.connect_over_cdp(options.url, timeout=_PATIENCE * 1000)
    problem = sandbox_problem(options.arguments, os.geteuid())
    if problem is None:
        try:
            return await _launch(playwright, options, environment, sandbox=True)
        except Error as error:
            if "No usable sandbox" not in str(error):
                raise
            problem = "this system has no user namespaces for it"
    logger.warning("Chromium runs without its sandbox: %s", problem)
    return await _launch(playwright, options, environment, sandbox=False)


async def _launch(
    playwright: "Playwright", options: BrowserOptions, environment: Mapping[str, str], *, sandbox: bool
) -> "Browser":
    return await playwright.chromium.launch(
        executable_path=_program(options.path),
        args=list(options.arguments),
        env=dict(environment),
        headless=not options.headed,
        timeout=_PATIENCE * 1000,
        # Without this word Playwright starts it with --no-sandbox.
        chromium_sandbox=sandbox,
        # Signals of the terminal are for the server, which closes the browser.
        handle_sigint=False,
        handle_sigterm=False,
        handle_sighup=False,
    )


def _short_folder() -> tempfile.TemporaryDirectory[str]:
    """The temporary folder of a browser. It makes a socket there, whose address may have 108 bytes: below a long TMPDIR
    it does not start.
    """
    short = Path("/tmp")
    return tempfile.TemporaryDirectory(
        prefix="a2c-", dir=short if os.access(short, os.W_OK) else None, ignore_cleanup_errors=True
    )


def why_not(error: str) -> str:
    """Why a browser did not start, from an error of Playwright: its first line, and the browser's last one."""
    said = _SAID.findall(error)
    return ": ".join([error.partition("\n")[0], *said[-1:]])


def sandbox_problem(arguments: Sequence[str], user: int) -> str | None:
    """Why Chromium is started without its sandbox; `None` if it may have one. Raises `ValueError` for root: without a
    sandbox, a page that breaks out of Chromium would own the machine, so a person has to say it.
    """
    if "--no-sandbox" in arguments:
        return "--browser-arg says so"
    if user == 0:
        raise ValueError(
            "Chromium has no sandbox as root: run a2c windows as another user, "
            "or give --browser-arg=--no-sandbox and open only pages that you trust"
        )
    return None


def _program(path: str | None) -> str:
    if path is not None:
        return path
    if (found := next(filter(None, map(shutil.which, _NAMES)), None)) is None:
        raise ValueError("no Chromium is on the PATH: install one, or name it with --browser-path")
    return found
