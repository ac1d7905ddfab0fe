"""A click decides the card that the person saw, whatever moves meanwhile: a real pointer on a disturbed page."""

import os
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup
from playwright.async_api import Browser, Page, expect

from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import Accepted, DecisionAnswer, Declined, ToolDefinition
from a2c_smcp.computer.watching.events import ToolInvalid
from tests.computer.console.harness import one_page, opened, tab
from tests.computer.fakes.processes import eventually

_LONG = "cd /srv/data\ntar czf backup.tgz .\nsha256sum backup.tgz\nls -l\ndf -h\nuptime\ndate"
_FORM = {
    "type": "object",
    "properties": {name: {"type": "string", "title": name} for name in ("City", "Street", "Zip")},
    "required": ["City"],
}


def call(number: int, **arguments: Any) -> WatchedCall:
    return WatchedCall(f"c{number}", "r", "planner", "shell", f"tool{number}", f"tool{number}", arguments, None, 1.0)


async def confirm(computer: Computer, number: int, **arguments: Any) -> None:
    definition = ToolDefinition(description="Runs it.\n" * (number % 3), digest=f"{number:064x}")
    await computer.decisions.ask_confirmation(call(number, **arguments), definition)


async def ask(computer: Computer, message: str) -> None:
    await computer.decisions.ask_question("shell", message, schema=_FORM)


def notices(computer: Computer, count: int = 14) -> None:
    """As when an MCP server lists so many invalid tools with long names."""
    for number in range(count):
        computer._events.publish(ToolInvalid("shell", f"tool-{number}-" + "x" * 180, "its schema is no object"))


def calls(computer: Computer) -> list[str]:
    """The calls that wait."""
    return [each.call.id for each in computer.decisions.pending if each.call is not None]


async def waiting(page: Page, count: int) -> None:
    await expect(page.locator(".decision:not([data-decided])")).to_have_count(count)


async def centre(page: Page, number: int) -> tuple[float, float]:
    """The middle of Allow on the card of this call, once it listens."""
    allow = page.locator(".decision:not([data-decided])", has_text=f"tool{number}").locator("[data-answer=yes]")
    await allow.scroll_into_view_if_needed()
    await expect(allow).to_be_enabled()
    box = await allow.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def test_fourteen_notices_move_nothing_and_the_click_decides_what_it_points_at(browser: Browser) -> None:
    size = {"width": 1440, "height": 900}
    async with opened() as (computer, console), tab(browser, console.link(), viewport=size) as page:
        await page.evaluate("location.hash = '#/decisions'")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(confirm, computer, 1, path="~"))
            await waiting(page, 1)
            tasks.start_soon(partial(confirm, computer, 2, script=_LONG))
            await waiting(page, 2)
            place = await centre(page, 2)
            await page.mouse.move(*place)
            notices(computer)
            await expect(page.locator(".told .count")).to_have_text("5")
            assert await centre(page, 2) == place
            await page.mouse.click(*place)
            await eventually(lambda: calls(computer) == ["c1"])
            # At 390 pixels too, once the decided card is put away: that one does move what is below.
            await page.mouse.move(0, 0)
            await expect(page.locator(".decision")).to_have_count(1)
            await page.set_viewport_size({"width": 390, "height": 780})
            place = await centre(page, 1)
            notices(computer, 3)
            assert await centre(page, 1) == place
            tasks.cancel_scope.cancel()


async def test_a_question_that_is_withdrawn_keeps_its_place_while_the_pointer_is_at_the_cards(browser: Browser) -> None:
    size = {"width": 2560, "height": 1300}
    async with one_page(browser, viewport=size) as (computer, page, tasks):
        tasks.start_soon(ask, computer, "Where to?")
        await waiting(page, 1)
        for number in (2, 3):
            tasks.start_soon(partial(confirm, computer, number, path="~"))
            await waiting(page, number)
        place = await centre(page, 2)
        await page.mouse.move(*place)
        computer.decisions.withdraw(computer.decisions.pending[0].id)
        await expect(page.locator(".outcome")).to_have_text("Not needed any more")
        assert await centre(page, 2) == place
        await page.mouse.click(*place)
        await eventually(lambda: calls(computer) == ["c3"])
        # The decided ones shrink once the pointer has left the column, and are put away.
        third = await centre(page, 3)
        await page.mouse.move(400, 400)
        await expect(page.locator(".decision")).to_have_count(1)
        assert (await centre(page, 3))[1] < third[1] - 200
        tasks.cancel_scope.cancel()


