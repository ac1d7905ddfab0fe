"""First run, servers and offices in a real browser: added, edited, removed, joined and left, and each error once."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.files import load_config_files
from a2c_smcp.computer.mcp_clients.model import PromptStringInput
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.server import APIKeyAuthentication
from tests import browser as browsers
from tests.computer.console.harness import go, opened, press, tab
from tests.computer.console.homes import Door, at_home, flat, forbid_writing, paste, read, with_comments, write
from tests.computer.console.test_accessible import _VIOLATIONS
from tests.computer.fakes.computers import call, names, server, state
from tests.computer.fakes.offices import new_office, options
from tests.server.conftest import LIMITS
from tests.server.harness import Running, async_server, eventually

PHONE = {"viewport": {"width": 390, "height": 780}}

_TOO_WIDE = "document.querySelector('main').scrollWidth > document.querySelector('main').clientWidth"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(with_comments("mail"))
    return path


@asynccontextmanager
async def looking(
    browser: Browser, *files: Path, door: Door | None = None, tab_options: Any = None, **more: Any
) -> AsyncIterator[tuple[Computer, Page]]:
    async with (
        at_home(*files, offices=door, **more) as (computer, console),
        tab(browser, console.link(), **(tab_options or {})) as page,
    ):
        yield computer, page


def written(file: Path) -> list[str]:
    return [raw["name"] for raw in load_config_files(file).servers]


def row(page: Page, name: str) -> Any:
    return page.locator(".row.server").filter(has=page.locator("b", has_text=name))


async def test_the_first_run_leads_to_a_server_and_to_an_office(browser: Browser, hub: Running) -> None:
    async with looking(browser, door=Door(), tab_options=PHONE) as (computer, page):
        for view in ("calls", "tools", "desktop", "finder"):
            await go(page, view)
            await expect(page.get_by_role("heading", name="First steps")).to_be_visible()
            assert not await page.evaluate(_TOO_WIDE)
        await go(page, "tools")
        await expect(page.get_by_role("link", name="Look at the servers")).to_be_visible()
        await page.get_by_role("link", name="Add a server").click()
        await expect(page.get_by_text("No servers are configured.")).to_be_visible()
        await expect(page.get_by_text("--config FILE")).to_be_visible()
        box = page.get_by_role("textbox", name="The server’s entry")
        assert "mcpServers" in (await box.get_attribute("placeholder") or "")
        await box.fill(paste("mail"))
        await expect(page.get_by_text("Adds mail.")).to_be_visible()
        assert not await page.evaluate(_TOO_WIDE)
        await page.get_by_role("button", name="Add until the computer stops").click()
        await expect(row(page, "mail").locator(".chip")).to_have_text("running")
        await go(page, "tools")
        await expect(page.get_by_role("link", name="Add a server")).to_have_count(0)
        await page.get_by_role("link", name="Join an office").click()
        form = page.get_by_role("form", name="Join an office")
        await form.get_by_label("Address of the server").fill(hub.url)
        await form.get_by_label("Office").fill(office := new_office())
        await form.get_by_role("button", name="Join").click()
        await expect(page.locator("dl.facts", has_text="in the office")).to_contain_text(office)
        await go(page, "calls")
        await expect(page.get_by_role("heading", name="First steps")).to_have_count(0)
        assert [found.office for found in computer.offices] == [office]


async def test_a_paste_is_checked_as_the_person_pauses_and_then_written(browser: Browser, file: Path) -> None:
    async with looking(browser, file) as (computer, page):
        await go(page, "servers")
        await page.get_by_role("button", name="Add a server").click()
        box = page.get_by_role("textbox", name="The server’s entry")
        add = page.get_by_role("button", name="Add", exact=True)
        await expect(add).to_be_disabled()
        await box.fill('"notes": {"comand": "x"}')
        await expect(page.locator(".checked .problem").first).to_contain_text("did you mean 'command'?")
        await expect(box).to_have_attribute("aria-invalid", "true")
        await expect(add).to_be_disabled()
        await box.fill(paste("mail"))
        await expect(page.get_by_text("Replaces mail.")).to_be_visible()
        # What was typed is still there after a look at another view.
        await box.fill(f'"notes": {json.dumps(flat("notes"))} // from the README')
        await go(page, "calls")
        await go(page, "servers")
        await page.get_by_role("button", name="Add a server").click()
        await expect(page.get_by_text("Adds notes.")).to_be_visible()
        await expect(page.get_by_text(str(file))).to_be_visible()
        await add.click()
        await expect(row(page, "notes").locator(".chip")).to_have_text("running")
        await expect(box).to_have_count(0)
        assert written(file) == ["mail", "notes"] and "// about mail" in read(file)
        assert "notes.echo" in names(computer)


async def test_a_server_is_added_without_the_file_if_the_person_says_so(browser: Browser, file: Path) -> None:
    forbid_writing(file)
    before = read(file)
    async with looking(browser, file) as (_, page):
        await go(page, "servers")
        await page.get_by_role("button", name="Add a server").click()
        await page.get_by_role("textbox", name="The server’s entry").fill(paste("notes"))
        await expect(page.locator(".checked .problem").first).to_contain_text("read-only")
        await page.get_by_role("checkbox", name="Only until the computer stops").check()
        await page.get_by_role("button", name="Add until the computer stops").click()
        await expect(row(page, "notes").locator(".chip")).to_have_text("running")
        assert read(file) == before


async def test_a_value_that_a_new_server_needs_is_asked_for_on_the_page(browser: Browser, file: Path) -> None:
    entry = flat("notes")
    entry["args"].append("resources=${input:count}")
    definition = {"id": "count", "type": "promptString", "description": "How many?"}
    async with looking(browser, file) as (_, page):
        await go(page, "servers")
        await page.get_by_role("button", name="Add a server").click()
        box = page.get_by_role("textbox", name="The server’s entry")
        await box.fill(json.dumps({"mcpServers": {"notes": entry}, "inputs": [definition]}))
        await expect(page.get_by_text("Also adds these inputs: count.")).to_be_visible()
        await page.get_by_role("button", name="Add", exact=True).click()
        card = page.locator(".rail .decision", has_text="A value is missing")
        await card.get_by_label("How many?").fill("2")
        await press(card.get_by_role("button", name="Send"))
        await expect(row(page, "notes").locator(".chip")).to_have_text("running")
        # The server may run before its file is written.
        await eventually(lambda: [found.id for found in load_config_files(file).inputs] == ["count"])


async def test_a_server_that_does_not_start_says_so_once_at_the_form(browser: Browser, file: Path) -> None:
    before = read(file)
    async with looking(browser, file) as (_, page):
        await go(page, "servers")
        await page.get_by_role("button", name="Add a server").click()
        await page.get_by_role("textbox", name="The server’s entry").fill(
            paste("notes", "dies-on-start", default_tool_meta={})
        )
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.locator(".editor > form > .problem")).to_contain_text("notes")
        await expect(page.locator(".problem, .reason, .notice")).to_have_count(1)
        await expect(page.locator(".row.server")).to_have_count(1)
        assert read(file) == before


async def test_a_long_start_can_be_cancelled(browser: Browser, file: Path) -> None:
    async with looking(browser, file) as (computer, page):
        await go(page, "servers")
        await page.get_by_role("button", name="Add a server").click()
        box = page.get_by_role("textbox", name="The server’s entry")
        await box.fill(paste("notes", "silent"))
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.get_by_role("button", name="Starting …")).to_be_disabled()
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.locator(".editor > form > .problem")).to_contain_text("cancelled; nothing was changed")
        assert await box.input_value() == paste("notes", "silent")
        assert [status.server for status in computer.statuses] == ["mail"]


async def test_a_start_that_a_page_left_behind_is_cancelled_from_the_next_one(browser: Browser, file: Path) -> None:
    async with looking(browser, file) as (_, page):
        for entry in (paste("notes", "silent"), paste("other")):
            await go(page, "servers")
            await page.get_by_role("button", name="Add a server").click()
            await page.get_by_role("textbox", name="The server’s entry").fill(entry)
            await page.get_by_role("button", name="Add", exact=True).click()
            if "notes" in entry:
                await expect(page.get_by_role("button", name="Starting …")).to_be_disabled()
                await page.reload()
                await page.wait_for_selector(".status.live")
        await expect(page.locator(".editor > form > .problem")).to_contain_text("another change of the servers")
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_role("button", name="Close")).to_be_visible()
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(row(page, "other").locator(".chip")).to_have_text("running")


async def test_an_entry_is_edited_with_its_secrets_hidden(browser: Browser, file: Path) -> None:
    write(file, with_comments("mail", env={"TOKEN": "s3cret"}))
    async with looking(browser, file) as (computer, page):
        await go(page, "servers")
        await page.get_by_role("button", name="Edit mail").click()
        box = page.get_by_role("textbox", name="Entry of mail")
        shown = await box.input_value()
        assert '"TOKEN": "***"' in shown and "s3cret" not in await page.content()
        await box.fill(shown.replace("{", '{ "forbidden_tools": ["echo"],', 1))
        await page.get_by_role("button", name="Save mail").click()
        await expect(box).to_have_count(0)
        assert "mail.echo" not in names(computer) and '"TOKEN": "s3cret"' in read(file)
        await page.get_by_role("button", name="Edit mail").click()
        await box.fill(shown.replace("TOKEN", "OTHER"))
        await expect(page.locator(".checked .problem").first).to_contain_text("env.OTHER")
        await expect(page.get_by_role("button", name="Save mail")).to_be_disabled()


async def test_removing_asks_once_more_in_its_place(browser: Browser, file: Path) -> None:
    write(file, with_comments("mail", "notes"))
    async with looking(browser, file, tab_options=PHONE) as (computer, page):
        await go(page, "servers")
        await page.get_by_role("button", name="Remove notes").click()
        keep = page.get_by_role("button", name="Keep notes")
        await expect(keep).to_be_focused()
        assert not await page.evaluate(_TOO_WIDE)
        await keep.click()
        await expect(page.get_by_role("button", name="Remove notes")).to_be_focused()
        assert written(file) == ["mail", "notes"]
        await page.get_by_role("button", name="Remove notes").click()
        await page.get_by_role("button", name="Yes: Remove notes").click()
        await expect(page.locator(".row.server")).to_have_count(1)
        assert written(file) == ["mail"] and [status.server for status in computer.statuses] == ["mail"]
        forbid_writing(file)
        await page.get_by_role("button", name="Remove mail").click()
        await page.get_by_role("button", name="Yes: Remove mail").click()
        await expect(row(page, "mail").locator(".problem")).to_contain_text("read-only")
        assert state(computer, "mail") is ServerState.RUNNING


async def test_an_office_is_joined_with_words_for_each_refusal_and_left(browser: Browser, hub: Running) -> None:
    office, other = new_office(), new_office()
    async with (
        looking(browser, door=Door()) as (computer, page),
        Computer("pc") as namesake,
        SMCPComputerClient(namesake, options(hub.url)) as client,
    ):
        await client.join_office(office)
        with async_server(APIKeyAuthentication(["r1ght"]), LIMITS) as locked:
            await go(page, "office")
            form = page.get_by_role("form", name="Join an office")
            url, place = form.get_by_label("Address of the server"), form.get_by_label("Office")
            join, problem = form.get_by_role("button", name="Join"), form.locator(".problem")
            await expect(url).to_have_value("http://127.0.0.1:1")
            await place.fill(office)
            await join.click()
            await expect(problem).to_contain_text("cannot be reached")
            await url.fill(locked.url)
            await form.get_by_label("Key of the server").fill("wrong")
            await join.click()
            await expect(problem).to_have_text("The server does not accept this key.")
            await url.fill(hub.url)
            await join.click()
            await expect(problem).to_contain_text("has this one’s name")
            await expect(page.locator("dl.facts", has_text="connected, in no office")).to_be_visible()
            await place.fill(other)
            await url.fill(locked.url)
            await form.get_by_label("Key of the server").fill("r1ght")
            await join.click()
            await expect(page.locator("dl.facts", has_text="in the office")).to_contain_text(other)
            assert "r1ght" not in await page.content()
            await page.get_by_role("button", name=f"Leave {other}").click()
            await page.get_by_role("button", name=f"Yes: Leave {other}").click()
            await expect(page.get_by_text("Not connected to a server.")).to_be_visible()
            assert computer.offices == ()


async def test_a_failed_start_is_told_in_one_place(browser: Browser) -> None:
    dying = server("mail", "dies-on-start")
    async with opened(dying, auto_connect=False) as (computer, console), tab(browser, console.link()) as page:
        await go(page, "servers")
        await page.get_by_role("button", name="Start mail").click()
        await expect(row(page, "mail").locator(".chip")).to_have_text("failed")
        reason = next(status.reason for status in computer.statuses)
        assert reason
        await expect(page.get_by_text(reason)).to_have_count(1)
        await expect(page.locator(".problem, .notice")).to_have_count(0)


async def test_a_clash_of_names_is_told_at_the_server_and_linked_from_the_tools(browser: Browser) -> None:
    clash = server("notes", tool_meta={"echo": {"alias": "mail.echo"}})
    async with opened(server("mail"), clash) as (_, console), tab(browser, console.link()) as page:
        await go(page, "tools")
        link = page.get_by_role("link", name="Tool names that clash: 1")
        await expect(page.get_by_text("Tool name duplicated")).to_have_count(0)
        await link.click()
        await expect(page.get_by_text("Tool name duplicated")).to_have_count(1)
        await expect(row(page, "notes")).to_contain_text("Tool name duplicated")
        await expect(page.locator(".notice")).to_have_count(0)


async def test_a_clash_that_comes_while_both_run_is_told_at_one_server(browser: Browser) -> None:
    async with (
        opened(server("mail"), server("notes")) as (computer, console),
        tab(browser, console.link()) as page,
    ):
        await go(page, "servers")
        await call(computer, "notes.add_tool", name="mail.echo")
        await expect(page.get_by_text("Tool name duplicated")).to_have_count(1)
        await expect(row(page, "notes")).to_contain_text("Tool name duplicated")
        await expect(page.locator(".notice")).to_have_count(0)


async def test_a_notice_that_is_shown_again_is_one_with_a_count(browser: Browser) -> None:
    referring = server("mail")
    referring["server_parameters"]["args"].append("resources=${input:count}")
    definition = PromptStringInput(id="count", type="promptString", description="d", default="1")
    async with (
        opened(referring, inputs=[definition]) as (computer, console),
        tab(browser, console.link()) as page,
    ):
        for value in ("2", "3"):
            computer.inputs.set_value("count", value)
            await expect(page.locator(".notice")).to_have_count(1)
        await expect(page.locator(".notice")).to_contain_text("(2 times)")


async def test_a_notice_that_comes_again_is_counted(browser: Browser) -> None:
    async with opened() as (_, console), tab(browser, console.link()) as page:
        counted = """async () => {
          const { EMPTY, reduce } = await import("/js/state.js");
          const message = (since, notices) => ({ kind: "changes", since, number: since + 1, now: 0, notices });
          const said = { text: "again", server: "mail", restart: false };
          let state = reduce(EMPTY, message(-1, [said, { ...said, server: "notes" }, said]), 0);
          state = reduce(state, message(0, [said]), 0);
          return state.notices.map(({ text, server, count }) => [text, server, count]);
        }"""
        assert await page.evaluate(counted) == [["again", "mail", 3], ["again", "notes", 1]]


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
async def test_the_forms_fit_a_phone_and_axe_finds_nothing(browser: Browser, file: Path, locale: str) -> None:
    look = {**PHONE, "locale": locale, "color_scheme": "dark", "reduced_motion": "reduce"}
    async with looking(browser, file, door=Door(), tab_options=look) as (_, page):
        await go(page, "servers")
        await page.locator(".head button").click()
        await page.locator("#paste").fill('"notes": {"comand": "' + "x" * 300 + '"}')
        await expect(page.locator(".checked .problem").first).to_be_visible()
        await row(page, "mail").get_by_role("button").nth(-2).click()
        await expect(page.locator("#edit-mail")).to_be_visible()
        await row(page, "mail").locator(".actions button").last.click()
        for view in ("servers", "office"):
            await go(page, view)
            assert not await page.evaluate(_TOO_WIDE), view
            if browsers.AXE.exists():
                await page.evaluate(browsers.AXE.read_text("utf-8"))
                assert await page.evaluate(_VIOLATIONS) == [], view
        if locale == "zh-CN":
            shown = await page.locator("main").inner_text()
            assert "加入办公室" in shown and "Join" not in shown
