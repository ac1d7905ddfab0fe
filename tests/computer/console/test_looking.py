"""The views in a real browser: windows, documents, forms, calls, servers; in two languages and on a phone."""

import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console import Console
from tests.computer.console.harness import as_agent, go, opened, press, tab
from tests.computer.console.page_server import MARKUP
from tests.computer.fakes.computers import text

CONFIG: dict[str, Any] = {
    "name": "page",
    "type": "stdio",
    "default_tool_meta": {"auto_apply": True},
    "server_parameters": {"command": sys.executable, "args": ["-m", "tests.computer.console.page_server"]},
}


@pytest.fixture(scope="module")
async def both(anyio_backend: str) -> AsyncIterator[tuple[Computer, Console]]:
    async with opened(CONFIG) as opened_ones:
        yield opened_ones


@pytest.fixture(scope="module")
async def page(browser: Browser, both: tuple[Computer, Console]) -> AsyncIterator[Page]:
    async with tab(browser, both[1].link()) as page:
        yield page


async def test_a_window_changes_under_the_readers_eyes(page: Page, both: tuple[Computer, Console]) -> None:
    await go(page, "desktop")
    window = page.locator(".window", has_text="window://page.test/board")
    await expect(window).to_contain_text("before")
    await as_agent(both[0], "write", text="after & later")
    await expect(window).to_contain_text("after & later")


async def test_a_document_is_found_by_the_name_of_its_file(page: Page, both: tuple[Computer, Console]) -> None:
    """In the page: what agents search in is written in the contract."""
    await go(page, "finder")
    await page.get_by_role("searchbox").fill("BEET.md")
    await page.get_by_role("button", name="Search").click()
    await expect(page.locator(".documents li")).to_have_count(1)
    await expect(page.locator(".documents li")).to_contain_text("The garden")
    await expect(page.locator(".documents .file")).to_have_text("Mein Beet.md")
    assert await both[0].get_finder(["BEET.md"]) == ([], 0)
    await page.get_by_role("searchbox").fill("")
    await page.get_by_role("button", name="Search").click()
    await expect(page.locator(".documents li")).to_have_count(20)
    await expect(page.locator(".documents .file").last).to_contain_text(r"-\u202etxt.exe")


async def test_a_document_is_found_opened_and_read(page: Page) -> None:
    await go(page, "finder")
    await expect(page.locator(".documents li")).to_have_count(20)
    await expect(page.locator(".paging")).to_contain_text("1–20 of 25")
    await page.get_by_role("button", name="Next").click()
    await expect(page.locator(".documents li")).to_have_count(5)
    await page.get_by_role("combobox", name="Type").select_option("txt")
    await expect(page.locator(".paging")).to_contain_text("of 24")
    await page.get_by_role("combobox", name="Type").select_option("all types")
    await page.get_by_role("searchbox").fill("basil")
    await page.get_by_role("button", name="Search").click()
    await expect(page.locator(".documents li")).to_have_count(1)
    await page.get_by_role("link", name="The garden").click()
    paper = page.locator(".paper")
    await expect(paper).to_contain_text("Basil grows here.")
    await expect(paper.locator("em")).to_have_text("here")
    await page.get_by_role("link", name="Harvest").click()
    await expect(paper.locator("td", has_text="basil")).to_be_visible()
    await page.locator("summary", has_text="harvest").click()
    rows = page.locator(".details table tbody tr")
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_have_text("basil3")
    assert await page.title() != "owned" and await page.locator("main img").count() == 0


async def test_a_form_made_from_a_nested_schema_calls_the_tool(page: Page) -> None:
    await go(page, "tools")
    await page.get_by_role("searchbox", name="Filter tools").fill("trip")
    await page.get_by_role("link", name="plan").click()
    form = page.get_by_role("form", name="Call it")
    await form.get_by_role("button", name="Call", exact=True).click()
    await expect(form.locator(".answer")).to_have_count(0)  # a required field is empty
    await form.get_by_label("name").fill("North")
    for number, (city, nights) in enumerate([("Bergen", "3"), ("Bodø", "12")], 1):
        await form.get_by_role("button", name="Add to stops").click()
        stop = form.get_by_role("group", name=f"stops {number}", exact=False)
        await stop.get_by_label("city").fill(city)
        await stop.get_by_label("nights").fill(nights)
    await form.get_by_label("how").select_option("boat")
    await form.get_by_label("urgent").select_option("Yes")
    await form.get_by_role("button", name="Call", exact=True).click()
    stops = '[{"city":"Bergen","nights":3},{"city":"Bodø","nights":12}]'
    wanted = f'{{"name":"North","stops":{stops},"budget":null,"how":"boat"}} True'
    await expect(form.locator(".answer")).to_contain_text(wanted)
    await form.get_by_role("button", name="As JSON").click()
    await form.get_by_role("textbox", name="As JSON").fill('{"trip": {"name": "J", "stops": []}}')
    await form.get_by_role("button", name="Call", exact=True).click()
    await expect(form.locator(".answer")).to_contain_text('{"name":"J","stops":[]')
    await form.get_by_role("textbox", name="As JSON").fill("[1]")
    await form.get_by_role("button", name="Call", exact=True).click()
    await expect(form.get_by_role("alert")).to_contain_text("not a JSON object")