async def test_what_moved_by_a_pixel_takes_no_click_for_half_a_second_not_even_in_the_same_frame(
    browser: Browser,
) -> None:
    async with one_page(browser) as (computer, page, tasks):
        tasks.start_soon(partial(confirm, computer, 1, path="~"))
        await waiting(page, 1)
        place = await centre(page, 1)
        await page.mouse.move(*place)
        # The layout changes after the last frame, and the click comes before the next one.
        await page.evaluate(_MOVES_IN_THE_PRESS)
        await page.mouse.click(*place)
        assert await page.evaluate("document.querySelector('aside').style.paddingTop") == "26px"
        assert len(computer.decisions.pending) == 1
        await page.mouse.click(*await centre(page, 1))
        await eventually(lambda: not computer.decisions.pending)


_MOVES_IN_THE_PRESS = """() => addEventListener(
  "click", () => { document.querySelector("aside").style.paddingTop = "26px"; }, { capture: true, once: true },
)"""


async def test_a_key_answers_the_card_that_has_the_focus_wherever_it_is_by_now(browser: Browser) -> None:
    async with one_page(browser) as (computer, page, tasks):
        for number in (1, 2):
            tasks.start_soon(partial(confirm, computer, number, path="~"))
            await waiting(page, number)
        await centre(page, 2)
        refuse = page.locator(".decision", has_text="tool2").locator("[data-answer=no]")
        await refuse.focus()
        assert (
            await refuse.get_attribute("aria-label") == "Refuse tool2 on shell, asked by planner (as it calls itself)"
        )
        await page.evaluate("document.querySelector('aside').style.paddingTop = '90px'")
        await page.keyboard.press("Enter")
        await eventually(lambda: calls(computer) == ["c1"])
        # Nobody is thrown off the card, and the key does not go to the next one.
        await page.keyboard.press("Enter")
        await page.keyboard.press("Enter")
        assert len(computer.decisions.pending) == 1
        assert await page.evaluate("document.activeElement.closest('[data-decision]') !== null")
        tasks.cancel_scope.cancel()


async def test_a_long_press_that_began_when_the_button_had_just_moved_decides_nothing(browser: Browser) -> None:
    async with one_page(browser) as (computer, page, tasks):
        tasks.start_soon(partial(confirm, computer, 1, path="~"))
        await waiting(page, 1)
        place = await centre(page, 1)
        await page.evaluate(_RECORD)
        await page.mouse.move(*place)
        # It moves just before the finger goes down, and listens again before the finger goes up.
        await page.evaluate(_MOVES_IN_THE_PRESS.replace("click", "pointerdown"))
        await page.mouse.down()
        await anyio.sleep(0.8)
        await expect(page.locator(".decision [data-answer=yes]")).to_be_enabled()
        await page.mouse.up()
        assert await page.evaluate("globalThis.answers") == []
        await page.mouse.click(*await centre(page, 1))
        await eventually(lambda: not computer.decisions.pending)


async def test_a_click_beside_or_under_the_notices_puts_them_away_and_decides_nothing(browser: Browser) -> None:
    async with one_page(browser) as (computer, page, tasks):
        tasks.start_soon(partial(confirm, computer, 1, path="~"))
        await waiting(page, 1)
        place = await centre(page, 1)
        notices(computer)
        await expect(page.locator(".told .count")).to_have_text("5")
        await page.locator(".told").click()
        covers = "([x, y]) => document.elementFromPoint(x, y).closest('#notices') !== null"
        assert await page.evaluate(covers, place)
        for left in range(4, -1, -1):
            await page.locator(".notice button").first.click()
            await expect(page.locator(".notice")).to_have_count(left)
        # The list is short now, and no longer lies over Allow, where the pointer may be with the next click.
        assert not await page.evaluate(covers, place)
        await expect(page.locator("[data-answer=yes]")).to_be_enabled()
        await page.mouse.click(*place)
        await expect(page.locator("#notices")).to_be_hidden()
        assert len(computer.decisions.pending) == 1
        tasks.cancel_scope.cancel()


