"""The page in Chinese has no English of its own, and one of something is one."""

import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, Page, expect

from a2c_smcp.computer.decisions.book import Accepted, Declined
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.watching.events import RestartOffered, ToolInvalid
from tests.computer.console.harness import Visitor, go, opened, tab
from tests.computer.console.scene import VIEWS, scene
from tests.computer.console.test_page import texts
from tests.computer.fakes.computers import server

#: Every text that a person sees or hears: of elements, and of their attributes.
SHOWN = """() => {
  const found = [document.title];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    if (!texts.currentNode.parentElement.closest("noscript")) found.push(texts.currentNode.data);
  }
  for (const each of document.body.querySelectorAll("*")) {
    found.push(...["aria-label", "title", "placeholder", "alt"].map((name) => each.getAttribute(name) ?? ""));
  }
  return [...new Set(found.map((text) => text.trim()).filter(Boolean))];
}"""
#: Names that are the same in every language: of keys, fields, options, and browsers and their systems.
NAMES = {
    *(
        "JSON",
        "F8",
        "URI",
        "https",
        "TOML",
        "alias",
        "tool_prefix",
        "window",
        "console",
        "connect",
        "url",
        "office",
        "NAME",
    ),
    *("cert", "HOST", "PORT", "FILE", "Chrome", "Linux", "macOS", "Windows"),
}
#: What the computer calls things in its messages: data to the page, but never shown as it is.
OURS = {state.value for state in ServerState} | {
    *("accepted", "declined", "dismissed", "unanswered", "withdrawn", "confirmation", "question", "input"),
    *("browser", "terminal", "callback", "inputs", "joined", "connected", "disconnected", "waits"),
}
WORD = re.compile(r"[A-Za-z][A-Za-z_]+")


async def known(visitor: Visitor, document: str) -> set[str]:
    """The words of the data: what servers, agents and files are called, and what they say."""
    async with visitor.feed() as messages:
        data: list[Any] = [await anext(messages)]
    paths = ("tools", "rules", "desktop", "finder", "inputs", f"document?uri={document}", f"page?uri={document}&page=1")
    data += [(await visitor.get(f"/api/{path}")).json() for path in paths]
    return set(WORD.findall(json.dumps(data, ensure_ascii=False))) - OURS


async def test_notices_are_in_the_words_of_the_page(browser: Browser) -> None:
    async with opened() as (computer, console):
        context = await browser.new_context(locale="zh-CN")
        async with tab(browser, console.link(), context) as page:
            computer._events.publish(ToolInvalid("shell", "run", "no schema"))
            computer._events.publish(RestartOffered("shell", "its config was updated"))
            await expect(page.locator(".notice .words")).to_have_text(
                ["shell 的 run 已隐藏，它的定义无效：no schema", "shell 有更改，重启后生效。"]
            )
        await context.close()


async def test_a_walk_through_the_page_in_chinese_meets_no_english(browser: Browser, tmp_path: Path) -> None:
    english, chinese = texts("en"), texts("zh")
    ours = {text for key, text in english.items() if text != chinese[key]}
    wrong: list[str] = []
    async with scene(tmp_path) as (computer, console, document), Visitor(console.link()) as visitor:
        reasons = {status.reason for status in computer.statuses}  # what the operating system said
        await visitor.enter()
        data = await known(visitor, document) | NAMES
        context = await browser.new_context(locale="zh-CN", viewport={"width": 1400, "height": 900})
        async with tab(browser, console.link(), context) as page:
            for name, (place, ready) in VIEWS.items():
                await go(page, place.format(document=document))
                await page.wait_for_selector(f"main {ready}")
                await _unfolded(page, name)
                for text in set(await page.evaluate(SHOWN)) - reasons:
                    words = [word for word in WORD.findall(text) if word not in data]
                    if words or text in ours:
                        wrong.append(f"{name}: {text[:200]!r} {words}")
        await context.close()
    assert wrong == []


