"""The stream in a real browser: cut and back, shared by tabs, a thousand events in a second, and many servers."""

import json
from functools import partial
from typing import Any

import anyio
from playwright.async_api import Browser, expect

from a2c_smcp.computer.decisions.book import Declined
from a2c_smcp.computer.watching.events import ServerLogged
from tests.computer.console.harness import Visitor, as_agent, go, opened, tab
from tests.computer.fakes.computers import server


async def test_the_stream_is_cut_and_comes_back_with_what_was_missed(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), tab(browser, console.link()) as page:
        await page.context.set_offline(True)
        await _cut(console)
        await expect(page.locator(".banner[data-shown]")).to_contain_text("does not answer")
        await as_agent(computer, "echo", text="missed")
        await expect(page.locator(".row.ended")).to_have_count(0)
        await page.context.set_offline(False)
        await expect(page.locator(".row.ended")).to_contain_text("echo")
        await expect(page.locator(".banner[data-shown]")).to_have_count(0)


async def _cut(console: Any) -> None:
    """End the streams as a network does that goes away: the page is not asked."""
    await console._app.api.end_streams()


async def _forget_everybody(console: Any) -> None:
    """As a computer does that was started again on the same port."""
    console._app._visitors._sessions.clear()
    await _cut(console)


async def test_a_decision_made_while_the_page_was_away_is_not_pending_any_more(browser: Browser) -> None:
    config = server("one", prefixed=False, default_tool_meta={})
    async with opened(config) as (computer, console), tab(browser, console.link()) as page:
        with computer.decisions.attend("terminal"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(as_agent, computer, "stats")
                allow = page.locator("aside [data-answer=yes]")
                await expect(allow).to_be_enabled()
                await page.locator("aside .decision h3").hover()  # else what is decided goes after four seconds
                await page.context.set_offline(True)
                await _cut(console)
                await expect(allow).to_be_disabled()  # what is shown may be old
                await expect(page.locator(".banner[data-shown]")).to_have_count(1)
                computer.decisions.answer(computer.decisions.pending[0].id, Declined(), by="terminal")
                await page.context.set_offline(False)
                await expect(page.locator("aside .outcome")).to_have_text("Decided elsewhere")


async def test_tabs_share_one_stream_and_another_takes_over_when_the_first_is_closed(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console):
        context = await browser.new_context(locale="en-US")
        feeds: list[str] = []
        context.on("request", lambda request: feeds.append(request.url) if "/api/feed" in request.url else None)
        async with tab(browser, console.link(), context) as second:
            async with tab(browser, console.link(), context) as first:
                await as_agent(computer, "echo", text="1")
                for page in (first, second):
                    await expect(page.locator(".row.ended")).to_have_count(1)
                assert len(feeds) == 1
            async with tab(browser, console.link(), context) as third:
                await second.close()
                await as_agent(computer, "echo", text="2")
                await expect(third.locator(".row.ended")).to_have_count(2)
                assert len(feeds) == 2
        await context.close()


async def test_without_locks_every_tab_reads_for_itself(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console):
        context = await browser.new_context(locale="en-US")
        await context.add_init_script("Object.defineProperty(Navigator.prototype, 'locks', { value: undefined })")
        async with tab(browser, console.link(), context) as first, tab(browser, console.link(), context) as second:
            await as_agent(computer, "echo", text="1")
            for page in (first, second):
                await expect(page.locator(".row.ended")).to_have_count(1)
        await context.close()


async def test_a_computer_that_was_started_again_closes_the_page_and_a_fresh_link_opens_it(browser: Browser) -> None:
    async with opened() as (_, console), tab(browser, console.link()) as page:
        await _forget_everybody(console)
        await expect(page.locator(".over")).to_contain_text("This page is closed")
        assert await page.evaluate("sessionStorage.getItem('a2c-key')") is None
        await page.goto(console.link())
        await page.wait_for_selector(".status.live")


async def test_a_thousand_events_in_a_second_keep_it_responsive(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), tab(browser, console.link()) as page:
        await page.evaluate(_MEASURE)
        started = anyio.current_time()
        for number in range(10):
            async with anyio.create_task_group() as tasks:
                for each in range(50):
                    tasks.start_soon(partial(as_agent, computer, "echo", text=f"{number}-{each}"))
            for line in range(50):
                computer._events.publish(ServerLogged("one", f"line {line}"))
            await anyio.sleep(max(0, started + 0.1 * (number + 1) - anyio.current_time()))
        await as_agent(computer, "echo", text="last")
        await expect(page.locator(".row.ended").first).to_contain_text("echo")
        assert int(await page.locator(".row.ended").first.get_attribute("aria-setsize") or 0) >= 100
        # Something else is done meanwhile, and the page never stands still for long.
        await go(page, "servers")
        await expect(page.locator(".row.server")).to_have_count(1)
        longest = await page.evaluate("longest")
        # A busy machine may stop the browser itself for seconds.
        assert longest < 15_000, f"the page stood still for {longest} ms"


#: How long the page did nothing else, at most: the longest time between two of its timers.
_MEASURE = """() => {
  globalThis.longest = 0;
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    globalThis.longest = Math.max(globalThis.longest, now - last);
    last = now;
  }, 20);
}"""


async def test_forty_servers_with_four_hundred_tools_are_listed_and_filtered(browser: Browser) -> None:
    servers = [server(f"server-{number:02}", forbidden_tools=_SOME) for number in range(40)]
    async with opened(*servers) as (computer, console), tab(browser, console.link()) as page:
        count = len(computer.get_available_tools())
        assert count >= 400
        await go(page, "servers")
        await expect(page.locator(".row.server")).to_have_count(40)
        await page.get_by_role("searchbox", name="Filter servers").fill("server-3")
        await expect(page.locator(".row.server")).to_have_count(10)
        await go(page, "tools")
        sizes = "[...document.querySelectorAll('.group li:first-child')].map(each => Number(each.ariaSetSize))"
        await expect(page.locator(".group")).to_have_count(40)
        assert sum(await page.evaluate(sizes)) == count
        await page.get_by_role("searchbox", name="Filter tools").fill("server-39.echo")
        await expect(page.locator(".group li")).to_have_count(1)
        await page.get_by_role("link", name="server-39.echo").click()
        await expect(page.locator(".tool h2")).to_have_text("server-39.echo")


_SOME = ["blare", "litter", "shout", "twice", "asks", "chatter", "broken", "drop_listens", "grow", "huge", "leave"]


async def test_what_is_sent_for_a_thousand_events_is_little() -> None:
    async with opened() as (computer, console), Visitor(console.link()) as visitor:
        await visitor.enter()
        async with visitor.feed() as messages:
            number = (await anext(messages))["number"]
            last = number
            for _ in range(1000):
                computer._events.publish(ServerLogged("one", "x" * 1000))
            size = count = 0
            while last < number + 1000:
                message = await anext(messages)
                if message["kind"] == "ping":
                    continue  # nothing was published for so long
                assert message["since"] == last
                last, count, size = message["number"], count + 1, size + len(json.dumps(message))
            assert count < 50 and size < 20_000
