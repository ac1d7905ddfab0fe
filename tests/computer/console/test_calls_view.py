"""Calls in a real browser: none runs for ever, what waits says so, and each one says what became of it and by whom."""

import json
import re
import sys
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, Locator, Page, expect

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import Accepted, Declined
from tests.computer.console.harness import Visitor, as_agent, go, opened, tab
from tests.computer.console.test_looking import CONFIG as PAGE_SERVER
from tests.computer.fakes.computers import asking, server
from tests.computer.fakes.processes import eventually

ASKS: dict[str, Any] = {"default_tool_meta": {}, "prefixed": False}


def rows(page: Page, text: str = "") -> Locator:
    return page.locator(".row.ended", has_text=text)


async def many(computer: Computer, count: int, *, tool: str = "echo", at_once: int = 200, first: int = 0) -> None:
    """So many quick calls, some hundred at a time."""
    for start in range(first, first + count, at_once):
        async with anyio.create_task_group() as tasks:
            for number in range(start, min(start + at_once, first + count)):
                tasks.start_soon(partial(as_agent, computer, tool, 300, text=f"call {number}"))


async def told_all(page: Page, computer: Computer) -> None:
    """Wait until the page shows the call that ended last."""
    await expect(rows(page).first).to_have_attribute("data-key", computer.ended_calls[-1].call.id, timeout=120_000)


async def shown(page: Page) -> int:
    """How many calls the history has, in the document or not."""
    return int(await rows(page).first.get_attribute("aria-setsize") or 0)


# --- ghosts


@pytest.mark.timeout(300)
async def test_after_very_many_quick_calls_nothing_runs_and_the_history_is_that_of_the_computer(
    browser: Browser,
) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), tab(browser, console.link()) as page:
        await many(computer, 1200)
        await expect(page.get_by_text("Nothing runs.")).to_be_visible()
        await told_all(page, computer)
        # What was not told is there when it is asked for, without a gap.
        kept = [ended.call.id for ended in computer.past_calls()]
        assert len(kept) == 1000
        earlier = page.get_by_role("button", name="Load earlier calls")
        while (count := await shown(page)) < len(kept):
            await earlier.click()
            await expect(rows(page).first).not_to_have_attribute("aria-setsize", str(count))
        await expect(earlier).to_have_count(0)
        assert await every_key(page) == kept
        await expect(page.get_by_text("Nothing runs.")).to_be_visible()


async def every_key(page: Page) -> list[str]:
    """The ids of all calls of the history, from the first to the last, as one who scrolls sees them."""
    found: dict[int, str] = {}
    steps = """async top => {
      const main = document.querySelector("main");
      main.scrollTo(0, top);
      for (let turn = 0; turn < 4; turn += 1) await new Promise(resolve => setTimeout(resolve, 20));
      const rows = [...document.querySelectorAll(".row.ended")];
      return [main.scrollHeight, rows.map(row => [Number(row.ariaPosInSet), row.dataset.key])];
    }"""
    top, height = 0, 1
    while top < height:
        height, seen = await page.evaluate(steps, top)
        found.update(seen)
        top += 600
    return [found[at] for at in sorted(found)]


@pytest.mark.timeout(300)
async def test_a_tab_that_joins_in_the_middle_of_it_has_no_ghosts_either(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console):
        context = await browser.new_context(locale="en-US")
        async with AsyncExitStack() as tabs:
            pages = [await tabs.enter_async_context(tab(browser, console.link(), context))]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(many, computer, 600)
                await eventually(lambda: len(computer.ended_calls) > 50)
                pages.append(await tabs.enter_async_context(tab(browser, console.link(), context)))
            for page in pages:
                await told_all(page, computer)
                await expect(page.get_by_text("Nothing runs.")).to_be_visible()
        await context.close()


async def test_a_cancelled_row_goes_when_the_keyboard_has_left_it(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), tab(browser, console.link()) as page:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(as_agent, computer, "sleep", 300, seconds=200))
            cancel = page.get_by_role("button", name="Cancel sleep")
            await expect(cancel).to_be_enabled()
            await page.get_by_role("link", name="Office").focus()
            await page.keyboard.press("Tab")
            await expect(cancel).to_be_focused()
            await page.keyboard.press("Enter")
        await expect(rows(page, "sleep")).to_contain_text("cancelled by this browser")
        await expect(cancel).to_be_focused()
        await page.keyboard.press("Tab")
        await expect(page.get_by_text("Nothing runs.")).to_be_visible()


