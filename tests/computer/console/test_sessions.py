"""Pages and browsers in a real browser: who is in use, who is credited, who is remembered, and who is sent away."""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import segno
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console import Advice, Console, ConsoleAddress, ConsoleMemory
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.web.uvicorn_server import listen
from tests import browser as browsers
from tests.certificates import self_signed
from tests.computer.cli.test_headless import Service, service, write
from tests.computer.console.harness import DEADLINE, Visitor, as_agent, go, opened, press, tab
from tests.computer.console.test_memory import memory as file
from tests.computer.fakes.computers import server
from tests.computer.fakes.offices import new_office
from tests.server.harness import Running


def remember(page: Page) -> Any:
    return page.locator(".offer").get_by_role("button", name="Remember this browser")


async def _keys(page: Page) -> int:
    return int(await page.evaluate(_COUNT))


_COUNT = """() => new Promise((resolve, reject) => {
  const opening = indexedDB.open("a2c-devices", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
  opening.onerror = reject;
  opening.onsuccess = () => {
    const asked = opening.result.transaction("keys").objectStore("keys").count();
    asked.onsuccess = () => { opening.result.close(); resolve(asked.result); };
  };
})"""


# --- in use


async def test_the_page_that_follows_and_the_tab_that_hears_it_are_never_sent_away(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console):
        context = await browser.new_context(locale="en-US")
        async with tab(browser, console.link(), context) as reads:
            page = await context.new_page()
            async with page.expect_response("**/api/alive", timeout=DEADLINE * 1000) as alive:
                await page.goto(console.link())
            assert (await alive.value).status == 200
            await page.wait_for_selector(".status.live")
            for _ in range(2 * CONSOLE_LIMITS.sessions):
                async with Visitor(console.link()) as visitor:
                    await visitor.enter()
            await as_agent(computer, "echo", text="x")
            for each in (reads, page):
                await go(each, "tools")
                await expect(each.locator(".group li").first).to_be_visible()
                await go(each, "calls")
                await expect(each.locator(".row.ended")).to_have_count(1)
        await context.close()


# --- credit


async def test_what_another_browser_decided_is_credited_to_it(browser: Browser) -> None:
    config = server("one", prefixed=False, default_tool_meta={})
    async with opened(config) as (computer, console), tab(browser, console.link()) as first:
        async with tab(browser, console.link()) as second, anyio.create_task_group() as tasks:
            tasks.start_soon(as_agent, computer, "stats")
            await expect(first.locator("aside .decision")).to_have_count(1)
            await first.locator("aside .decision h3").hover()  # what is decided stays to be looked at
            await press(second.locator("aside").get_by_role("button", name=re.compile(r"^Allow once\b")))
            await expect(second.locator("aside .outcome")).to_have_text("Allowed by this browser")
            await expect(first.locator("aside .outcome")).to_have_text("Allowed by “Chrome on Linux (2)”")
        [ended] = computer.ended_calls
        assert ended.decided_by == "Chrome on Linux (2)"
        # A call of the person's own, too.
        await go(first, "tools/stats")
        await first.get_by_role("button", name="Call", exact=True).click()
        await expect(first.locator(".tool .details")).to_be_visible()
        assert [each.decided_by for each in computer.ended_calls] == ["Chrome on Linux (2)", "Chrome on Linux"]


# --- remembered


async def test_a_browser_that_was_remembered_comes_back_without_a_link(browser: Browser, tmp_path: Path) -> None:
    with file(tmp_path, now=time.time()) as memory:
        async with opened(memory=memory) as (_, console):
            context = await browser.new_context(locale="en-US")
            base = console.link().partition("#")[0]
            async with tab(browser, console.link(), context) as page:
                await remember(page).click()
                await expect(page.locator(".offer")).to_have_count(0)
                await go(page, "office")
                row = page.locator(".row.device")
                await expect(row).to_contain_text("Chrome on Linux")
                await expect(row).to_contain_text("remembered")
                # Nobody can read the private key, this page neither.
                assert await page.evaluate(_EXPORTED) == "InvalidAccessError"
            async with tab(browser, base, context) as page:
                await expect(page.locator(".offer")).to_have_count(0)
                assert await page.evaluate("sessionStorage.getItem('a2c-device')") == "Chrome on Linux"
            # A tab that has a link as well is one of this browser all the same, and the link is used up.
            link = console.link()
            async with tab(browser, link, context) as page:
                assert await page.evaluate("sessionStorage.getItem('a2c-device')") == "Chrome on Linux"
            # Another browser is let in by a link only.
            async with Visitor(link) as visitor:
                assert (await visitor.post("/api/session", {"token": visitor.token})).status_code == 403
            stranger = await browser.new_page()
            await stranger.goto(base)
            await expect(stranger.locator(".over")).to_contain_text("This page is closed")
            await stranger.close()
            await context.close()


