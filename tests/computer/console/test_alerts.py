"""Notifications, a sound, and a key that jumps: how a person learns that a decision waits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
from playwright.async_api import Browser, BrowserContext, Page, expect

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import Declined
from tests.computer.console.harness import DEADLINE, as_agent, go, opened, tab
from tests.computer.fakes.computers import server

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
ASKS = server("one", prefixed=False, default_tool_meta={})

#: A browser without a screen shows no notification and plays no sound: what would be there is counted.
SEEN = """
  window.front = false;
  document.hasFocus = () => window.front;
  window.seen = { notes: [], asked: 0, tones: 0 };
  window.Notification = class {
    static get permission() { return localStorage.getItem("granted") ?? "default"; }
    static async requestPermission() {
      seen.asked += 1;
      localStorage.setItem("granted", "granted");
      return "granted";
    }
    constructor(title, options) {
      Object.assign(this, { title, ...options, open: true });
      seen.notes.push(this);
    }
    close() { this.open = false; this.onclose?.(); }
  };
  const start = OscillatorNode.prototype.start;
  OscillatorNode.prototype.start = function (...at) { seen.tones += 1; return start.apply(this, at); };
"""
NOTES = "seen.notes.map(({ title, body, tag, open }) => ({ title, body, tag, open }))"


@asynccontextmanager
async def one_context(browser: Browser, **options: Any) -> AsyncIterator[BrowserContext]:
    context = await browser.new_context(locale="en-US", **options)
    await context.add_init_script(SEEN)
    try:
        yield context
    finally:
        await context.close()


@asynccontextmanager
async def one_tab(browser: Browser) -> AsyncIterator[tuple[Computer, Page]]:
    async with (
        opened(ASKS) as (computer, console),
        one_context(browser) as context,
        tab(browser, console.link(), context) as page,
    ):
        yield computer, page


@asynccontextmanager
async def two_tabs(browser: Browser) -> AsyncIterator[tuple[Computer, Page, Page]]:
    """Of one browser; the first reads for both."""
    async with (
        opened(ASKS) as (computer, console),
        one_context(browser) as context,
        tab(browser, console.link(), context) as page,
        tab(browser, console.link(), context) as other,
    ):
        yield computer, page, other


async def until(page: Page, expression: str) -> None:
    """Playwright's own way evaluates text in the page, which the page does not allow."""
    with anyio.fail_after(DEADLINE):
        while not await page.evaluate(expression):
            pass


async def switch_on(page: Page, *names: str) -> None:
    await page.locator(".bell").click()
    for name in names:
        await page.locator("#alerts").get_by_label(name).check()
    await page.keyboard.press("Escape")


async def decide(computer: Computer) -> None:
    for decision in computer.decisions.pending:
        computer.decisions.answer(decision.id, Declined(), by="terminal")