async def test_the_answer_to_a_call_of_ones_own_is_found_among_thousands_of_others(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), tab(browser, console.link()) as page:
        await go(page, "tools/stats")
        # The page hears nothing while the call runs and hundreds after it, and then only of the last ones.
        await page.route("**/api/feed", lambda route: route.abort())
        await console._app.api.end_streams()  # type: ignore[union-attr]
        await expect(page.locator(".status.gone")).to_have_count(1)
        await page.get_by_role("button", name="Call", exact=True).click()
        await eventually(lambda: any(ended.call.tool == "stats" for ended in computer.past_calls()))
        await many(computer, 300)
        await page.unroute("**/api/feed")
        await expect(page.locator(".answer")).to_contain_text("succeeded")
        await expect(page.locator(".answer")).to_contain_text("pid")


# --- what waits, and how far it is


async def test_a_call_that_waits_for_approval_says_so_also_on_a_page_that_is_opened_later(browser: Browser) -> None:
    async with opened(server("one", **ASKS)) as (computer, console):
        with computer.decisions.attend("terminal"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(as_agent, computer, "sleep", 300, seconds=200))
                await eventually(lambda: bool(computer.decisions.pending))
                async with tab(browser, console.link()) as page:
                    row = page.locator(".row.running", has_text="sleep")
                    await expect(row).to_contain_text("waits for approval")
                    [decision] = computer.decisions.pending
                    computer.decisions.answer(decision.id, Accepted(), by="terminal")
                    await expect(row.get_by_text("waits for approval")).to_have_count(0)
                    await expect(row).not_to_contain_text("waiting for the person")
                tasks.cancel_scope.cancel()


@pytest.mark.parametrize("era", ["old", "new"])
async def test_a_call_whose_tool_asks_the_person_says_so_also_on_a_page_that_is_opened_later(
    browser: Browser, era: str
) -> None:
    config = {**asking(era), "default_tool_meta": {"auto_apply": True}}
    async with opened(config) as (computer, console):
        with computer.decisions.attend("terminal"):
            async with anyio.create_task_group() as tasks:
                schema = {"type": "object", "properties": {"name": {"type": "string"}}}
                tasks.start_soon(partial(as_agent, computer, "ask", 300, message="Who?", schema=schema))
                await eventually(lambda: bool(computer.decisions.pending))
                async with tab(browser, console.link()) as page:
                    row = page.locator(".row.running", has_text="ask")
                    await expect(row).to_contain_text("asks you something")
                    [decision] = computer.decisions.pending
                    computer.decisions.answer(decision.id, Declined(), by="terminal")
                    await expect(page.get_by_text("Nothing runs.")).to_be_visible()


async def test_the_progress_of_a_call_that_began_without_a_page_shows_on_one_that_is_opened_later(
    browser: Browser,
) -> None:
    async with opened(PAGE_SERVER) as (computer, console), anyio.create_task_group() as tasks:
        tasks.start_soon(partial(as_agent, computer, "climb", 300))
        await eventually(lambda: bool(computer.running_calls))
        async with tab(browser, console.link()) as page:
            await expect(page.locator(".row.running", has_text="climb")).to_contain_text("step 3 30 %")
        tasks.cancel_scope.cancel()


# --- what became of it


async def test_each_call_says_what_became_of_it_by_whom_when_and_with_what(browser: Browser) -> None:
    config = {**PAGE_SERVER, "tool_meta": {"write": {"auto_apply": False}}}
    async with opened(config, server("slow")) as (computer, console):
        await as_agent(computer, "write", text="nobody there")
        with computer.decisions.attend("terminal"):
            await as_agent(computer, "write", 0.3, text="too late")
            for text, answer in (("not you", Declined("wrong board")), ("well", Accepted())):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(partial(as_agent, computer, "write", text=text))
                    await eventually(lambda: bool(computer.decisions.pending))
                    computer.decisions.answer(computer.decisions.pending[0].id, answer, by="terminal")
        await as_agent(computer, "forge")
        await as_agent(computer, "fail")
        await as_agent(computer, "slow.sleep", 0.3, seconds=100)
        async with tab(browser, console.link()) as page:
            for text, outcome in (
                ("nobody there", "nobody to ask"),
                ("too late", "nobody answered"),
                ("not you", "refused by the terminal"),
                ("well", "allowed by the terminal"),
            ):
                await expect(rows(page, f'"{text}"')).to_contain_text(outcome)
            await expect(rows(page, '"well"')).to_contain_text("succeeded")
            await expect(rows(page, "forge")).to_contain_text("failed")
            await expect(rows(page, "sleep")).to_contain_text("timed out")
            await expect(rows(page, "allowed")).to_have_count(1)
            refused = rows(page, '"not you"')
            await refused.get_by_role("button").click()
            await expect(refused.locator(".details")).to_contain_text("the person refused: wrong board")
            await expect(refused).not_to_contain_text("allowed")
            when = refused.locator("time")
            year = str(datetime.now().year)
            assert datetime.fromisoformat(await when.get_attribute("datetime") or "").year == int(year)
            assert year in (await when.get_attribute("title") or "")
        async with tab(browser, console.link()) as page:
            # On another day the date is in the row itself.
            await page.clock.set_fixed_time(datetime.now().replace(year=int(year) + 1))
            await go(page, "office")
            await go(page, "calls")
            await expect(rows(page, '"well"').locator("time")).to_contain_text(year)


