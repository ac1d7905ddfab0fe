"""What a person decides on is in sight, and words of strangers look like words of strangers. In a real browser."""

import math
from dataclasses import asdict
from functools import partial
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, Page, expect

from a2c_smcp.computer.asker import ASKER, Asker
from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.decisions.book import Resolution, ToolDefinition
from a2c_smcp.computer.decisions.made_rules import ruled_call
from a2c_smcp.computer.mcp_clients.model import PromptStringInput
from a2c_smcp.computer.rules.proposing import tool_rule
from a2c_smcp.computer.watching.events import ToolInvalid
from tests.computer.console.harness import one_page, opened, press, tab
from tests.computer.fakes.computers import server
from tests.computer.fakes.processes import eventually

_FORM = {"type": "object", "properties": {"city": {"type": "string", "title": "City"}}, "required": ["city"]}


def call(agent: str | None = "planner", tool: str = "run", office: str | None = None, **arguments: Any) -> WatchedCall:
    return WatchedCall("c1", "r", agent, "shell", tool, f"shell_{tool}", arguments, None, 1.0, office)


async def put(results: list[Resolution], asked: Any) -> None:
    results.append(await asked)


def card(page: Page) -> Any:
    return page.locator("aside .decision")


def button(page: Page, answer: str) -> Any:
    return page.locator(f"aside .decision:not([data-decided]) [data-answer={answer}]")


async def test_allow_waits_until_the_end_of_long_arguments_was_seen(browser: Browser) -> None:
    script = "\n".join(f"echo step {number}" for number in range(120)) + "\nrm -rf ~"
    async with one_page(browser) as (computer, page, tasks):
        ask = computer.decisions.ask_confirmation
        tasks.start_soon(ask, call(cwd="/srv", script=script))
        await expect(card(page)).to_contain_text("more lines below")
        await expect(button(page, "no")).to_be_enabled()
        for answer in ("yes", "always"):
            await expect(button(page, answer)).to_be_disabled()
            assert "end first" in await button(page, answer).get_attribute("title")
        await button(page, "yes").click(force=True)
        assert len(computer.decisions.pending) == 1
        box = page.get_by_role("group", name="With exactly these arguments")
        # Real line breaks, a row for each argument, and nothing but the last lines is out of sight.
        assert script in await box.inner_text()
        await box.evaluate("each => each.scrollTo(0, each.scrollHeight)")
        await expect(card(page)).to_contain_text("This is the end of the arguments.")
        await press(button(page, "yes"))
        await expect(card(page).locator(".outcome")).to_have_count(1)
        # Opening it does as well.
        tasks.start_soon(ask, call(script=script))
        await expect(button(page, "yes")).to_be_disabled()
        await page.locator("aside .decision:not([data-decided])").get_by_role("button", name="Show all").click()
        await press(button(page, "yes"))
        await eventually(lambda: not computer.decisions.pending)


async def test_arguments_too_long_for_a_card_are_cut_with_a_count_and_fetched_before_a_yes(browser: Browser) -> None:
    padding = "x" * 150_000
    async with one_page(browser) as (computer, page, tasks):
        asked = call(script=f"{padding}\nrm -rf ~\n", last="seen")
        tasks.start_soon(computer.decisions.ask_confirmation, asked)
        await expect(card(page)).to_contain_text("3 more lines, 100010 characters")
        await expect(card(page)).to_contain_text("last")
        await expect(card(page)).not_to_contain_text("rm -rf ~")
        await page.get_by_role("group", name="With exactly").evaluate("each => each.scrollTo(0, 10 ** 9)")
        await expect(button(page, "no")).to_be_enabled()
        await expect(button(page, "yes")).to_be_disabled()
        await page.get_by_role("button", name="Show all").click()
        await expect(card(page)).to_contain_text("rm -rf ~")
        await press(button(page, "yes"))


