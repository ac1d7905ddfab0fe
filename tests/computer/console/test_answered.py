"""What is left of a decision once it is made: a folded card, the right word, and the rule in the row of a call."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from a2c_smcp.computer.decisions.book import Accepted, Declined
from a2c_smcp.computer.mcp_clients.model import parse_input
from tests.computer.console.harness import as_agent, go, one_page, opened, press, tab
from tests.computer.console.test_in_sight import button, call, card, put
from tests.computer.fakes.computers import server

_SCRIPT = "\n".join(f"echo step {number}" for number in range(40))


async def test_an_answered_card_folds_and_keeps_its_place_only_while_the_pointer_is_near(browser: Browser) -> None:
    async with one_page(browser) as (computer, page, tasks):
        for number in (1, 2):
            tasks.start_soon(computer.decisions.ask_confirmation, call(tool=f"tool{number}", n=number))
        await expect(card(page)).to_have_count(2)
        # The note about rules is there once, and not on each card.
        await expect(page.get_by_text("is for every agent and any arguments")).to_have_count(1)
        await card(page).first.locator("h3").hover()
        tall = await card(page).first.bounding_box()
        computer.decisions.answer(computer.decisions.pending[0].id, Declined(), by="terminal")
        folded = page.locator("aside .decision[data-folded]")
        await expect(folded).to_contain_text("Refused by the terminal")
        await expect(folded.locator(".arguments, .asked")).to_have_count(0)
        assert tall == await card(page).first.bounding_box()
        await page.mouse.move(400, 400)
        await page.wait_for_function(
            "() => document.querySelector('[data-folded]').getBoundingClientRect().height < 200"
        )
        await folded.get_by_role("button", name="What it was: tool1").click()
        await expect(card(page).first.locator(".arguments")).to_contain_text("1")
        tasks.cancel_scope.cancel()


async def test_allow_once_says_in_words_what_is_still_unread(browser: Browser) -> None:
    async with one_page(browser) as (computer, page, tasks):
        tasks.start_soon(computer.decisions.ask_confirmation, call(cwd="/srv", script=_SCRIPT))
        unread = card(page).locator(".unread")
        await expect(unread).to_contain_text("“Allow once” waits: ")
        await expect(unread).to_contain_text("lines are unread, of script")
        await expect(unread).not_to_contain_text("cwd")
        described = await button(page, "yes").get_attribute("aria-describedby")
        assert described == await unread.get_attribute("id")
        box = page.get_by_role("group", name="With exactly these arguments")
        await box.evaluate("each => each.scrollTo(0, each.scrollHeight)")
        await expect(unread).not_to_contain_text("waits")
        await expect(button(page, "yes")).to_be_enabled()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("locale", "sent", "not_sent", "signed_in"),
    [
        ("en-US", "Sent by the terminal", "Not answered, by the terminal", "Signed in by the terminal"),
        ("zh-CN", "已由终端发送", "终端没有回答", "已由终端登录"),
    ],
)
async def test_what_was_sent_reads_sent_and_a_sign_in_reads_signed_in(
    browser: Browser, locale: str, sent: str, not_sent: str, signed_in: str
) -> None:
    asked = parse_input({"id": "key", "type": "promptString"})
    results: list[Any] = []
    async with one_page(browser, locale=locale) as (computer, page, tasks):
        decisions = computer.decisions
        outcome = page.locator("aside .outcome [role=status]")
        for ask, answer, said in (
            (decisions.ask_input(asked, ("one",)), Accepted("v"), sent),
            (decisions.ask_question("one", "Really?"), Declined(), not_sent),
            (decisions.ask_sign_in("one", "https://issuer.example/"), Accepted("https://here/?code=1"), signed_in),
        ):
            tasks.start_soon(put, results, ask)
            await expect(card(page).last).to_be_visible()
            decisions.answer(decisions.pending[-1].id, answer, by="terminal")
            await expect(outcome.last).to_have_text(said)


async def test_a_call_that_a_rule_decided_says_so_in_its_row(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    rules = '[[rules]]\nid = "no-stats"\neffect = "deny"\ntool = "stats"\n[[rules]]\nid = "echoes"\neffect = "allow"\n'
    file.write_text(rules + 'tool = "echo"\n')
    file.chmod(0o600)
    config = server("one", prefixed=False, default_tool_meta={})
    async with opened(config) as (computer, console), tab(browser, console.link()) as page:
        computer.decisions.rules.open(file)
        await as_agent(computer, "echo", text="x")
        await as_agent(computer, "stats")
        await go(page, "calls")
        row = page.locator("main .ended")
        await expect(row.filter(has_text="echo")).to_contain_text("allowed by the rule echoes")
        await expect(row.filter(has_text="stats")).to_contain_text("refused by the rule no-stats")
        await press(row.filter(has_text="echo").locator("button.line"))