async def test_a_bar_of_the_browser_that_moves_the_whole_page_makes_its_buttons_wait(browser: Browser) -> None:
    async with one_page(browser) as (computer, page, tasks):
        tasks.start_soon(partial(confirm, computer, 1, path="~"))
        await waiting(page, 1)
        place = await centre(page, 1)
        await page.evaluate(_COUNTS_DEAF)
        await page.set_viewport_size({"width": 1400, "height": 860})
        assert await centre(page, 1) == place
        assert await page.evaluate("globalThis.deaf") > 0
        tasks.cancel_scope.cancel()


_COUNTS_DEAF = """() => {
  const allow = document.querySelector("[data-answer=yes]");
  globalThis.deaf = 0;
  const count = () => { globalThis.deaf += allow.ariaDisabled === "true"; };
  new MutationObserver(count).observe(allow, { attributes: true });
}"""


# --- many clicks

_PAGES = 3
#: `make test-hard` clicks twice as often as `make test`: the clicks take a browser half a minute of CPU.
_CLICKS = 50 if "A2C_HARD" in os.environ else 25
_CERTAIN = 6

#: Notes in each frame which card is under the pointer, and for each answer which one was there 300 ms before its click.
_RECORD = """() => {
  globalThis.answers = [];
  globalThis.risky = 0;
  const seen = [];
  let pointer = [0, 0], last = null;
  const under = () => document.elementFromPoint(...pointer)?.closest("[data-decision]")?.dataset.decision ?? null;
  const cards = () => [...document.querySelectorAll("[data-decision]")].map(
    card => [card.dataset.decision, card.getBoundingClientRect()]);
  // A person may point at a card and press at once: then it counts which card was at this place, pointer or not.
  const at = ([, decision, there, boxes], [x, y]) => there[0] === x && there[1] === y ? decision :
    boxes.find(([, box]) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom)?.[0] ?? null;
  const note = () => {
    seen.push([performance.now(), under(), pointer, cards()]);
    if (seen.length > 2000) seen.splice(0, 1000);
    requestAnimationFrame(note);
  };
  requestAnimationFrame(note);
  addEventListener("mousemove", event => { pointer = [event.clientX, event.clientY]; }, true);
  addEventListener("click", event => {
    const pressed = event.target.closest?.("[data-answer]")?.closest("[data-decision]")?.dataset.decision ?? null;
    const then = seen.findLast(([when]) => when <= event.timeStamp - 300);
    const before = then ? at(then, [event.clientX, event.clientY]) : null;
    if (pressed !== null && pressed !== before) globalThis.risky += 1;
    last = before;
  }, true);
  const fetched = window.fetch;
  window.fetch = (path, options) => {
    if (path === "/api/answer") globalThis.answers.push([JSON.parse(options.body).id, last]);
    return fetched(path, options);
  };
}"""


class _Disturbed:
    """A page with cards, and all that may happen to it."""

    def __init__(self, computer: Computer, page: Page, tasks: TaskGroup, chance: random.Random) -> None:
        self._computer, self._page, self._tasks, self._chance = computer, page, tasks, chance
        self._number = 0

    async def keep_busy(self) -> None:
        """Some cards wait at any time."""
        while len(self._computer.decisions.pending) < 4:
            await self._arrival()

    async def happen(self) -> None:
        kinds: list[Callable[[], Awaitable[None]]] = [
            self._arrival,
            self._question,
            self._withdrawal,
            self._withdrawal,
            self._other_answer,
            self._notices,
            self._resize,
            self._font,
            *[self._shift] * 5,
            self._leave,
        ]
        await self._chance.choice(kinds)()

    async def _arrival(self) -> None:
        self._number += 1
        script = "\n".join(_LONG.split("\n")[: self._chance.randrange(1, 8)])
        self._tasks.start_soon(partial(confirm, self._computer, self._number, script=script))
        await anyio.lowlevel.checkpoint()

    async def _question(self) -> None:
        self._tasks.start_soon(ask, self._computer, "Where to?\n" * self._chance.randrange(1, 4))

    async def _withdrawal(self) -> None:
        if pending := self._computer.decisions.pending:
            self._computer.decisions.withdraw(self._chance.choice(pending).id)

    async def _other_answer(self) -> None:
        if pending := [each for each in self._computer.decisions.pending if each.kind == "confirmation"]:
            answer: DecisionAnswer = Accepted() if self._chance.random() < 0.5 else Declined()
            self._computer.decisions.answer(self._chance.choice(pending).id, answer, by="terminal")

    async def _notices(self) -> None:
        notices(self._computer, self._chance.randrange(1, 6))

    async def _resize(self) -> None:
        width, height = self._chance.choice([(1440, 900), (1360, 860), (1200, 700), (1900, 1000)])
        await self._page.set_viewport_size({"width": width, "height": height})

    async def _shift(self) -> None:
        """The unlucky one: the cards move by just so much that the button of another one is where this one was."""
        await self._page.evaluate(_SHIFT, self._chance.random())

    async def _leave(self) -> None:
        """The pointer leaves the cards, so that decided ones are put together, and comes back for its click."""
        await self._page.mouse.move(10, 10)

    async def _font(self) -> None:
        """What a font does that comes late: other letters, and other boxes."""
        family = self._chance.choice(["serif", "sans-serif", "monospace"])
        size = self._chance.choice(["14px", "15px", "17px"])
        await self._page.evaluate(
            "([family, size]) => { document.body.style.font = `${size} ${family}`; }", [family, size]
        )


