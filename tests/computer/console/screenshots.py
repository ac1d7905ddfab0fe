"""`make screenshots`: every view of the console, light and dark, wide and narrow, as pictures for docs/console.md."""

import asyncio
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.async_api import async_playwright

from tests import browser as browsers
from tests.computer.console.harness import go, tab
from tests.computer.console.scene import VIEWS, scene

SIZES: dict[str, Any] = {"wide": {"width": 1360, "height": 820}, "narrow": {"width": 390, "height": 780}}


async def take(folder: Path) -> None:
    """Write the pictures into a folder."""
    chromium = browsers.find()
    if chromium is None:
        raise SystemExit(browsers.MISSING)
    with tempfile.TemporaryDirectory() as scratch:
        async with (
            async_playwright() as playwright,
            await playwright.chromium.launch(**chromium.launch) as browser,
            scene(Path(scratch)) as (_, console, document),
        ):
            for colours in ("light", "dark"):
                for size, viewport in SIZES.items():
                    options = {"color_scheme": colours, "viewport": viewport, "reduced_motion": "reduce"}
                    async with tab(browser, console.link(), **options) as page:
                        for name, (place, ready) in VIEWS.items():
                            await go(page, place.format(document=document))
                            await page.wait_for_selector(f"main {ready}")
                            if name == "calls":
                                await page.locator(".row.ended", has_text="chart").get_by_role("button").first.click()
                                await page.wait_for_selector("img.result")
                            if name == "servers":
                                await page.get_by_role("button", name="Log of mail").click()
                            await page.mouse.move(0, 0)
                            await page.wait_for_timeout(700)
                            _save(await page.screenshot(), folder / f"{name}-{size}-{colours}.webp")


def _save(picture: bytes, file: Path) -> None:
    with Image.open(io.BytesIO(picture)) as image:
        image.convert("RGB").save(file, lossless=True, method=6)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(exist_ok=True)
    asyncio.run(take(Path(sys.argv[1])))