async def test_a_reason_goes_with_a_no_and_must_be_a_short_text() -> None:
    async with opened(server("one", **ASKS)) as (computer, console), Visitor(console.link()) as visitor:
        await visitor.enter()
        with computer.decisions.attend("terminal"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(as_agent, computer, "echo", text="x"))
                await eventually(lambda: bool(computer.decisions.pending))
                [decision] = computer.decisions.pending
                answer = {"id": decision.id, "digest": decision.digest, "answer": "no"}
                for wrong in (5, None, ["no"], "x" * 1001):
                    assert (await visitor.post("/api/answer", {**answer, "reason": wrong})).status_code == 400
                assert computer.decisions.pending == (decision,)
                sent = await visitor.post("/api/answer", {**answer, "reason": "wrong\x1b folder"})
                assert sent.status_code == 200
        meta = computer.ended_calls[-1].result["meta"]
        assert meta == {"error_code": 4005, "outcome": "refused", "reason": r"wrong\u001b folder"}


# --- search, filters, export


async def test_what_is_searched_is_found_in_all_that_is_kept(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), tab(browser, console.link()) as page:
        await as_agent(computer, "echo", text='the "needle" of old')
        await many(computer, 700)
        await page.reload()
        await page.wait_for_selector(".status.live")
        search = page.get_by_role("searchbox", name="Search calls")
        for words in ("needle OLD", 'echo "needle"', "the PLANNER of needle one"):
            await search.fill(words)
            await expect(rows(page)).to_have_count(1)
            await expect(rows(page)).to_contain_text("of old")
        await search.fill("haystack")
        await expect(page.get_by_text("No call matches.")).to_be_visible()
        # One that ends meanwhile comes in by itself.
        await as_agent(computer, "echo", text="a haystack")
        await expect(rows(page)).to_contain_text("a haystack")
        await search.fill("call")
        await expect(rows(page).first).to_have_attribute("aria-setsize", "100")
        await page.get_by_role("button", name="Load earlier calls").click()
        await expect(rows(page).first).to_have_attribute("aria-setsize", "200")
        await search.fill("")
        await expect(rows(page).first).to_contain_text("a haystack")


async def test_calls_are_filtered_by_outcome_and_by_who_decided(browser: Browser) -> None:
    config = {**PAGE_SERVER, "tool_meta": {"write": {"auto_apply": False}}}
    async with opened(config) as (computer, console), tab(browser, console.link()) as page:
        await as_agent(computer, "fail")
        await as_agent(computer, "picture")
        here = await page.evaluate("sessionStorage.getItem('a2c-device')")
        for answer in (Accepted(), Declined()):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(as_agent, computer, "write", text="x"))
                await eventually(lambda: bool(computer.decisions.pending))
                computer.decisions.answer(computer.decisions.pending[0].id, answer, by=here)
        await expect(rows(page)).to_have_count(4)
        outcome = page.get_by_role("combobox", name="Outcome")
        await outcome.select_option("refused")
        await expect(rows(page)).to_have_count(1)
        await expect(rows(page)).to_contain_text("refused by this browser")
        await outcome.select_option("failed")
        await expect(rows(page)).to_have_count(1)
        await expect(rows(page)).to_contain_text("fail")
        await outcome.select_option("all outcomes")
        await page.get_by_role("checkbox", name="Decided by a person").check()
        await expect(rows(page)).to_have_count(2)
        await expect(rows(page, "write")).to_have_count(2)


