"""The API reference has every public name, and every public name says what it is for."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from playwright.async_api import async_playwright

from tests import browser as browsers

ROOT = Path(__file__).parent.parent
#: The modules from which people import; those after the first line have pages of their own, whole.
ROOMS = (
    "a2c_smcp.testing",
    "a2c_smcp.agent",
    "a2c_smcp.agent.llm",
    "a2c_smcp.computer",
    "a2c_smcp.server",
    "a2c_smcp.mcp_server",
    "a2c_smcp.office_mcp",
)
MODULES = (
    "a2c_smcp.tracing",
    "a2c_smcp.errors",
    "a2c_smcp.smcp",
    "a2c_smcp.computer.decisions.book",
    "a2c_smcp.computer.watching.events",
    "a2c_smcp.utils.forms",
    "a2c_smcp.mcp_server.elements",
    "a2c_smcp.utils.dpe_uri",
    "a2c_smcp.utils.window_uri",
)
#: On the agent's page, and among the other elements.
ELSEWHERE = {"a2c_smcp.computer.LinkOptions", "a2c_smcp.computer.text_of", "a2c_smcp.mcp_server.Element"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, which build without a warning."""
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")
    return site


@pytest.fixture(scope="module")
def anchors(site: Path) -> set[str]:
    """What the pages have, by the ids in their HTML."""
    return {anchor for page in site.rglob("*.html") for anchor in re.findall(r'id="(a2c_smcp[^"]*)"', page.read_text())}


def test_every_public_name_is_on_a_page(anchors: set[str]) -> None:
    names = {f"{room}.{name}" for room in (*ROOMS, *MODULES) for name in importlib.import_module(room).__all__}
    assert names - anchors == ELSEWHERE


def test_every_public_name_and_every_method_of_it_says_what_it_is_for(anchors: set[str]) -> None:
    assert [path for path in sorted(anchors) if not _speaks(_found(path))] == []


def test_the_blocking_agent_has_the_words_of_the_other_one(site: Path) -> None:
    assert (site / "api" / "agent.html").read_text().count("Leave the office. Without one this does nothing.") == 2


async def test_no_table_is_wider_than_the_page(site: Path) -> None:
    chromium = browsers.find()
    if chromium is None:
        pytest.skip(browsers.MISSING)
    async with async_playwright() as playwright, await playwright.chromium.launch(**chromium.launch) as browser:
        page = await browser.new_page(viewport={"width": 1280, "height": 800})
        for name in ("limits.html", "cli.html", "configuration.html", "protocol.html"):
            await page.goto((site / name).as_uri())
            tables = "[...document.querySelectorAll('table')].map(table => [table.scrollWidth, table.offsetWidth])"
            for needed, given in (widths := await page.evaluate(tables)):
                assert needed <= given, name
            assert widths


def _found(path: str) -> Any:
    """What has this dotted name."""
    found: Any = None
    name = ""
    for part in path.split("."):
        name = f"{name}.{part}".removeprefix(".")
        try:
            found = importlib.import_module(name)
        except ImportError:
            # Without calling properties; but rooms import their names when they are used.
            found = getattr(found, part) if inspect.ismodule(found) else inspect.getattr_static(found, part, None)
    return found


def _speaks(found: Any) -> bool:
    """Whether a class, a function or a property has a docstring of its own. A value needs none."""
    if inspect.isclass(found):
        made_by_dataclass = f"{found.__name__}("
        return not (vars(found)["__doc__"] or made_by_dataclass).startswith(made_by_dataclass)
    callables = (FunctionType, ModuleType, property, classmethod, staticmethod)
    return bool(found.__doc__) if isinstance(found, callables) else True