async def _click_about(browser: Browser, seed: int, outcomes: list[tuple[list[list[str]], int]]) -> None:
    chance = random.Random(seed)
    async with opened() as (computer, console), tab(browser, console.link()) as page:
        if seed % 2:
            await page.evaluate("location.hash = '#/decisions'")
        async with anyio.create_task_group() as tasks:
            disturbed = _Disturbed(computer, page, tasks, chance)
            await page.evaluate(_RECORD)
            for _ in range(_CLICKS):
                await disturbed.keep_busy()
                place = await page.evaluate(_SOME_BUTTON, chance.random())
                await page.mouse.move(*place)
                await anyio.sleep(chance.choice([0.4, 0.45, 0.6, 0.7]))
                for _ in range(chance.choice([0, 0, 1, 1, 2])):
                    await disturbed.happen()
                    await anyio.sleep(chance.choice([0, 0.01, 0.04, 0.12]))
                await page.mouse.click(*place)
            for _ in range(_CERTAIN):
                await disturbed.keep_busy()
                place = await page.evaluate(_SOME_BUTTON, chance.random())
                await page.mouse.move(*place)
                await anyio.sleep(0.7)
                await page.evaluate(_SHIFT_IN_THE_CLICK, chance.random())
                await page.mouse.click(*place)
            outcomes.append((await page.evaluate("answers"), await page.evaluate("risky")))
            tasks.cancel_scope.cancel()


_SHIFT = """chance => {
  const list = document.querySelector(".cards");
  const buttons = [...document.querySelectorAll(".decision [data-answer=yes]")];
  const tops = buttons.map(each => each.getBoundingClientRect().y);
  if (!list || tops.length < 2) return;
  const at = Math.floor(chance * (tops.length - 1));
  list.style.transform = list.style.transform ? "" : `translateY(${tops[at] - tops[at + 1]}px)`;
}"""

#: The same between the movement of the pointer and its press, which no machine is too slow for.
_SHIFT_IN_THE_CLICK = (
    f"chance => addEventListener('mousemove', () => ({_SHIFT})(chance), {{ capture: true, once: true }})"
)

#: The middle of some button that decides, which is scrolled into sight; the top left corner without one.
_SOME_BUTTON = """chance => {
  const found = [...document.querySelectorAll(".decision:not([data-decided]) [data-answer]")];
  const button = found[Math.floor(chance * found.length)];
  button?.scrollIntoView({ block: "center" });
  const box = button?.getBoundingClientRect();
  return box?.width ? [box.x + box.width / 2, box.y + box.height / 2] : [5, 5];
}"""


@pytest.mark.timeout(600)
async def test_of_many_clicks_none_decides_another_card_than_the_one_that_was_under_the_pointer(
    browser: Browser,
) -> None:
    outcomes: list[tuple[list[list[str]], int]] = []
    async with anyio.create_task_group() as tasks:
        for seed in range(_PAGES):
            tasks.start_soon(_click_about, browser, seed, outcomes)
    answers = [answer for answered, _ in outcomes for answer in answered]
    assert [answer for answer in answers if answer[0] != answer[1]] == []
    # Many clicks were meant and were taken; and many would have hit another card.
    assert len(answers) > _PAGES * _CLICKS / 20
    assert sum(risky for _, risky in outcomes) > 0
    print(f"{len(answers)} answers, {sum(risky for _, risky in outcomes)} clicks that would have hit another card")