_EXPORTED = """async () => {
  const database = await new Promise((resolve) => {
    indexedDB.open("a2c-devices", 1).onsuccess = (event) => resolve(event.target.result);
  });
  const [{ pair }] = await new Promise((resolve) => {
    database.transaction("keys").objectStore("keys").getAll().onsuccess = (event) => resolve(event.target.result);
  });
  database.close();
  return crypto.subtle.exportKey("pkcs8", pair.privateKey).then(() => "exported", (error) => error.name);
}"""


async def test_the_offer_can_be_declined_for_good(browser: Browser, tmp_path: Path) -> None:
    with file(tmp_path, now=time.time()) as memory:
        async with opened(memory=memory) as (_, console):
            context = await browser.new_context(locale="en-US")
            async with tab(browser, console.link(), context) as page:
                await page.locator(".offer").get_by_role("button", name="Don’t ask again").click()
                await expect(page.locator(".offer")).to_have_count(0)
            async with tab(browser, console.link(), context) as page:
                await go(page, "office")
                # The way to it is still here.
                await expect(page.locator(".devices button", has_text="Remember this browser")).to_be_visible()
                await expect(page.locator(".offer")).to_have_count(0)
                assert memory.found.devices == ()
            await context.close()


async def test_nothing_is_offered_without_a_memory_or_without_web_crypto(browser: Browser, tmp_path: Path) -> None:
    async with opened() as (_, console), tab(browser, console.link()) as page:
        await go(page, "office")
        await expect(page.locator(".row.device")).to_have_count(1)
        await expect(page.get_by_role("button", name="Remember this browser")).to_have_count(0)
    with file(tmp_path, now=time.time()) as memory:
        async with opened(memory=memory) as (_, console):
            # As it is on plain HTTP beyond this machine.
            context = await browser.new_context(locale="en-US")
            await context.add_init_script("Object.defineProperty(globalThis, 'isSecureContext', { value: false })")
            async with tab(browser, console.link(), context) as page:
                await go(page, "office")
                await expect(page.locator(".row.device")).to_have_count(1)
                await expect(page.get_by_role("button", name="Remember this browser")).to_have_count(0)
            await context.close()


async def test_a_browser_that_is_revoked_is_out_at_once_and_drops_its_key(browser: Browser, tmp_path: Path) -> None:
    with file(tmp_path, now=time.time()) as memory:
        async with opened(memory=memory) as (_, console), tab(browser, console.link()) as mine:
            context = await browser.new_context(locale="en-US")
            async with tab(browser, console.link(), context) as page:
                await remember(page).click()
                await expect(page.locator(".offer")).to_have_count(0)
                assert await _keys(page) == 1
                second = await _shown(context, console.link().partition("#")[0])
                await go(mine, "office")
                await mine.get_by_role("button", name="Revoke Chrome on Linux (2)").click()
                await expect(page.locator(".over")).to_contain_text("revoked")
                assert await _keys(page) == 0
                await expect(second.locator(".over")).to_contain_text("revoked")
                await expect(mine.locator(".row.device")).to_have_count(1)
                assert memory.found.devices == ()
                await page.reload()
                await expect(page.locator(".over")).to_contain_text("This page is closed")
                # With a link it comes in again, and may be remembered again.
                await page.goto(console.link())
                await expect(remember(page)).to_be_visible()
            await context.close()


async def test_a_browser_that_was_revoked_while_it_was_away_learns_of_it_with_its_next_link(
    browser: Browser, tmp_path: Path
) -> None:
    with file(tmp_path, now=time.time()) as memory:
        async with opened(memory=memory) as (_, console), Visitor(console.link()) as visitor:
            await visitor.enter()
            context = await browser.new_context(locale="en-US")
            async with tab(browser, console.link(), context) as page:
                await remember(page).click()
                await expect(page.locator(".offer")).to_have_count(0)
            [device] = memory.found.devices
            assert (await visitor.post("/api/revoke", {"device": device.id})).status_code == 200
            async with tab(browser, console.link(), context) as page:
                await expect(remember(page)).to_be_visible()
                assert await _keys(page) == 0
            await context.close()


