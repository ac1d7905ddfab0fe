"""The outline of pages that nobody here made: documentation in installed packages, and pages that Python makes."""

import importlib
import pydoc
import re
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from a2c_smcp.windows.browser.outline import WalkerLimits
from a2c_smcp.windows.browser.tab import WALKER
from tests import browser

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.anyio
CHROMIUM = browser.find()
MODULES = ("argparse", "http.client", "json", "pathlib", "xml.dom.minidom")
#: What a person sees of a link or a button: it has a box, and stands in no box that is closed.
ACTIONS = """() => Array.from(document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea"))
    .filter((each) => each.checkVisibility({ visibilityProperty: true }) && each.getClientRects().length).length"""


def pages() -> Iterator[str]:
    for package in ("olefile", "markdown", "jinja2", "mkdocs"):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield from (
                str(path) for path in sorted(Path(folder).rglob("*.html")) if "{%" not in path.read_text("utf-8")
            )
    yield from MODULES


def html_of(source: str) -> str:
    if source in MODULES:
        return pydoc.html.page(source, pydoc.html.document(importlib.import_module(source)))
    return Path(source).read_text("utf-8")


def words(text: str) -> list[str]:
    return re.findall(r"\w{2,}", text)


@pytest.fixture(scope="module")
async def page() -> AsyncIterator["Page"]:
    from playwright.async_api import async_playwright

    assert CHROMIUM is not None
    async with async_playwright() as playwright, await playwright.chromium.launch(**CHROMIUM.launch) as running:
        yield await running.new_page()


@pytest.mark.skipif(CHROMIUM is None, reason=browser.MISSING)
@pytest.mark.parametrize("source", list(pages()), ids=lambda source: "-".join(Path(source).parts[-3:]))
async def test_no_word_and_nothing_to_act_on_is_lost(page: "Page", source: str) -> None:
    await page.set_content(html_of(source), wait_until="domcontentloaded")
    seen = words(await page.evaluate("document.body.innerText"))
    limits = WalkerLimits(characters=2_000_000, nodes=1_000_000, milliseconds=20_000)
    read = set(words((await page.evaluate(WALKER, limits.options(markdown=True)))["text"]))
    lost = [word for word in seen if word not in read]
    assert len(lost) <= 0.01 * len(seen), lost[:20]
    answer = await page.evaluate(WALKER, limits.options(1))
    actions = await page.evaluate(ACTIONS)
    # Long lists are folded in the outline, and say how many more there are.
    if "… " not in answer["text"]:
        assert len(re.findall(r"^\[e\d+\]", answer["text"], re.MULTILINE)) >= actions
    assert answer["next"] > 1 or not actions
