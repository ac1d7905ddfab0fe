"""axe-core finds nothing serious in any view, light and wide, dark and narrow; nothing is wider than its place."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests import browser as browsers
from tests.computer.console.harness import go, tab
from tests.computer.console.scene import VIEWS, scene

_LOOKS: list[tuple[str, Any]] = [("light", {"width": 1360, "height": 860}), ("dark", {"width": 390, "height": 780})]


async def test_axe_finds_nothing_serious(browser: Browser, tmp_path: Path) -> None:
    if not browsers.AXE.exists():
        pytest.skip("axe-core is not installed: install Node.js with npm, and type make test again")
    axe = browsers.AXE.read_text("utf-8")
    found: list[str] = []
    async with scene(tmp_path) as (_, console, document):
        for colours, viewport in _LOOKS:
            options: dict[str, Any] = {"color_scheme": colours, "viewport": viewport, "reduced_motion": "reduce"}
            async with tab(browser, console.link(), **options) as page:
                await page.evaluate(axe)
                for name, (place, ready) in VIEWS.items():
                    await go(page, place.format(document=document))
                    await page.wait_for_selector(f"main {ready}")
                    # New buttons are pale at first.
                    await expect(page.locator(".decision [data-answer][aria-disabled]")).to_have_count(0)
                    looked_at = f"{name} {colours} {viewport['width']}"
                    found += [f"{looked_at}: {each}" for each in await page.evaluate(_SERIOUS)]
                    if await page.evaluate(_TOO_WIDE):
                        found.append(f"{looked_at}: too wide")
    assert found == []


_SERIOUS = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(node => node.html.slice(0, 200)).join(" | ")}`);
}"""
_TOO_WIDE = "document.querySelector('main').scrollWidth > document.querySelector('main').clientWidth"
