"""Nothing is wider than its place, however long a stranger's words are: in every view, at every width."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import quote

import anyio
import anyio.lowlevel
from playwright.async_api import Browser, Page, expect

from a2c_smcp.computer.asker import ASKER, Asker
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console import Console
from a2c_smcp.computer.decisions.book import Declined
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.computer.watching.events import RestartOffered, ToolInvalid
from a2c_smcp.link.interface import Connected, Disconnected, Joined, Membership
from tests.computer.console.harness import go, opened, tab
from tests.computer.console.long_server import EMOJI, LONG, RTL

WIDTHS = (390, 1024, 1440, 2560)
TOOL = LONG[:120]
NAME = f"{LONG[:200]}-server"
SCHEMA = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "string", "title": LONG, "description": LONG},
        "b": {"enum": [LONG, RTL], "title": RTL},
        "c": {"type": "array", "items": {"enum": [LONG, EMOJI]}, "title": EMOJI},
    },
}

#: Texts that stick out of their box, or out of the window, without being cut with an ellipsis or scrolled to.
STICKS_OUT = """() => {
  const found = [];
  const [root, main] = [document.documentElement, document.querySelector("main")];
  for (const each of [root, main]) {
    const [wanted, width] = [each.scrollWidth, each.clientWidth];
    if (wanted > width) found.push(`${each.tagName} is ${wanted} wide, not ${width}`);
  }
  const boxes = ".card, .row, .notice, .chip, .problem, .reason, .window, .call, main, aside, header, nav, button";
  const unseen = ".visually-hidden, .skip, noscript, option";
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    const holder = text.parentElement;
    if (!text.data.trim() || holder.closest(unseen) || !holder.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const [left, right] = [...range.getClientRects()].reduce(
      ([least, most], box) => (box.width ? [Math.min(least, box.left), Math.max(most, box.right)] : [least, most]),
      [Infinity, -Infinity],
    );
    const is_broken = holder.closest(".status, .waiting, .avatar") && range.getClientRects().length > 1;
    if (is_broken) found.push(`${text.data} is broken`);
    let box = holder;
    for (; box && box !== document.body; box = box.parentElement) {
      const style = getComputedStyle(box);
      if (style.textOverflow === "ellipsis" || ["auto", "scroll"].includes(style.overflowX) && box !== main) break;
      if (!box.matches(boxes)) continue;
      const around = box.getBoundingClientRect();
      if (left < around.left - 1 || right > around.right + 1) {
        const [from, to] = [left, right].map(Math.round);
        found.push(`${holder.outerHTML.slice(0, 120)} (${from} to ${to}) sticks out of ${box.outerHTML.slice(0, 60)}`);
        break;
      }
    }
  }
  return found;
}"""


@asynccontextmanager
async def flooded() -> AsyncIterator[tuple[Computer, Console, str]]:
    """A computer where everything that others name is long; and the quoted URI of a document."""
    config = {
        "name": NAME,
        "type": "stdio",
        "server_parameters": {"command": sys.executable, "args": ["-m", "tests.computer.console.long_server"]},
    }
    broken = {"name": f"{RTL}-broken", "type": "stdio", "server_parameters": {"command": f"/{LONG[:200]}", "args": []}}
    inputs = [parse_input({"id": LONG[:100], "type": "pickString", "description": LONG, "options": [LONG, RTL]})]
    async with opened(config, broken, inputs=inputs) as (computer, console), anyio.create_task_group() as tasks:
        computer.name = LONG[:64]
        url = f"https://{LONG[:60]}.example/{LONG}"
        computer.office_heard("1", url, Connected(url))
        computer.office_heard("1", url, Joined(Membership("computer", LONG[:64], LONG[:100]), again=False))
        computer.office_heard("2", url, Disconnected(LONG, final=False))
        with anyio.fail_after(60):
            while not (found := (await computer.get_finder())[0]):
                await anyio.lowlevel.checkpoint()
        with computer.decisions.attend("terminal"):
            tasks.start_soon(_asked, computer)
            tasks.start_soon(computer.decisions.ask_input, *(computer.inputs.definitions[LONG[:100]], (NAME, LONG)))
            ask = computer.decisions.ask_question
            tasks.start_soon(partial(ask, NAME, f"{LONG}\n{RTL}{EMOJI}", schema=SCHEMA))
            tasks.start_soon(partial(ask, NAME, LONG, url=f"https://{LONG}.example/{LONG}"))
            yield computer, console, quote(next(each["uri"] for each in found if each["title"] == LONG), safe="")
            for decision in computer.decisions.pending:
                computer.decisions.answer(decision.id, Declined(), by=LONG)
            tasks.cancel_scope.cancel()


async def _asked(computer: Computer) -> None:
    ASKER.set(Asker(LONG))
    await computer.execute_tool("r", TOOL, {"trip": {LONG: LONG, RTL: EMOJI}}, None)


def _views(document: str) -> dict[str, str]:
    return {
        "decisions": ".decision >> nth=3",
        "calls": ".row.ended",
        "servers": ".row.server >> nth=1",
        f"tools/{TOOL}": "form.call",
        "desktop": ".window >> nth=2",
        "finder": ".documents li >> nth=2",
        f"finder/{document}/0": ".paper",
        "office": "dl.facts >> nth=2",
    }


async def test_no_long_word_is_wider_than_its_place(browser: Browser) -> None:
    found: list[str] = []
    async with flooded() as (computer, console, document), tab(browser, console.link()) as page:
        await computer.execute_tool("q", TOOL, {"trip": {LONG: LONG}}, None, confirmed_by=LONG)
        for event in (RestartOffered(NAME, LONG), ToolInvalid(NAME, LONG, RTL), ToolInvalid(RTL, EMOJI, LONG)):
            computer._events.publish(event)
        await expect(page.locator(".notice")).to_have_count(3)
        for view, ready in _views(document).items():
            await go(page, view)
            await page.wait_for_selector(f"main {ready}")
            await _opened(page, view)
            for width in WIDTHS:
                await page.set_viewport_size({"width": width, "height": 900})
                found += [f"{view[:30]} at {width}: {each}" for each in await page.evaluate(STICKS_OUT)]
            await page.set_viewport_size({"width": 1400, "height": 900})
        # The notices are behind a button: hidden texts are not looked at above.
        await page.locator(".told").click()
        for width in WIDTHS:
            await page.set_viewport_size({"width": width, "height": 900})
            await expect(page.locator(".notice").last).to_be_visible()
            found += [f"notices at {width}: {each}" for each in await page.evaluate(STICKS_OUT)]
            assert await page.locator("#notices").evaluate("each => each.scrollWidth <= each.clientWidth"), width
    assert not found, "\n".join(found[:50])


async def _opened(page: Page, view: str) -> None:
    """What is behind a button is long as well."""
    folded: Any = {
        "calls": ".row.ended button.line",
        "servers": "li [aria-expanded=false]",
        "finder/": "details summary",
    }
    selector = next((each for start, each in folded.items() if view.startswith(start)), None)
    if selector is not None:
        await page.eval_on_selector_all(f"main {selector}", "found => found.forEach((each) => each.click())")
        await expect(page.locator("main .loading")).to_have_count(0)
