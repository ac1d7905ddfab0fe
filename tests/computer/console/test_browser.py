"""The browser that the other tests here drive."""

import os
import subprocess
import sys
from pathlib import Path

from playwright.async_api import Browser

from tests import browser as browsers

ROOT = Path(__file__).parents[3]


async def test_it_draws_a_page(browser: Browser) -> None:
    page = await browser.new_page()
    await page.set_content("<h1>Hello</h1><script>document.body.append(1 + 1)</script>")
    assert (await page.inner_text("body")).split() == ["Hello", "2"]
    await page.close()


def test_a_machine_with_neither_browser_nor_npm_says_in_one_line_what_to_install(tmp_path: Path) -> None:
    copy = tmp_path / "tests"
    copy.mkdir()
    (copy / "browser.py").write_bytes((ROOT / "tests" / "browser.py").read_bytes())
    run = subprocess.run(
        [sys.executable, "tests/browser.py"],
        cwd=tmp_path,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", f"{browsers.MISSING}\n")
    assert not (tmp_path / ".node").exists()