async def _unfolded(page: Page, view: str) -> None:
    """What is shown once something is opened is looked at, too."""
    if view == "calls":
        await page.locator(".row.ended button.line").first.click()
        await page.wait_for_selector(".details h3")
    if view == "servers":
        for button in await page.locator("li.server", has_text="calendar").locator("button[aria-expanded]").all():
            await button.click()
        await page.wait_for_selector(".row.server textarea")
        await page.locator("li.input button[aria-expanded]").click()
        await page.wait_for_selector(".row.server .reason")
    if view == "rules":
        await page.locator("[data-open=rule]").click()
        await page.wait_for_selector(".rule-editor .checked li + li")
    if view == "tools":
        await page.locator("form.call .primary").click()
        await page.wait_for_selector("form.call .wrong")


REFUSED = """async ([id, digest]) => {
  const { get, post } = await import("/js/api.js");
  const fetched = window.fetch;
  const said = [];
  const ask = (asked) => asked.catch((error) => said.push(error.message));
  await ask(get("result", { id: "gone" }));
  await ask(post("answer", { id, digest, answer: "yes" }));
  window.fetch = () => Promise.reject(new TypeError("Failed to fetch"));
  await ask(get("tools"));
  window.fetch = fetched;
  return said;
}"""


@pytest.mark.parametrize(
    ("locale", "wanted"),
    [
        ("zh-CN", ["这次调用已不再保留。", "终端没有回答", "计算机没有回应。"]),
        (
            "en-US",
            ["This call is not remembered any more.", "Not answered, by the terminal", "The computer does not answer."],
        ),
    ],
)
async def test_refusals_are_said_in_the_language_of_the_page(browser: Browser, locale: str, wanted: list[str]) -> None:
    context = await browser.new_context(locale=locale)
    async with opened() as (computer, console), tab(browser, console.link(), context) as page:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(computer.decisions.ask_question, "one", "Really?")
            await expect(page.locator("aside .decision")).to_have_count(1)
            (decision,) = computer.decisions.pending
            computer.decisions.answer(decision.id, Declined(), by="terminal")
        assert await page.evaluate(REFUSED, [decision.id, decision.digest]) == wanted
    await context.close()


COUNTED = """async () => {
  const { duration, t } = await import("/js/i18n.js");
  const keys = ["desktop.count", "servers.restarts", "finder.pages"];
  const counts = [1, 2].flatMap((count) => keys.map((key) => t(key, { count })));
  return [...counts, duration(61), duration(0.05), duration(3700)];
}"""


@pytest.mark.parametrize(
    ("locale", "one", "two", "times"),
    [
        (
            "en-US",
            ["1 window", "started again once", "1 page"],
            ["2 windows", "started again 2 times in a row", "2 pages"],
            ["1 min 01 s", "50 ms", "1 h 1 min"],
        ),
        (
            "zh-CN",
            ["1 个窗口", "重启了 1 次", "1 页"],
            ["2 个窗口", "连续重启 2 次", "2 页"],
            ["1 分 01 秒", "50 毫秒", "1 小时 1 分"],
        ),
    ],
)
async def test_one_of_something_is_one(
    browser: Browser, locale: str, one: list[str], two: list[str], times: list[str]
) -> None:
    context = await browser.new_context(locale=locale)
    async with opened(server("one", resources="1")) as (_, console), tab(browser, console.link(), context) as page:
        assert await page.evaluate(COUNTED) == [*one, *two, *times]
        await go(page, "desktop")
        await expect(page.locator("main h2 .muted")).to_have_text(one[0])
    await context.close()


async def test_a_server_that_waits_says_for_what_in_the_language_of_the_page(browser: Browser) -> None:
    waits = server("waits")
    waits["server_parameters"]["env"] = {"K": "${input:key}"}
    inputs = [parse_input({"id": "key", "type": "promptString"})]
    context = await browser.new_context(locale="zh-CN")
    async with (
        opened(waits, inputs=inputs, auto_connect=False) as (computer, console),
        tab(browser, console.link(), context) as page,
    ):
        await go(page, "servers")
        row = page.locator("li.server", has_text="waits")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(computer.start_server, "waits")
            await expect(row).to_contain_text("等待输入“key”")
            (decision,) = computer.decisions.pending
            computer.decisions.answer(decision.id, Accepted("v"), by="terminal")
        await expect(row).not_to_contain_text("key")
    await context.close()
