"""axe-core finds nothing in any view, in both languages, light and dark, on a phone, a tablet and a large screen."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from a2c_smcp.computer.watching.events import RestartOffered
from tests import browser as browsers
from tests.computer.console.harness import go, tab
from tests.computer.console.scene import VIEWS, scene

#: One for each way in which the page is laid out.
WIDTHS = (390, 1024, 1440)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
async def test_axe_finds_nothing(browser: Browser, tmp_path: Path, locale: str) -> None:
    if not browsers.AXE.exists():
        pytest.skip("axe-core is not installed: install Node.js with npm, and type make test again")
    found: list[str] = []
    async with (
        scene(tmp_path) as (computer, console, document),
        tab(browser, console.link(), reduced_motion="reduce", locale=locale) as page,
    ):
        await page.evaluate(browsers.AXE.read_text("utf-8"))
        # The arguments were in sight once, where the page is wide: on a phone the cards are in a view of their own.
        await expect(page.locator(".decision [data-answer][aria-disabled]")).to_have_count(0)
        for name, (place, ready) in VIEWS.items():
            await go(page, place.format(document=document))
            await page.wait_for_selector(f"main {ready}")
            await _open_everything(page)
            found += [f"{name} {each}" for each in await _at_every_width(page)]
        await go(page, "tools/send_mail")
        await page.locator("form.call .primary").click()
        await page.wait_for_selector("form.call .wrong")
        await page.locator(".bell").click()
        found += [f"a form with errors, and the alerts: {each}" for each in await _at_every_width(page)]
        await page.keyboard.press("Escape")
        computer._events.publish(RestartOffered("mail", "its config was updated"))
        await page.locator(".told").click()
        await expect(page.locator(".notice")).to_be_visible()
        found += [f"the notices: {each}" for each in await _at_every_width(page)]
    assert not found, "\n".join(found)


async def _open_everything(page: Page) -> None:
    """What is behind a button is looked at, too."""
    folded = "main .row [aria-expanded=false], main details:not([open]) > summary, main [data-open=rule]"
    await page.eval_on_selector_all(folded, "found => found.forEach((each) => each.click())")
    await expect(page.locator("main .loading")).to_have_count(0)


async def _at_every_width(page: Page) -> list[str]:
    found: list[str] = []
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 860})
        # New buttons are pale at first.
        await expect(page.locator(".decision [data-answer][aria-disabled]")).to_have_count(0)
        found += [f"at {width}: {each}" for each in await page.evaluate(_VIOLATIONS, _ALL)]
    # In the dark only colours differ.
    await page.emulate_media(color_scheme="dark")
    for width in (WIDTHS[0], WIDTHS[-1]):
        await page.set_viewport_size({"width": width, "height": 860})
        await expect(page.locator(".decision [data-answer][aria-disabled]")).to_have_count(0)
        contrast = {"runOnly": ["color-contrast"]}
        found += [f"dark, at {width}: {each}" for each in await page.evaluate(_VIOLATIONS, contrast)]
    await page.emulate_media(color_scheme="light")
    return found


#: All rules, and that a name has the words that are seen: who speaks to the page says what stands there.
_ALL = {"rules": {"label-content-name-mismatch": {"enabled": True}}}
_VIOLATIONS = """async options => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...options });
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(node => node.html.slice(0, 200)).join(" | ")}`,
  );
}"""