async def test_a_call_that_runs_shows_its_progress_and_is_cancelled(page: Page) -> None:
    await go(page, "tools/climb")
    await page.get_by_role("button", name="Call", exact=True).click()
    await expect(page.locator(".answer")).to_contain_text("step 3 30 %")
    await go(page, "calls")
    running = page.locator(".row.running", has_text="climb")
    await expect(running).to_contain_text("you")
    await press(running.get_by_role("button", name="Cancel climb"))
    ended = page.locator(".row.ended", has_text="climb")
    await expect(ended).to_contain_text("cancelled")


async def test_a_result_shows_its_images_and_what_looks_like_markup_is_text(
    page: Page, both: tuple[Computer, Console]
) -> None:
    await go(page, "calls")
    assert text(await as_agent(both[0], "fail")) == MARKUP
    await as_agent(both[0], "picture", note=MARKUP)
    await page.locator(".row.ended", has_text="picture").get_by_role("button").first.click()
    details = page.get_by_role("group", name="Details of picture")
    image = details.get_by_role("img")
    assert await image.evaluate("each => each.decode().then(() => each.naturalWidth)") == 1
    await expect(details).to_contain_text(MARKUP)
    await page.locator(".row.ended", has_text="fail").get_by_role("button").first.click()
    await expect(page.get_by_role("group", name="Details of fail")).to_contain_text(MARKUP)
    assert await page.title() != "owned"


async def test_a_server_is_stopped_started_and_its_log_is_read(page: Page, both: tuple[Computer, Console]) -> None:
    await go(page, "servers")
    row = page.locator(".row.server")
    await row.get_by_role("button", name="Stop page").click()
    await expect(row).to_contain_text("stopped")
    await row.get_by_role("button", name="Start page").click()
    await expect(row.get_by_role("button", name="Restart page")).to_be_enabled()
    await expect(row).to_contain_text("running")
    await row.get_by_role("button", name="Log of page").click()
    await expect(row).to_contain_text("The log is empty.")
    await go(page, "office")
    await expect(page.locator("main")).to_contain_text("Not connected to a server.")
    await expect(page.locator("main")).to_contain_text("browser")


async def test_the_page_speaks_chinese_and_fits_a_phone(browser: Browser, both: tuple[Computer, Console]) -> None:
    context = await browser.new_context(locale="zh-CN", viewport={"width": 375, "height": 720}, has_touch=True)
    async with tab(browser, both[1].link(), context) as page:
        assert await page.evaluate("document.documentElement.lang") == "zh-CN"
        await expect(page.get_by_role("navigation", name="视图")).to_contain_text("工具")
        for view in ("calls", "servers", "tools", "tools/plan", "desktop", "finder", "office", "decisions"):
            await go(page, view)
            await page.wait_for_timeout(50)
            assert await page.evaluate("document.documentElement.scrollWidth") <= 375, view
    await context.close()


async def test_the_keyboard_reaches_everything_and_shows_where_it_is(page: Page) -> None:
    await go(page, "calls")
    await page.reload()
    await page.wait_for_selector(".status.live")
    await page.keyboard.press("Tab")
    focused = """({
      tag: document.activeElement.tagName,
      text: document.activeElement.textContent.trim(),
      outline: getComputedStyle(document.activeElement).outlineStyle,
    })"""
    assert (await page.evaluate(focused))["text"] == "Skip to the content"
    names = []
    for _ in range(12):
        await page.keyboard.press("Tab")
        found = await page.evaluate(focused)
        if found["tag"] == "BODY":
            break  # past the last one
        names.append(found["text"])
        assert found["outline"] == "solid"
    assert {"Calls", "Servers", "Tools", "Desktop", "Finder", "Office"} <= set(names)