async def test_the_card_says_who_asks_from_where_and_what_the_server_says_of_the_tool(browser: Browser) -> None:
    said = ToolDefinition(
        "Runner",
        "Runs a command.\nIn a shell.",
        {"destructiveHint": True, "openWorldHint": True},
        "d",
        is_dangerous=True,
    )
    async with one_page(browser) as (computer, page, tasks):
        tasks.start_soon(computer.decisions.ask_confirmation, call(office="lab", x=1), said)
        for part in ("planner", "lab", "shell", "run", "shell_run", "Runner", "Runs a command.\nIn a shell."):
            await expect(card(page)).to_contain_text(part)
        await expect(card(page)).to_contain_text("says that this tool can destroy things")
        await expect(card(page).locator(".chip.bad")).to_have_text("can destroy things")
        await expect(card(page).locator(".chip.warn")).to_have_text("reaches beyond this computer")
        # Nothing draws the eye to a yes that may do harm.
        await expect(button(page, "yes")).to_be_enabled()
        assert "primary" not in (await button(page, "yes").get_attribute("class") or "")
        assert "run on shell, asked by planner" in await button(page, "yes").get_attribute("aria-label")
        tasks.cancel_scope.cancel()


async def test_a_tool_that_was_always_allowed_and_has_changed_shows_the_difference(browser: Browser) -> None:
    before = ToolDefinition(description="Lists files.", digest="1" * 64, schema_digest="a", schema={"type": "object"})
    after = ToolDefinition(description="Removes files.", digest="2" * 64, schema_digest="b")
    async with one_page(browser) as (computer, page, tasks):
        rules = computer.decisions.rules
        rules.add(tool_rule(ruled_call(call(x=1), before), "r"), seen=asdict(before))
        verdict = rules.likely(ruled_call(call(x=1), after))
        assert verdict is not None and verdict.is_asleep
        tasks.start_soon(partial(computer.decisions.ask_confirmation, call(x=1), after, verdict=verdict))
        warning = card(page).locator(".danger-sign")
        await expect(warning).to_contain_text("A rule allowed this tool. Since then")
        await expect(warning).to_contain_text("description, arguments")
        await expect(warning.locator("del").first).to_have_text("Lists")
        await expect(warning.locator("ins").first).to_have_text("Removes")
        await expect(card(page)).to_contain_text("Removes files.")
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("agent", ["planner (verified)", "pl\u0430nner", "\u202egnilla", "<b>this computer</b>"])
async def test_a_name_cannot_pass_for_the_page_s_own_words(browser: Browser, agent: str) -> None:
    async with one_page(browser) as (computer, page, tasks):
        tasks.start_soon(computer.decisions.ask_confirmation, call(agent, x=1))
        name = card(page).locator("dd .given").first
        await expect(name).to_have_text(agent.replace("\u202e", r"\u202e"))
        assert await name.evaluate("each => getComputedStyle(each).borderStyle") == "dashed"
        mixed = card(page).get_by_text("mixed scripts")
        await expect(mixed).to_have_count(1 if "\u0430" in agent else 0)
        await expect(card(page).locator("mark")).to_have_count(1 if "\u202e" in agent else 0)
        tasks.cancel_scope.cancel()


async def test_a_question_is_framed_as_the_server_s_words_and_hides_nothing(browser: Browser) -> None:
    schema = {
        "type": "object",
        "properties": {
            "file": {"type": "string", "title": "\u202etxt.exe", "description": "a\u200bb"},
            "kind": {"type": "string", "enum": ["\u202eno", "b"]},
            "pw": {"type": "string", "title": "Your password"},
        },
    }
    results: list[Resolution] = []
    async with one_page(browser) as (computer, page, tasks):
        ask = computer.decisions.ask_question
        tasks.start_soon(put, results, ask("shell", "Open \u202etxt.exe?\nThe computer asks.", schema=schema))
        frame = card(page).locator("figure.said")
        await expect(frame).to_contain_text("In the words of the server shell")
        await expect(frame.locator("blockquote")).to_have_text("Open \\u202etxt.exe?\nThe computer asks.")
        await expect(card(page)).to_contain_text("asks for a password")
        await expect(card(page).get_by_label(r"\u202etxt.exe")).to_have_count(1)
        await expect(card(page)).to_contain_text(r"a\u200bb")
        # What is sent back is the value itself, not what is shown of it.
        await card(page).get_by_label("kind").select_option(r"\u202eno")
        await press(button(page, "send"))
        await expect(card(page).locator(".outcome")).to_have_count(1)
        assert results[0].value == {"kind": "\u202eno"}

        tasks.start_soon(put, results, ask("shell", "Log in", url="https://bank.example\\@evil.example/path?q"))
        place = page.locator("aside .decision:not([data-decided])")
        await expect(place.locator(".host")).to_have_text("bank.example")
        await expect(place).not_to_contain_text("asks for a password")
        await press(button(page, "no"))
        await expect(place).to_have_count(0)
        tasks.start_soon(put, results, ask("shell", "Log in", url="https://bank.example@evil.example/path?q"))
        await expect(place.locator(".host")).to_have_text("evil.example")
        await expect(place).to_contain_text("before the “@”")
        tasks.cancel_scope.cancel()