async def test_all_that_matches_is_exported_whole(browser: Browser, tmp_path: Path) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), tab(browser, console.link()) as page:
        long = "x" * 5000
        await as_agent(computer, "echo", text=long, big=123456789012345678901234567890)
        await many(computer, 300)
        await told_all(page, computer)
        await expect(page.get_by_text("may hold secrets of others")).to_be_visible()
        for words, count in (("", 301), ("xxxx", 1)):
            await page.get_by_role("searchbox", name="Search calls").fill(words)
            async with page.expect_download() as downloading:
                await page.get_by_role("button", name="Export").click()
            download = await downloading.value
            assert re.fullmatch(r"a2c-calls-\d{4}-\d\d-\d\d\.jsonl", download.suggested_filename)
            file = tmp_path / f"{count}.jsonl"
            await download.save_as(file)
            lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
            assert len(lines) == count
            oldest = lines[-1]
            assert oldest["arguments"] == {"text": long, "big": 123456789012345678901234567890}
            assert oldest["result"]["content"] == [{"type": "text", "text": long}]
            assert (oldest["agent"], oldest["server"], oldest["outcome"]) == ("planner", "one", "succeeded")
            assert datetime.fromisoformat(oldest["started_at"]).tzinfo is not None


async def test_impossible_searches_and_too_many_exports_are_refused() -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), Visitor(console.link()) as visitor:
        assert (await visitor.get("/api/history")).status_code == 401
        assert (await visitor.get("/api/export")).status_code == 401
        await visitor.enter()
        for query in ("outcome=great", "person=yes", f"q={'x' * 201}"):
            assert (await visitor.get(f"/api/history?{query}")).status_code == 400
            assert (await visitor.get(f"/api/export?{query}")).status_code == 400
        await many(computer, 150)
        first = (await visitor.get("/api/history")).json()
        assert first["more"] and len(first["calls"]) == 100
        rest = (await visitor.get(f"/api/history?before={first['calls'][-1]['id']}")).json()
        assert not rest["more"] and len(rest["calls"]) == 50
        assert (await visitor.get("/api/history?before=unknown")).json() == {"calls": [], "more": False}
        found = (await visitor.get("/api/history?req_id=nobodys")).json()
        assert found == {"calls": [], "more": False}
        exports: set[Any] = console._app.api.calls.exports  # type: ignore[union-attr]
        exports.update((1, 2))
        assert (await visitor.get("/api/export")).status_code == 429
        exports.clear()


# --- thousands


@pytest.mark.timeout(300)
async def test_five_thousand_calls_take_no_more_of_the_page_than_half_of_them(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), tab(browser, console.link()) as page:
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("Performance.enable")

        async def weighed(until: int) -> tuple[int, float]:
            # A tool that is not there: the calls are real, and quick.
            await many(computer, 2_500, tool="nothing", at_once=500, first=until - 2_500)
            await told_all(page, computer)
            await devtools.send("HeapProfiler.collectGarbage")
            metrics = (await devtools.send("Performance.getMetrics"))["metrics"]
            heap = next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize")
            return await page.evaluate("document.querySelectorAll('*').length"), heap

        _, heap = await weighed(2_500)
        nodes, later = await weighed(5_000)
        await expect(page.get_by_text("Nothing runs.")).to_be_visible()
        assert nodes < 2000
        assert later - heap < 2 * 2**20, f"{heap} bytes, then {later}"
        assert later < 64 * 2**20


@pytest.mark.timeout(300)
async def test_of_very_many_that_run_only_those_in_sight_are_drawn(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), tab(browser, console.link()) as page:
        async with anyio.create_task_group() as tasks:
            for number in range(1500):
                tasks.start_soon(partial(as_agent, computer, "sleep", 600, seconds=500, number=number))
            running = page.locator(".row.running")
            await expect(running.first).to_have_attribute("aria-setsize", "1500", timeout=120_000)
            assert await running.count() < 60
            await page.evaluate("document.querySelector('main').scrollTo(0, 100000)")
            await expect(page.locator(".row.running[aria-posinset='1300']").or_(running.nth(2))).not_to_have_count(0)
            assert await running.count() < 60
            tasks.cancel_scope.cancel()
        await expect(page.get_by_text("Nothing runs.")).to_be_visible(timeout=120_000)