async def test_a_decision_notifies_in_one_tab_and_the_click_leads_to_it(browser: Browser) -> None:
    async with two_tabs(browser) as (computer, page, other):
        bell = page.locator(".bell")
        await expect(bell).to_have_accessible_name("Alerts: notifications off, sound off")
        assert await page.evaluate("seen.asked") == 0
        await switch_on(page, "notification")
        await expect(bell).to_have_accessible_name("Alerts: notifications on, sound off")
        await expect(other.locator(".bell")).to_have_accessible_name("Alerts: notifications on, sound off")
        assert await page.evaluate("seen.asked") == 1
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(as_agent, computer, "echo")
            await until(page, "seen.notes.length")
            (note,) = await page.evaluate(NOTES)
            assert note["body"] == "planner (as it calls itself) asks to run echo on one"
            assert note["tag"] == computer.decisions.pending[0].id and note["open"]
            await expect(other.locator("aside .decision")).to_have_count(1)
            assert await other.evaluate("seen.notes.length") == 0
            await page.evaluate("seen.notes[0].onclick()")
            await expect(page.locator("aside .decision")).to_be_focused()
            await decide(computer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(as_agent, computer, "stats")
            await until(page, "seen.notes.length == 2")
            await decide(computer)
        await until(page, "seen.notes.every(note => !note.open)")


#: Waits until a decision that is drawn was thought about: effects run after the frame, and then ask for the locks.
ALERTED = """async () => {
  const frame = () => new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)));
  for (let turn = 0; turn < 3; turn += 1) await frame();
  await navigator.locks.query();
}"""


async def test_nothing_is_notified_while_any_tab_is_in_front_and_arguments_never(browser: Browser) -> None:
    async with two_tabs(browser) as (computer, page, other):
        await switch_on(page, "notification")
        await other.evaluate("front = true; dispatchEvent(new Event('focus'))")
        await until(other, "navigator.locks.query().then(({ held }) => held.length == 2)")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(as_agent, computer, "echo")
            await expect(page.locator("aside .decision")).to_have_count(1)
            await page.evaluate(ALERTED)
            await other.evaluate("front = false; dispatchEvent(new Event('blur'))")
            await until(other, "navigator.locks.query().then(({ held }) => held.length == 1)")

            async def secret() -> None:
                await as_agent(computer, "echo", text="s3cret")

            tasks.start_soon(secret)
            await until(page, "seen.notes.length")
            (note,) = await page.evaluate(NOTES)
            assert note["tag"] == computer.decisions.pending[1].id
            assert "s3cret" not in str(note)
            await decide(computer)


async def test_a_decision_sounds_in_one_tab_and_a_flood_of_them_is_no_flood_of_sounds(browser: Browser) -> None:
    async with two_tabs(browser) as (computer, page, other):
        await switch_on(other, "sound")  # and hears what it is like
        assert await other.evaluate("seen.tones") == 2
        await expect(page.locator(".bell")).to_have_accessible_name("Alerts: notifications off, sound on")
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(as_agent, computer, "echo")
                await expect(page.locator("aside .decision")).to_have_count(number + 1)
            await until(page, "seen.tones")
            # Two seconds apart at least, however long this took.
            passed = await page.evaluate("performance.now() / 1000")
            assert await page.evaluate("seen.tones") <= 2 * (1 + passed / 2)
            await decide(computer)
        assert await other.evaluate("seen.tones") == 2


async def test_a_flood_of_decisions_is_no_flood_of_notifications(browser: Browser) -> None:
    async with one_tab(browser) as (computer, page), anyio.create_task_group() as tasks:
        await switch_on(page, "notification", "sound")
        for _ in range(20):
            tasks.start_soon(as_agent, computer, "echo")
        await expect(page.locator("aside .decision")).to_have_count(20)
        await until(page, "seen.notes.length")
        assert await page.evaluate("seen.notes.length") <= 5
        await decide(computer)


async def test_a_question_notifies_with_the_name_of_its_server(browser: Browser) -> None:
    async with one_tab(browser) as (computer, page), anyio.create_task_group() as tasks:
        await switch_on(page, "notification")
        tasks.start_soon(partial(computer.decisions.ask_question, "o\u202ene", "s3cret", schema=FORM))
        await until(page, "seen.notes.length")
        (note,) = await page.evaluate(NOTES)
        assert note["body"] == "A server asks you something: o\\u202ene"
        await decide(computer)


async def test_the_choice_is_kept_and_what_waited_before_the_page_came_is_not_announced(browser: Browser) -> None:
    async with two_tabs(browser) as (computer, page, _):
        await switch_on(page, "notification")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(as_agent, computer, "echo")
            await until(page, "seen.notes.length")
            await page.reload()
            await expect(page.locator("aside .decision")).to_have_count(1)
            await expect(page.locator(".bell")).to_have_accessible_name("Alerts: notifications on, sound off")
            assert await page.evaluate("[seen.notes.length, seen.asked]") == [0, 0]
            await decide(computer)


async def test_where_notifications_cannot_be_the_page_says_so(browser: Browser) -> None:
    async with opened() as (_, console), one_context(browser) as context:
        await context.add_init_script("Object.defineProperty(window, 'isSecureContext', { value: false })")
        async with tab(browser, console.link(), context) as page:
            await page.locator(".bell").click()
            await expect(page.locator("#alerts").get_by_label("notification")).to_be_disabled()
            await expect(page.locator("#alerts")).to_contain_text("https://")


async def test_a_key_jumps_to_the_decision_from_anywhere_and_no_key_decides(browser: Browser) -> None:
    async with opened(ASKS) as (computer, console), tab(browser, console.link()) as page:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(as_agent, computer, "echo")
            waiting = page.locator("header .waiting")
            await expect(waiting).to_have_attribute("title", "F8 jumps to the first decision that waits")
            await go(page, "tools")
            await page.get_by_role("searchbox").focus()
            await page.keyboard.press("F8")
            await expect(page.locator("aside .decision")).to_be_focused()
            await page.keyboard.press("Enter")
            await page.keyboard.press("Space")
            await page.set_viewport_size({"width": 390, "height": 800})
            await page.keyboard.press("Tab")
            await page.evaluate("document.activeElement.blur()")
            await page.keyboard.press("F8")
            await expect(page.locator("main .decision")).to_be_focused()
            await go(page, "finder")
            await page.reload()
            await expect(page.locator(".waiting")).to_contain_text("1")
            await page.keyboard.press("Tab")
            await expect(page.get_by_role("link", name="Skip to what waits for you")).to_be_focused()
            await page.keyboard.press("Enter")
            await expect(page.locator("main .decision")).to_be_focused()
            assert len(computer.decisions.pending) == 1
            await decide(computer)
        await expect(page.get_by_role("link", name="Skip to what waits for you")).to_have_count(0)