async def test_a_reason_goes_with_the_refusal_and_always_says_its_reach_and_is_undone_on_the_card(
    browser: Browser,
) -> None:
    results: list[Resolution] = []
    async with one_page(browser) as (computer, page, tasks):
        tasks.start_soon(put, results, computer.decisions.ask_confirmation(call(x=1)))
        await expect(page.locator("aside #about-rules")).to_contain_text(
            "is for every agent and any arguments, as long as"
        )
        await page.get_by_label("Reason for a refusal").fill("not in production")
        async with page.expect_request("**/api/answer") as asked:
            await press(button(page, "no"))
        assert '"reason":"not in production"' in ((await asked.value).post_data or "")
        await expect(card(page).locator(".outcome")).to_have_count(1)
        tasks.start_soon(put, results, computer.decisions.ask_confirmation(call(x=1)))
        await press(button(page, "always"))
        await eventually(lambda: len(computer.decisions.rules.list.all) == 1)
        await press(page.locator("[data-answer=undo]"))
        await eventually(lambda: computer.decisions.rules.list.all == ())
        await expect(card(page).last).to_contain_text("The rule for run is undone.")


async def test_a_flood_is_refused_at_once_but_what_came_after_the_click_is_not(browser: Browser) -> None:
    results: list[Resolution] = []
    async with one_page(browser) as (computer, page, tasks):
        ask = computer.decisions.ask_confirmation
        for number in range(40):
            tasks.start_soon(put, results, ask(call(x=number)))
        await expect(page.locator("aside .count").first).to_have_text("40")
        await expect(card(page)).to_have_count(30)
        await expect(page.locator("aside")).to_contain_text("10 more are waiting")
        await press(page.locator("[data-answer=refuse-all]"))
        tasks.start_soon(put, results, ask(call(x="late")))
        await expect(page.locator("aside .count").first).to_have_text("41")
        await press(page.get_by_role("button", name="Refuse these 40 calls"))
        await eventually(lambda: len(results) == 40)
        assert {result.outcome for result in results} == {"declined"}
        [left] = computer.decisions.pending
        assert left.call is not None and left.call.arguments == {"x": "late"}
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("way", ["withdrawn", "unanswered", "elsewhere while away"])
async def test_what_was_typed_survives_the_end_of_its_question_and_can_be_copied(browser: Browser, way: str) -> None:
    context = await browser.new_context(locale="en-US", permissions=["clipboard-read", "clipboard-write"])
    async with (
        opened() as (computer, console),
        tab(browser, console.link(), context) as page,
        anyio.create_task_group() as tasks,
    ):
        await page.set_viewport_size({"width": 1400, "height": 900})
        until = anyio.current_time() + 4 if way == "unanswered" else math.inf
        tasks.start_soon(partial(computer.decisions.ask_question, "shell", "Where?", schema=_FORM, expires=until))
        await card(page).get_by_label("City").fill("Bergen by the sea")
        # Another view shows the same card with what was typed.
        await page.evaluate("location.hash = '#/decisions'")
        await expect(page.get_by_label("City")).to_have_value("Bergen by the sea")
        await page.evaluate("location.hash = '#/calls'")
        if way == "withdrawn":
            computer.decisions.withdraw(computer.decisions.pending[0].id)
        if way == "elsewhere while away":
            await context.set_offline(True)
            assert console._app is not None
            await console._app.api.end_streams()
            await expect(page.locator(".banner[data-shown]")).to_have_count(1)
            computer.decisions.withdraw(computer.decisions.pending[0].id)
            await context.set_offline(False)
        await expect(card(page)).to_contain_text("What you typed was not sent")
        await page.mouse.move(5, 5)
        await anyio.sleep(5)  # longer than what is decided stays otherwise
        await expect(page.get_by_label("City")).to_have_value("Bergen by the sea")
        await card(page).get_by_role("button", name="Copy").click()
        assert await page.evaluate("navigator.clipboard.readText()") == "city: Bergen by the sea"
        await card(page).get_by_role("button", name="Put away").click()
        await page.mouse.move(5, 5)  # nothing moves while the pointer is at the cards
        await expect(card(page)).to_have_count(0)
    await context.close()


