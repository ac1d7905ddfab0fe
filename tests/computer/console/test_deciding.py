"""Decisions in a real browser: the exact call, forms, two places at once, and clicks that come too early."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, Page, Request, Route, expect

from a2c_smcp.computer.decisions.book import Accepted, AlreadyDecidedError, Declined, Resolution
from a2c_smcp.computer.mcp_clients.model import PromptStringInput, parse_input
from tests.computer.console.harness import DEADLINE, as_agent, go, opened, press, tab
from tests.computer.fakes.computers import asking, code, server, text
from tests.computer.test_asking import CONTENT, SCHEMA, both_eras

ASKS: dict[str, Any] = {"default_tool_meta": {}, "prefixed": False}


async def put(results: list[Any], ask: Any) -> None:
    results.append(await ask)


async def ended(results: list[Any], count: int = 1) -> Any:
    with anyio.fail_after(DEADLINE):
        while len(results) < count:  # noqa: ASYNC110 - a list
            await anyio.sleep(0.01)
    return results[-1]


def card(page: Page) -> Any:
    return page.locator("aside .decision:not([data-decided])")


#: The buttons by what they do: their names say what they are about, and differ from card to card.
_ANSWERS = {
    "Allow": "yes",
    "Refuse": "no",
    "Allow this tool": "always",
    "Allow like this": "like",
    "Never": "never",
    "Send": "send",
    "Decline": "no",
    "Done": "yes",
    "I won’t": "no",
}


def button(page: Page, name: str) -> Any:
    return card(page).locator(f"[data-answer={_ANSWERS[name]}]")


async def decided(page: Page) -> None:
    """Wait until the page has heard it: a call may end before, and a click would still go to the old card."""
    await expect(card(page)).to_have_count(0)


async def test_the_exact_call_is_shown_and_runs_only_after_a_yes(browser: Browser) -> None:
    exact: dict[str, Any] = {
        "text": "10 \u202e000\u202c €",
        "big": 123456789012345678901234567890,
        "nested": {"a": [1.0, None, "<b>x</b>"]},
    }
    async with opened(server("one", **ASKS)) as (computer, console), tab(browser, console.link()) as page:
        results: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put, results, as_agent(computer, "echo", **exact))
            await expect(card(page)).to_have_count(1)
            shown = await card(page).inner_text()
            for part in (
                "An agent asks to run",
                "Agent, says it is",
                "No key is bound to this name",
                "planner",
                "echo",
                "s left",
            ):
                assert part in shown
            for part in ("123456789012345678901234567890", "1.0", "null", "<b>x</b>", r"10 \u202e000\u202c €"):
                assert part in shown
            await expect(page).to_have_title("(1) pc · console")  # it is set a moment after the card
            assert results == []
            await press(button(page, "Allow"))
            assert text(await ended(results)) == exact["text"]
            await expect(page.locator("aside .outcome")).to_have_text("Allowed by this browser")
        row = page.locator("main .ended", has_text="echo")
        await expect(row).to_contain_text("says it is planner")


async def test_a_refused_call_does_not_run_and_always_lasts(browser: Browser) -> None:
    async with opened(server("one", **ASKS)) as (computer, console), tab(browser, console.link()) as page:
        results: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put, results, as_agent(computer, "stats"))
            await press(button(page, "Refuse"))
            assert code(await ended(results)) == 4005
            await decided(page)
            tasks.start_soon(put, results, as_agent(computer, "echo", text="1"))
            await press(button(page, "Allow this tool"))
            assert text(await ended(results, 2)) == "1"
            assert text(await as_agent(computer, "echo", text="2")) == "2"
        # The rule is listed, with how often it decided, and is undone with one click.
        await go(page, "rules")
        listed = page.locator(".rules li")
        await expect(listed).to_have_count(1)
        await expect(listed).to_contain_text("the tool is echo; the server is one")
        await expect(listed).to_contain_text("decided once")
        await expect(listed).to_contain_text("by this browser")
        await press(listed.locator("[data-answer=undo-rule]"))
        await expect(page.locator(".rules")).to_contain_text("There are no rules.")
        assert computer.decisions.rules.list.all == ()


async def test_denies_that_are_gone_from_the_file_are_told(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[[rules]]\neffect = "deny"\ntool = "a"\n[[rules]]\neffect = "deny"\ntool = "b"\n')
    async with opened(server("one", **ASKS)) as (computer, console), tab(browser, console.link()) as page:
        computer.decisions.rules.open(file)
        await go(page, "rules")
        await expect(page.locator(".rules li")).to_have_count(2)
        file.write_text("")
        await computer.decisions.rules.reload()
        await expect(page.locator(".rules [role=alert]")).to_have_text("2 denies are gone from the rules file.")
        await page.locator(".told").click()
        await expect(page.locator("#notices")).to_contain_text("Denies that are gone from the rules file: 2")


async def test_like_this_is_shown_in_words_and_widened_and_never_denies(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    async with opened(server("one", **ASKS)) as (computer, console), tab(browser, console.link()) as page:
        computer.decisions.rules.open(file)
        results: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put, results, as_agent(computer, "echo", text="/home/ada/notes/a.md"))
            await card(page).locator("[data-open=like]").click()
            proposal = card(page).locator(".proposal")
            await expect(proposal).to_contain_text("the tool is echo")
            await expect(proposal).to_contain_text("it has no other arguments than text")
            part = proposal.get_by_label("How far: text")
            await expect(part.locator("option").first).to_have_text('text is exactly "/home/ada/notes/a.md"')
            shown = proposal.locator("li", has=page.get_by_label("How far: text")).locator(".examples")
            await expect(shown).to_have_count(0)  # the narrowest width is for this text alone
            await part.select_option(label='text is in the folder "/home/ada/notes"')
            also = 'So it would also allow "/home/ada/notes/.ssh/id_ed25519" · "/home/ada/notes/other/folder/file"'
            await expect(shown).to_contain_text(also)
            await press(button(page, "Allow like this"))
            assert text(await ended(results)) == "/home/ada/notes/a.md"
            await expect(page.locator("aside .outcome")).to_contain_text("Allowed by this browser, with a rule")
            assert text(await as_agent(computer, "echo", text="/home/ada/notes/b.md")) == "/home/ada/notes/b.md"
            await decided(page)
            tasks.start_soon(put, results, as_agent(computer, "echo", text="/etc/passwd"))
            await card(page).get_by_label("Reason for a refusal").fill("not yours")
            await press(button(page, "Never"))
            refused = await ended(results, 2)
            assert (refused.meta["outcome"], refused.meta["reason"]) == ("refused", "not yours")
        denied = await as_agent(computer, "echo", text="/home/ada/notes/b.md")
        assert (denied.meta["outcome"], denied.meta["reason"]) == ("rule", "not yours")
        await go(page, "rules")
        listed = page.locator(".rules li")
        await expect(listed).to_have_count(2)
        await expect(listed.first).to_contain_text("Never run")
        await press(listed.first.locator("[data-answer=undo-rule]"))
        await expect(listed).to_have_count(1)
        assert code(await as_agent(computer, "echo", text="/home/ada/notes/c.md")) is None
        await computer.decisions.rules.aclose()
        assert file.read_text("utf-8").count("[[rules]]") == 1


async def test_a_widening_shows_what_it_newly_allows_in_chinese_too(browser: Browser) -> None:
    async with (
        opened(server("one", **ASKS)) as (computer, console),
        tab(browser, console.link(), locale="zh-CN") as page,
    ):
        results: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put, results, as_agent(computer, "echo", text="ben@example.com"))
            await card(page).locator("[data-open=like]").click()
            proposal = card(page).locator(".proposal")
            await proposal.get_by_label("范围：text").select_option("1")
            await expect(proposal.locator("option:checked").first).to_have_text("text 是 *@example.com 的一个邮件地址")
            await expect(proposal.locator(".examples").first).to_contain_text('因此也会允许 "everybody@example.com"')
            await press(card(page).locator("[data-answer=like]"))
            assert text(await ended(results)) == "ben@example.com"
        assert await computer.test_rules("echo", {"text": "ann@example.com"}, agent="planner") is not None
        for wrong in ("eve@evil.org, ben@example.com", "ben@example.com\r\nBcc: eve@evil.org"):
            assert await computer.test_rules("echo", {"text": wrong}, agent="planner") is None


async def test_of_two_places_the_first_answer_counts_and_the_other_is_told(browser: Browser) -> None:
    async with opened(server("one", **ASKS)) as (computer, console), tab(browser, console.link()) as page:
        results: list[Any] = []
        with computer.decisions.attend("terminal"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(put, results, as_agent(computer, "echo", text="1"))
                await expect(button(page, "Allow")).to_be_enabled()
                [decision] = computer.decisions.pending

                async def terminal_first(route: Route) -> None:
                    computer.decisions.answer(decision.id, Declined(), by="terminal")
                    await route.continue_()

                # Both at once: the click is on its way when the terminal decides.
                await page.route("**/api/answer", terminal_first)
                async with page.expect_response("**/api/answer") as answered:
                    await press(button(page, "Allow"))
                response = await answered.value
                assert response.status == 400
                await page.unroute("**/api/answer")
                assert code(await ended(results)) == 4005
                await expect(page.locator("aside .outcome")).to_have_text("Refused by the terminal")

                tasks.start_soon(put, results, as_agent(computer, "echo", text="2"))
                await press(button(page, "Allow"))
                assert text(await ended(results, 2)) == "2"
                decision_id = await page.locator("aside .decision").last.get_attribute("data-decision")
                with pytest.raises(AlreadyDecidedError, match="Chrome on Linux"):
                    computer.decisions.answer(decision_id or "", Accepted(), by="terminal")


async def test_a_question_is_a_form_and_its_answer_is_what_was_typed(browser: Browser) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name", "description": "as on the ticket"},
            "age": {"type": "integer", "minimum": 1},
            "fare": {"type": "number"},
            "window": {"type": "boolean", "default": False},
            "seat": {"type": "string", "enum": ["a", "b"], "enumNames": ["Aisle", "Back"]},
            "meals": {
                "type": "array",
                "items": {"anyOf": [{"const": "v", "title": "Vegan"}, {"const": "h", "title": "Halal"}]},
            },
            "mail": {"type": "string", "format": "email"},
        },
        "required": ["name", "age", "window"],
    }
    async with opened() as (computer, console), tab(browser, console.link()) as page:
        results: list[Resolution] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put, results, computer.decisions.ask_question("one", "Which seat?", schema=schema))
            await card(page).get_by_label("Your name").fill("Ada")
            await card(page).get_by_label("age").fill("36")
            await card(page).get_by_label("fare").fill("12.50")
            await card(page).get_by_label("seat").select_option("Back")
            await card(page).get_by_label("Vegan").check()
            assert "Which seat?" in await card(page).inner_text()
            await press(button(page, "Send"))
            given = (await ended(results)).value
            assert given == {"name": "Ada", "age": 36, "fare": 12.5, "window": False, "seat": "b", "meals": ["v"]}

            await decided(page)
            tasks.start_soon(put, results, computer.decisions.ask_question("one", "Again?", schema=schema))
            await press(button(page, "Decline"))
            assert (await ended(results, 2)).outcome == "declined"
            ask = computer.decisions.ask_question("one", "Log in", url="https://login.example/x?y")
            tasks.start_soon(put, results, ask)
            link = card(page).get_by_role("link")
            assert await link.get_attribute("href") == "https://login.example/x?y"
            assert await link.get_attribute("rel") == "noopener noreferrer"
            await press(button(page, "Done"))
            assert (await ended(results, 3)).outcome == "accepted"
            ask = computer.decisions.ask_question("one", "Log in", url="javascript:alert(1)")
            tasks.start_soon(put, results, ask)
            await expect(card(page)).to_contain_text("javascript:alert(1)")
            assert await card(page).get_by_role("link").count() == 0
            await press(button(page, "I won’t"))
            await ended(results, 4)


async def test_a_secret_goes_in_and_is_never_seen_again(browser: Browser) -> None:
    secret = "correct-horse-battery"
    config = server("one", **ASKS)
    config["server_parameters"]["env"] = {"TOKEN": "${input:token}"}
    inputs = [PromptStringInput(type="promptString", id="token", description="The token", password=True)]
    computer_and_console = opened(config, inputs=inputs, auto_connect=False)
    async with computer_and_console as (computer, console), tab(browser, console.link()) as page:
        finished: list[Request] = []
        page.on("requestfinished", lambda request: finished.append(request))
        await page.evaluate(_RECORD)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(computer.start_server, "one")
            field = card(page).get_by_label("The token")
            assert await field.get_attribute("type") == "password"
            await field.fill(secret)
            await press(button(page, "Send"))
        assert computer.inputs.values["token"] == secret
        await expect(card(page)).to_have_count(0)
        for view in ("servers", "tools", "office", "calls"):
            await page.evaluate("view => { location.hash = view }", f"#/{view}")
            await anyio.sleep(0.2)
        await page.evaluate("location.hash = '#/servers'")
        await expect(page.locator(".row.input")).to_contain_text("has a value")
        found = await page.evaluate(_SEARCH, secret)
        assert found == []
        bodies = [await body_of(request) for request in finished if "/api/" in request.url]
        assert bodies and not any(secret in body for body in bodies)


async def test_an_option_shows_its_label_and_its_value_and_gives_the_value(browser: Browser) -> None:
    config = server("one", **ASKS)
    config["server_parameters"]["env"] = {"REGION": "${input:region}"}
    options = [{"label": "Europe", "value": "eu-1"}, {"label": "Asia", "value": "ap-1"}, "eu-2"]
    inputs = [parse_input({"id": "region", "description": "Where", "type": "pickString", "options": options})]
    computer_and_console = opened(config, inputs=inputs, auto_connect=False)
    async with computer_and_console as (computer, console), tab(browser, console.link()) as page:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(computer.start_server, "one")
            field = card(page).get_by_label("Where")
            await expect(field.locator("option:not([value=''])")).to_have_text(["Europe (eu-1)", "Asia (ap-1)", "eu-2"])
            await field.select_option("Asia (ap-1)")
            await press(button(page, "Send"))
        assert computer.inputs.values["region"] == "ap-1"


async def body_of(request: Request) -> str:
    response = await request.response()
    assert response is not None
    return await response.text()


#: Keeps what the stream brings, as the page reads it.
_RECORD = """() => {
  globalThis.read = [];
  const decode = TextDecoder.prototype.decode;
  TextDecoder.prototype.decode = function (...given) {
    const text = decode.apply(this, given);
    globalThis.read.push(text);
    return text;
  };
}"""
#: Where a text is: markup, values of fields, storage, history, and what the stream brought.
_SEARCH = """secret => Object.entries({
  markup: document.documentElement.outerHTML,
  fields: [...document.querySelectorAll("input, textarea, select")].map(each => each.value).join(),
  session: JSON.stringify({ ...sessionStorage }),
  local: JSON.stringify({ ...localStorage }),
  cookies: document.cookie,
  address: location.href + JSON.stringify(history.state),
  stream: globalThis.read.join(""),
}).filter(([, text]) => text.includes(secret)).map(([name]) => name)"""


async def test_a_new_decision_is_deaf_for_half_a_second_and_moves_nothing_under_the_pointer(browser: Browser) -> None:
    async with opened(server("one", **ASKS)) as (computer, console), tab(browser, console.link()) as page:
        results: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put, results, as_agent(computer, "echo", text="1"))
            await expect(button(page, "Allow")).to_be_enabled()
            first = await button(page, "Allow").bounding_box()
            # Another comes while the pointer is about to press: it comes below, and the first one stays where it is.
            await page.mouse.move(first["x"] + 5, first["y"] + 5)
            await page.evaluate(_WATCH)
            tasks.start_soon(put, results, as_agent(computer, "stats"))
            await expect(card(page)).to_have_count(2)
            assert await button(page, "Allow").first.bounding_box() == first
            # It takes no click in its first half second.
            await expect(button(page, "Refuse").last).to_be_enabled()
            [one, two] = computer.decisions.pending
            seen, listening = (await page.evaluate("watched"))[two.id]
            assert listening - seen > 450
            # The first is decided elsewhere: what is below does not jump into its place while the pointer is there.
            second = await button(page, "Allow").last.bounding_box()
            computer.decisions.answer(one.id, Accepted(), by="terminal")
            await expect(page.locator("aside .outcome")).to_have_text("Allowed by the terminal")
            await page.mouse.down()
            await page.mouse.up()
            assert (await card(page).bounding_box())["y"] > first["y"]
            assert len(computer.decisions.pending) == 1
            # The pointer goes, and then things may move; what moved is deaf again.
            await page.mouse.move(5, 400)
            await expect(page.locator("aside .decision")).to_have_count(1)
            assert (await button(page, "Allow").bounding_box())["y"] < second["y"]
            await press(button(page, "Refuse"))
            await ended(results, 2)
        assert sorted(code(result) or 0 for result in results) == [0, 4005]


#: Notes for each new card when it was there, and when the first of its buttons listened.
_WATCH = """() => {
  globalThis.watched = {};
  new MutationObserver(() => {
    for (const card of document.querySelectorAll("[data-decision]")) {
      const times = (watched[card.dataset.decision] ??= [performance.now(), null]);
      if (card.querySelector("[data-answer]:not([aria-disabled])")) times[1] ??= performance.now();
    }
  }).observe(document.body, { subtree: true, childList: true, attributes: true });
}"""


async def test_a_click_that_a_script_makes_or_that_comes_with_the_window_decides_nothing(browser: Browser) -> None:
    async with opened(server("one", **ASKS)) as (computer, console), tab(browser, console.link()) as page:
        results: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put, results, as_agent(computer, "echo", text="1"))
            await expect(button(page, "Allow")).to_be_enabled()
            await button(page, "Allow").evaluate("each => each.click()")
            # The window comes to the front below a pointer that is about to click.
            assert await button(page, "Allow").evaluate(_COMES_TO_THE_FRONT)
            assert len(computer.decisions.pending) == 1 and results == []
            await press(button(page, "Refuse"))
            await ended(results)


_COMES_TO_THE_FRONT = """async button => {
  window.dispatchEvent(new Event("focus"));
  await new Promise(resolve => setTimeout(resolve, 50));
  return button.ariaDisabled === "true";
}"""


@both_eras
async def test_a_server_that_asks_gets_what_was_typed_in_the_browser(browser: Browser, era: str) -> None:
    config = {**asking(era), "default_tool_meta": {"auto_apply": True}}
    computer_and_console = opened(config, auto_connect=False)
    async with computer_and_console as (computer, console), tab(browser, console.link()) as page:
        await computer.start_server("asker")  # somebody is there who can answer
        results: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put, results, as_agent(computer, "ask", message="Who are you?", schema=SCHEMA))
            await expect(card(page)).to_contain_text("A server asks you something")
            await expect(card(page)).to_contain_text("While running ask · says it is planner")
            # What does not fit is refused at the computer too, and the question stays.
            await page.evaluate("document.querySelector('aside form').noValidate = true")
            await press(button(page, "Send"))
            await expect(card(page).locator(".wrong").first).to_contain_text("required")
            await card(page).get_by_label("text").fill(CONTENT["text"])
            await card(page).get_by_label("number").fill("1.5")
            await card(page).get_by_label("integer").fill("2")
            await card(page).get_by_label("choice").select_option("b")
            await card(page).get_by_label("x", exact=True).check()
            await card(page).get_by_label("z", exact=True).check()
            await card(page).get_by_label("yes").select_option("Yes")
            await press(button(page, "Send"))
            assert json.loads(text(await ended(results)))["content"] == CONTENT


async def test_passwords_on_a_card_are_hidden_until_they_are_wanted(browser: Browser) -> None:
    exact: dict[str, Any] = {"text": "deploy --password hunter22", "pin": 4711}
    async with opened(server("one", **ASKS)) as (computer, console), tab(browser, console.link()) as page:
        results: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put, results, as_agent(computer, "echo", **exact))
            await expect(card(page)).to_contain_text("deploy --password *** (8 characters, #")
            await expect(card(page)).to_contain_text("an argument has a secret in it")
            assert "hunter22" not in await page.content() and "4711" not in await card(page).inner_text()
            await press(card(page).locator("[data-reveal]"))
            await expect(card(page)).to_contain_text("deploy --password hunter22")
            await expect(card(page).locator("[data-reveal]")).to_have_count(0)
            await press(button(page, "Allow"))
            assert (await ended(results)).content[0].text == exact["text"], "what runs is the exact call"
