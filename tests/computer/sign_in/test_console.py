"""A person signs in with a real browser: the button of the console, the issuer's page, and back."""

from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, expect

from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.sign_in.token_store import MemoryStore, key_of
from tests.computer.console.conftest import browser as browser
from tests.computer.console.harness import go, opened, press, tab
from tests.computer.fakes.computers import text
from tests.computer.sign_in.protected import DEADLINE, config, protected_server, sign_in_of, until
from tests.oidc.issuer import Issuer, needs_issuer
from tests.oidc.issuer import running_issuer as running_issuer

pytestmark = [pytest.mark.anyio, needs_issuer]


@pytest.fixture(scope="module")
def url(running_issuer: Issuer) -> Iterator[str]:
    with protected_server(running_issuer.url) as url:
        yield url


@pytest.mark.parametrize("kind", ["streamable", "sse"])
async def test_the_button_opens_the_issuer_and_the_server_starts_afterwards(
    kind: str, browser: Browser, url: str, running_issuer: Issuer
) -> None:
    running_issuer.change(auto=False)
    store = MemoryStore()
    async with (
        opened(config(url, kind), sign_in_store=store) as (computer, console),
        tab(browser, console.link()) as page,
    ):
        await until(computer, ServerState.SIGN_IN)
        await go(page, "servers")
        await page.get_by_role("button", name="Sign in").first.click()  # nobody was there when it started
        decision = await sign_in_of(computer)
        card = page.locator("aside .decision:not([data-decided])")
        await expect(card).to_contain_text("Sign in to")
        link = card.locator("[data-answer=open]")
        assert await link.get_attribute("href") == decision.url  # what is shown is what is opened
        assert decision.url in (await card.inner_text()).replace("\u200b", "")
        async with page.context.expect_page() as opening:
            await press(link)
        issuer = await opening.value
        await issuer.get_by_role("button", name="Sign in").click()
        await expect(issuer.locator("body")).to_contain_text("You are signed in", timeout=DEADLINE * 1000)
        await until(computer, ServerState.RUNNING)
        await expect(card).to_have_count(0)
        result = await computer.execute_tool("r", "echo", {"text": "hello"}, timeout=DEADLINE)
        assert text(result) == "hello"
        path = "/mcp" if kind == "streamable" else "/sse"
        assert await store.load(key_of("guarded", url + path, None)) is not None
        await page.get_by_role("button", name="Remove guarded").click()
        await page.get_by_role("button", name="Remove and sign out").click()
        await expect(page.get_by_role("button", name="Remove guarded")).to_have_count(0)
        assert await store.load(key_of("guarded", url + path, None)) is None
