"""One browser for each file of tests."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright

from tests import browser as browsers


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    chromium = browsers.find()
    if chromium is None:
        pytest.skip(browsers.MISSING)
    async with async_playwright() as playwright, await playwright.chromium.launch(**chromium.launch) as browser:
        yield browser