async def test_a_secret_whose_sending_failed_is_still_in_its_field(browser: Browser) -> None:
    token = PromptStringInput(type="promptString", id="token", description="The token", password=True)
    async with (
        opened(inputs=[token]) as (computer, console),
        tab(browser, console.link()) as page,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(computer.decisions.ask_input, token, ("shell",))
        field = card(page).get_by_label("The token")
        await field.fill("horse-battery")
        await page.route("**/api/answer", lambda route: route.abort())
        await press(button(page, "send"))
        await expect(card(page).get_by_role("alert")).to_contain_text("That did not work")
        await expect(field).to_have_value("horse-battery")
        await page.unroute("**/api/answer")
        await press(button(page, "send"))
        await eventually(lambda: not computer.decisions.pending)


@pytest.mark.parametrize("hidden", ["in a rail that is not shown", "in a low window"])
async def test_arguments_that_nobody_could_see_are_not_seen(browser: Browser, hidden: str) -> None:
    script = "\n".join(f"echo step {number}" for number in range(120)) + "\nrm -rf ~"
    size = {"width": 1000, "height": 900} if "rail" in hidden else {"width": 1400, "height": 150}
    async with one_page(browser, viewport=size) as (computer, page, tasks):
        asked = call(script=script if "rail" in hidden else "rm -rf ~")
        tasks.start_soon(computer.decisions.ask_confirmation, asked)
        await expect(card(page)).to_have_count(1)
        if "rail" in hidden:
            await page.set_viewport_size({"width": 1400, "height": 900})
        else:
            await button(page, "no").evaluate("each => each.scrollIntoView({ block: 'end' })")
        await expect(button(page, "no")).to_be_enabled()
        await expect(button(page, "yes")).to_be_disabled()
        await page.locator(".arguments .end").evaluate("each => each.scrollIntoView()")
        await press(button(page, "yes"))
        await eventually(lambda: not computer.decisions.pending)


async def test_an_agent_called_you_is_not_taken_for_the_person(browser: Browser) -> None:
    async with (
        opened(server("one", prefixed=False)) as (computer, console),
        tab(browser, console.link()) as page,
    ):
        ASKER.set(Asker("you"))
        await computer.execute_tool("r", "echo", {"text": "1"}, 30)
        name = page.locator(".row.ended .who .given")
        await expect(name).to_have_text("you")
        assert await name.evaluate("each => getComputedStyle(each).borderStyle") == "dashed"


async def test_a_notice_is_said_in_the_language_of_the_page(browser: Browser) -> None:
    async with opened() as (computer, console), tab(browser, console.link(), locale="zh-CN") as page:
        computer._events.publish(ToolInvalid("shell", "a\u202eb", "its schema is no object"))
        await page.locator(".told").click()
        await expect(page.locator(".notice")).to_contain_text(r"a\u202eb")
        await expect(page.locator(".notice")).not_to_contain_text("is hidden")


async def test_a_password_that_was_typed_and_not_sent_does_not_show_when_the_page_is_over(browser: Browser) -> None:
    token = PromptStringInput(type="promptString", id="token", description="The token", password=True)
    async with (
        opened(inputs=[token]) as (computer, console),
        tab(browser, console.link()) as page,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(computer.decisions.ask_input, token, ("shell",))
        await card(page).get_by_label("The token").fill("horse-battery")
        assert console._app is not None
        console._app._visitors.end(*console._app._visitors.sessions)
        await console._app.api.end_streams()
        await expect(page.locator(".over .typed")).to_contain_text("What you typed was not sent")
        await expect(page.locator(".over .typed button")).to_have_count(1)
        assert "horse-battery" not in await page.content()
        tasks.cancel_scope.cancel()