async def test_a_chinese_reader_finds_the_names_of_browsers_in_chinese(browser: Browser) -> None:
    async with opened() as (_, console):
        context = await browser.new_context(locale="zh-CN")
        async with tab(browser, console.link(), context) as page:
            await go(page, "office")
            await expect(page.locator(".row.device")).to_contain_text("Linux 上的 Chrome")
        await context.close()


async def test_tabs_come_back_by_themselves_after_the_computer_was_started_again(
    browser: Browser, tmp_path: Path, port: int
) -> None:
    context = await browser.new_context(locale="en-US")
    with file(tmp_path, now=time.time()) as memory:
        async with _running(memory, port) as (_, console):
            first = await _shown(context, console.link())
            await remember(first).click()
            await expect(first.locator(".offer")).to_have_count(0)
            second = await _shown(context, f"http://127.0.0.1:{port}/")
            run = await first.evaluate("sessionStorage.getItem('a2c-run')")
        for page in (first, second):
            await expect(page.locator(".status")).to_have_class("status gone")
        async with _running(memory, port, server("one", prefixed=False)) as (computer, _):
            for page in (first, second):
                await page.wait_for_selector(".status.live")
                await page.wait_for_function("run => sessionStorage.getItem('a2c-run') !== run", arg=run)
            await as_agent(computer, "echo", text="x")
            for page in (first, second):
                await expect(page.locator(".row.ended")).to_have_count(1)
                assert await page.evaluate("sessionStorage.getItem('a2c-device')") == "Chrome on Linux"
                await go(page, "tools")
                await expect(page.locator(".group li").first).to_be_visible()
    await context.close()


@asynccontextmanager
async def _running(
    memory: ConsoleMemory, port: int, *servers: dict[str, Any]
) -> AsyncIterator[tuple[Computer, Console]]:
    async with Computer("pc", mcp_servers=servers) as computer, anyio.create_task_group() as tasks:
        console = Console(computer, ConsoleAddress("127.0.0.1", port), memory=memory)
        await tasks.start(console.run)
        yield computer, console
        tasks.cancel_scope.cancel()


async def _shown(context: BrowserContext, link: str) -> Page:
    page = await context.new_page()
    page.set_default_timeout(DEADLINE * 1000)
    await page.goto(link)
    await page.wait_for_selector(".status.live")
    return page


async def test_a_session_that_was_sent_away_comes_back_in_the_middle_of_an_action(
    browser: Browser, tmp_path: Path
) -> None:
    with file(tmp_path, now=time.time()) as memory:
        async with (
            opened(server("one", prefixed=False), memory=memory) as (computer, console),
            tab(browser, console.link()) as page,
        ):
            await remember(page).click()
            await expect(page.locator(".offer")).to_have_count(0)
            await go(page, "tools/stats")
            assert console._app is not None
            console._app._visitors._sessions.clear()
            await page.get_by_role("button", name="Call", exact=True).click()
            await expect(page.locator(".tool .details")).to_be_visible()
            assert len(computer.ended_calls) == 1


# --- advice


@pytest.mark.parametrize(
    ("advice", "said"),
    [(Advice.PROMPT, "Type “console”"), (Advice.SIGNAL, "kill -USR1 "), (Advice.PROGRAM, "Ask the program")],
)
async def test_a_page_without_a_link_says_what_to_do(browser: Browser, advice: Advice, said: str) -> None:
    async with anyio.create_task_group() as tasks:
        console = Console(Computer("pc"), ConsoleAddress("127.0.0.1", 0), advice=advice)
        await tasks.start(console.run)
        page = await browser.new_page(locale="en-US")
        await page.goto(console.link().partition("#")[0])
        await expect(page.locator(".over")).to_contain_text(said)
        # A fresh link in the same tab lets it in.
        await page.goto(console.link())
        await page.wait_for_selector(".status.live", timeout=DEADLINE * 1000)
        await page.close()
        tasks.cancel_scope.cancel()


# --- another device