async def test_of_fifteen_hundred_tools_those_in_sight_are_drawn_and_all_are_reached(browser: Browser) -> None:
    config = {
        "name": "many",
        "type": "stdio",
        "server_parameters": {"command": sys.executable, "args": ["-m", "tests.computer.console.many_tools", "1500"]},
    }
    async with opened(config) as (computer, console), tab(browser, console.link()) as page:
        assert len(computer.get_available_tools()) == 1500
        await go(page, "tools")
        links = page.locator(".group li")
        await expect(links.first).to_have_attribute("aria-setsize", "1500")
        assert await page.evaluate("document.querySelectorAll('*').length") < 1000
        await page.evaluate("document.querySelector('.tools .index').scrollTo(0, 40000)")
        await expect(page.get_by_role("link", name="tool_0720")).to_be_visible()
        # With the keyboard, too: from the last one backwards.
        await page.get_by_role("link", name="tool_1499").focus()
        await expect(page.get_by_role("link", name="tool_1499")).to_be_in_viewport()
        await expect(page.get_by_role("link", name="tool_1498")).to_have_count(1)
        await page.keyboard.press("Shift+Tab")
        await expect(page.get_by_role("link", name="tool_1498")).to_be_focused()
        await page.get_by_role("searchbox", name="Filter tools").fill("tool_0042")
        await expect(links).to_have_count(1)


async def test_the_focus_is_not_lost_when_its_row_is_scrolled_away_and_an_open_row_stays_open(
    browser: Browser,
) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), tab(browser, console.link()) as page:
        await many(computer, 400, at_once=50)
        await told_all(page, computer)
        sixth = page.locator(".row.ended[aria-posinset='6']")
        key = await sixth.get_attribute("data-key")
        await sixth.get_by_role("button").focus()
        await page.keyboard.press("Enter")
        await expect(sixth.locator(".details")).to_be_visible()
        focused = "document.activeElement.closest('.row')?.dataset.key"
        for top in (5_000, 20_000, 0):
            await page.evaluate("top => document.querySelector('main').scrollTo(0, top)", top)
            await page.wait_for_function(_FILLED)
            assert await page.evaluate(focused) == key
        await expect(sixth.locator(".details")).to_be_visible()
        # Out of sight and without the focus it is taken out; it comes back as it was.
        await page.evaluate("document.activeElement.blur()")
        await page.evaluate("document.querySelector('main').scrollTo(0, 12000)")
        await expect(page.locator(f".row[data-key='{key}']")).to_have_count(0)
        await page.evaluate("document.querySelector('main').scrollTo(0, 0)")
        await expect(sixth.locator(".details")).to_be_visible()


#: Whether rows fill the window, but for what is around them.
_FILLED = """() => {
  const boxes = [...document.querySelectorAll(".row.ended")].map(row => row.getBoundingClientRect());
  const seen = boxes.map(box => Math.min(box.bottom, innerHeight) - Math.max(box.top, 60));
  return seen.reduce((sum, height) => sum + Math.max(0, height), 0) > 400;
}"""


async def test_what_is_read_far_down_stays_where_it_is_when_other_calls_end(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), tab(browser, console.link()) as page:
        await many(computer, 90, at_once=30)
        await expect(rows(page).first).to_have_attribute("aria-setsize", "90")
        await page.evaluate("document.querySelector('main').scrollTo(0, 3000)")
        await page.wait_for_function(_FILLED)
        key, before = await page.evaluate(_IN_THE_MIDDLE)
        await many(computer, 40, at_once=20)
        await expect(rows(page).first).to_have_attribute("aria-setsize", "130")
        place = "key => document.querySelector(`[data-key='${key}']`).getBoundingClientRect().top"
        await page.wait_for_function(_FILLED)
        assert abs(await page.evaluate(place, key) - before) < 3


_IN_THE_MIDDLE = """() => {
  const rows = [...document.querySelectorAll(".row.ended")];
  const row = rows.find(each => each.getBoundingClientRect().top > 400);
  return [row.dataset.key, row.getBoundingClientRect().top];
}"""


async def test_the_history_stands_still_while_the_pointer_is_in_it(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), tab(browser, console.link()) as page:
        await many(computer, 50)
        third = page.locator(".row.ended[aria-posinset='3']")
        await expect(third).to_have_attribute("aria-setsize", "50")
        key = await third.get_attribute("data-key")
        await third.hover()
        before = await third.bounding_box()
        for number in range(30):  # one by one: many that run at once would push the history away from the pointer
            await as_agent(computer, "echo", text=str(number))
        await expect(page.locator(".news")).to_have_text("30 new")
        assert await third.get_attribute("data-key") == key
        assert await third.bounding_box() == before
        await page.mouse.move(0, 0)
        await expect(rows(page).first).to_have_attribute("aria-setsize", "80")