async def test_another_device_comes_in_by_the_qr_code_that_the_page_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A host that is not loopback, for the console and for the browser; no test leaves this machine.
    monkeypatch.setattr("a2c_smcp.computer.console.serving.listen", lambda _, port: listen("127.0.0.1", port))
    chromium = browsers.find()
    if chromium is None:
        pytest.skip(browsers.MISSING)
    launch = {**chromium.launch, "args": [*chromium.args, "--host-resolver-rules=MAP box.example 127.0.0.1"]}
    certificate = self_signed(tmp_path, "box.example")
    with file(tmp_path / "state", now=time.time()) as memory:
        console = Console(
            Computer("pc"),
            ConsoleAddress("box.example", 0),
            cert=Path(certificate.cert),
            key=Path(certificate.key),
            memory=memory,
            advice=Advice.SIGNAL,
        )
        async with (
            anyio.create_task_group() as tasks,
            async_playwright() as playwright,
            await playwright.chromium.launch(**launch) as browser,
        ):
            await tasks.start(console.run)
            async with tab(browser, console.link(), ignore_https_errors=True) as page:
                await go(page, "office")
                await page.get_by_role("button", name="Show a QR code").click()
                link = await page.locator(".another pre").inner_text()
                assert link.startswith("https://box.example:")
                await expect(page.locator(".another")).to_contain_text("The link works once, within 60 minutes")
                code = segno.make_qr(link, error="m")
                wanted = [[int(bool(module)) for module in row] for row in code.matrix_iter(border=4)]
                assert await page.evaluate(_MODULES, len(wanted)) == wanted
                async with tab(browser, link, ignore_https_errors=True) as phone:
                    # Over TLS it can be remembered, too.
                    await remember(phone).click()
                    await expect(phone.locator(".offer")).to_have_count(0)
                    assert [device.name for device in memory.found.devices] == ["Chrome on Linux (2)"]
                # What goes on inside this machine is not for those who have no link.
                stranger = await browser.new_page(locale="en-US", ignore_https_errors=True)
                await stranger.goto(link.partition("#")[0])
                await expect(stranger.locator(".over")).to_contain_text("“kill -USR1 PID”")
                await expect(stranger.locator(".over")).to_contain_text("remember this browser")
                await stranger.close()
            tasks.cancel_scope.cancel()


#: Which modules of the picture are dark, as the browser draws it.
_MODULES = """async (size) => {
  const image = document.querySelector(".qr");
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: size * 4, height: size * 4 });
  const pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0, size * 4, size * 4);
  const dark = (x, y) => (pen.getImageData(x * 4 + 2, y * 4 + 2, 1, 1).data[0] < 128 ? 1 : 0);
  return Array.from({ length: size }, (_, y) => Array.from({ length: size }, (_, x) => dark(x, y)));
}"""


async def test_without_a_certificate_the_page_says_what_another_device_needs(browser: Browser) -> None:
    async with opened() as (_, console), tab(browser, console.link()) as page:
        await go(page, "office")
        await expect(page.locator(".devices")).to_contain_text("--console HOST:PORT --console-cert FILE")
        await expect(page.get_by_role("button", name="Show a QR code")).to_have_count(0)


# --- the command


def _link(it: Service) -> str:
    match = re.search(r"console at (\S+)", "".join(it.lines))
    assert match, it.lines
    return match[1]


async def test_a_computer_that_was_killed_and_started_again_has_its_page_back_without_a_link(
    browser: Browser, tmp_path: Path, hub: Running, port: int
) -> None:
    config = write(tmp_path / "config.json", server("a", prefixed=False))
    place = ("--config", config, "--url", hub.url, "--office", new_office(), "--name", "pc")
    context = await browser.new_context(locale="en-US")
    with service(*place, "--console", str(port), XDG_STATE_HOME=str(tmp_path)) as it:
        await it.says("is in office")
        page = await _shown(context, _link(it))
        await remember(page).click()
        await expect(page.locator(".offer")).to_have_count(0)
        # What the page says that has no link is right for a command without a prompt.
        stranger = await browser.new_page(locale="en-US")
        await stranger.goto(f"http://127.0.0.1:{port}/")
        await expect(stranger.locator(".over")).to_contain_text(f"kill -USR1 {it.process.pid}")
        await stranger.close()
        it.process.kill()
        it.wait()
    await expect(page.locator(".status")).to_have_class("status gone")
    with service(*place, "--console", "0", XDG_STATE_HOME=str(tmp_path)) as it:
        await it.says("is in office")
        assert f":{port}/" in _link(it)
        await page.wait_for_selector(".status.live")
        await go(page, "tools")
        await expect(page.locator(".group li").first).to_be_visible()
        # So does a page that is opened only now.
        other = await _shown(context, f"http://127.0.0.1:{port}/")
        await go(other, "office")
        await expect(other.locator(".row.device")).to_contain_text("Chrome on Linux")
        assert it.stop() == 0
    await context.close()
