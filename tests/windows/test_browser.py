"""Tabs of a real Chromium, as an agent meets them. One browser for all tests of this file."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp import Client

from a2c_smcp.errors import BadRequestError
from a2c_smcp.windows.browser.chromium import BrowserOptions, browser_context, sandbox_problem
from a2c_smcp.windows.browser.dialogs import DialogPace
from a2c_smcp.windows.browser.outline import Outline, References, checked_address, file_name, parse_reference
from a2c_smcp.windows.browser.tabs import MOST_TABS
from a2c_smcp.windows.server import WindowsOptions, windows_server
from tests import browser
from tests.computer.fakes.processes import children
from tests.nats_server import free_ports
from tests.windows.conftest import ENVIRONMENT, Desk, eventually, running_with
from tests.windows.pages import serving_pages

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

pytestmark = pytest.mark.anyio
CHROMIUM = browser.find()
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason=browser.MISSING)

# --- decisions


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("https://example.com/a?b#c", "https://example.com/a?b#c"),
        ("example.com/a", "https://example.com/a"),
        (" http://127.0.0.1:8000 ", "http://127.0.0.1:8000"),
    ],
)
def test_addresses_of_the_web_are_opened(typed: str, address: str) -> None:
    assert checked_address(typed) == address


@pytest.mark.parametrize(
    "typed",
    ["file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "chrome://settings", "", "http://", "http://a:b"],
)
def test_files_and_scripts_are_not_for_agents(typed: str) -> None:
    with pytest.raises(BadRequestError):
        checked_address(typed)


def test_references_are_read_as_the_window_shows_them() -> None:
    assert parse_reference("e12") == parse_reference("[e12]") == 12
    with pytest.raises(BadRequestError, match="no reference"):
        parse_reference("button")


def test_a_page_may_answer_anything() -> None:
    assert Outline.of([("", None), ("f1", [1])]) == Outline("", ("",))
    assert Outline.of([("", {"text": 5, "title": {}, "scroll": ["x", None, {}]})]) == Outline("", ("",))
    for scroll in ([0, -1, 0], [0, 0, 0], [-5, 10, -3]):
        assert Outline.of([("", {"scroll": scroll})]).scrolled == ""


def test_a_reference_belongs_to_one_frame_and_is_never_given_again() -> None:
    references: References[str] = References()
    assert references.begin("page") == 1
    references.end(4)
    assert references.begin("frame") == 4
    references.end(4)
    assert references.begin("frame") == 4
    references.end(6)
    assert [references.place(number) for number in (1, 3, 4, 5, 6)] == ["page", "page", "frame", "frame", None]


@pytest.mark.parametrize("answered", [None, "many", -1, 10**12, 2.5])
def test_a_frame_that_does_not_say_how_many_references_it_gave_keeps_its_numbers(answered: object) -> None:
    references: References[str] = References()
    references.begin("hostile")
    references.end(answered)
    first = references.begin("page")
    assert first > 50_000 and references.place(first - 1) == "hostile" and references.place(first) == "page"


@pytest.mark.parametrize(
    ("suggested", "name"),
    [
        ("report.csv", "report.csv"),
        ("../../.bashrc", "bashrc"),
        ("a\\b\\c.txt", "c.txt"),
        ("", "download"),
        ("n" * 400 + ".txt", "n" * 196 + ".txt"),
        ("中" * 100, "中" * 66),
    ],
)
def test_a_download_gets_a_name_that_every_disk_takes(suggested: str, name: str) -> None:
    assert file_name(suggested) == name


def test_dialogs_in_a_loop_are_not_shown() -> None:
    pace = DialogPace(most=2, within=10.0)
    assert [pace.shows(now) for now in (0.0, 1.0, 2.0, 3.0, 20.0)] == [True, True, False, False, True]


# --- a real browser


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@asynccontextmanager
async def _desk(folder: Path) -> AsyncIterator[Desk]:
    assert CHROMIUM is not None
    options = BrowserOptions(path=CHROMIUM.path, arguments=CHROMIUM.args, downloads=folder)
    environment = ENVIRONMENT | CHROMIUM.env
    server = windows_server(WindowsOptions(folder=folder, browser=options, environment=environment, terminals=True))
    async with Client(server.mcp) as client:
        yield Desk(client)


@pytest.fixture(scope="module")
async def one_browser(downloads: Path) -> AsyncIterator[Desk]:
    async with _desk(downloads) as desk:
        yield desk


@pytest.fixture
async def desk(one_browser: Desk) -> AsyncIterator[Desk]:
    yield one_browser
    for uri in await one_browser.uris():
        await one_browser.client.call_tool("browser_close", {"tab": int(uri.split("?")[0].rpartition("/")[2])})


@pytest.fixture(scope="module")
async def site() -> AsyncIterator[str]:
    async with serving_pages() as address:
        yield address


def _ref(window: str, what: str) -> str:
    found = re.search(rf"\[(e\d+)\] {re.escape(what)}", window)
    assert found is not None, window
    return found[1]


def _path(opened: str) -> str:
    return f"tabs/{_number(opened)}"


def _number(opened: str) -> str:
    found = re.search(r"tab (\d+)", opened)
    assert found is not None
    return found[1]


@in_a_browser
async def test_a_form_is_filled_in_and_sent(desk: Desk, site: str) -> None:
    shown = await desk.call("browser_open", url=f"{site}/form")
    assert "# Order" in shown and "Please fill in the form." in shown and "| Tea | 3 |" in shown
    assert "not shown" not in shown and "nor this" not in shown and "1234" not in shown
    assert 'password "Secret" (filled in)' in shown and 'checkbox "As a gift": off' in shown
    await desk.call("browser_fill", ref=_ref(shown, 'field "Name'), text="Ada")
    await desk.call("browser_fill", ref=_ref(shown, 'select "Size'), text="Large")
    shown = await desk.call("browser_click", ref=_ref(shown, 'checkbox "As a gift'))
    assert 'field "Name": "Ada"' in shown and '"Large" of Small | Large' in shown and '"As a gift": on' in shown
    shown = await desk.call("browser_click", ref=_ref(shown, 'button "Save"'))
    shown = await desk.until(_path(shown), "# Thank you", "Ada")
    assert "# Order" in await desk.call("browser_back")


@in_a_browser
async def test_frames_and_shadow_trees_are_part_of_the_page(desk: Desk, site: str) -> None:
    opened = await desk.call("browser_open", url=f"{site}/frames")
    shown = await desk.until(_path(opened), "outside", "# Order", "In the shadow")
    await desk.call("browser_fill", ref=_ref(shown, 'field "Name'), text="inside")
    await desk.until(_path(opened), '"inside"')


@in_a_browser
async def test_a_dialog_waits_for_an_answer(desk: Desk, site: str) -> None:
    opened = await desk.call("browser_open", url=f"{site}/ask")
    shown = await desk.call("browser_click", ref=_ref(opened, 'button "Delete"'))
    assert "shows a dialog (confirm): 'Really?'" in shown
    assert "yes" in await desk.call("browser_dialog", accept=True)
    assert "no dialog" in await desk.refused("browser_dialog", accept=True)


@in_a_browser
async def test_a_reference_to_what_is_gone_is_refused_at_once(desk: Desk, site: str) -> None:
    opened = await desk.call("browser_open", url=f"{site}/changing")
    old = _ref(opened, 'button "Old"')
    await desk.call("browser_click", ref=_ref(opened, 'link "Replace"'))
    assert "not on the page any more" in await desk.refused("browser_click", ref=old)
    assert "no tab 999" in await desk.refused("browser_click", ref=old, tab=999)


@in_a_browser
async def test_long_lists_are_folded_and_read_whole_as_markdown(desk: Desk, site: str) -> None:
    shown = await desk.call("browser_open", url=f"{site}/table")
    assert "- item 0" in shown and "… 175 more" in shown and "item 150" not in shown
    assert "- item 199" in await desk.call("browser_read")


@in_a_browser
async def test_a_page_of_200000_nodes_is_cut_at_its_budget(desk: Desk, site: str) -> None:
    number = _number(await desk.call("browser_open", url=f"{site}/feed"))
    assert len(await desk.until(f"tabs/{number}", "row 1", "more")) < 10_000
    await desk.call("browser_close")


@in_a_browser
async def test_a_page_that_changes_by_itself_is_told_of_twice_a_second_at_most(desk: Desk, site: str) -> None:
    number = _number(await desk.call("browser_open", url=f"{site}/clock"))
    [uri] = [uri for uri in await desk.uris() if uri.split("?")[0].endswith(f"tabs/{number}")]
    loop = asyncio.get_running_loop()
    async with desk.client.listen(resource_subscriptions=[uri]) as told, asyncio.timeout(60):
        begun, count = loop.time(), 0
        async for _ in told:
            count += 1
            if count == 4:
                break
    assert loop.time() - begun > 1.0
    await desk.call("browser_close")


@in_a_browser
async def test_new_tabs_pictures_and_downloads(desk: Desk, site: str, downloads: Path) -> None:
    opened = await desk.call("browser_open", url=f"{site}/popup")
    await desk.call("browser_click", ref=_ref(opened, 'link "Elsewhere"'))
    await desk.until(f"tabs/{int(_number(opened)) + 1}", "# Order")
    result = await desk.client.call_tool("browser_screenshot", {})
    assert [content.type for content in result.content] == ["image"]
    opened = await desk.call("browser_open", url=f"{site}/file")
    await desk.call("browser_click", ref=_ref(opened, 'link "Report"'))
    await desk.until(_path(opened), "Downloaded 'report.csv'")
    assert (downloads / "report.csv").read_text() == "a,b\n"


@in_a_browser
async def test_hostile_pages_cost_nobody_else_anything(desk: Desk, site: str) -> None:
    busy = _number(await desk.call("browser_open", url=f"{site}/busy"))
    alerts = _number(await desk.call("browser_open", url=f"{site}/alerts"))
    await desk.until(f"tabs/{alerts}", "shows a dialog")
    for _ in range(8):
        result = await desk.client.call_tool("browser_dialog", {"accept": True, "tab": int(alerts)})
        if result.is_error:
            break
    shown = await desk.call("browser_open", url=f"{site}/form")
    assert "# Order" in shown
    await desk.until(f"tabs/{busy}", "does not answer")
    await desk.until(f"tabs/{alerts}", "dialogs in a loop")


@in_a_browser
async def test_an_old_reference_never_means_something_on_a_new_page(desk: Desk, site: str) -> None:
    opened = await desk.call("browser_open", url=f"{site}/cancel")
    await desk.call("browser_open", url=f"{site}/delete", new_tab=False)
    assert "not on the page any more" in await desk.refused("browser_click", ref=_ref(opened, 'button "Cancel"'))
    assert "Delete everything" in await desk.until(_path(opened), "tab")


@in_a_browser
async def test_a_page_that_opens_another_does_not_turn_clicks_to_it(desk: Desk, site: str) -> None:
    opened = await desk.call("browser_open", url=f"{site}/opens-another")
    await desk.until(f"tabs/{int(_number(opened)) + 1}", "Delete everything")
    assert "This is the current tab." in await desk.window(_path(opened))
    await desk.call("browser_click", ref=_ref(opened, 'button "Here"'))
    await desk.call("browser_open", url=f"{site}/form")
    await desk.call("browser_close")
    assert "no current tab" in await desk.refused("browser_press", key="Enter")


@in_a_browser
async def test_a_page_that_opens_others_without_end_gets_so_many_windows(tmp_path: Path, site: str) -> None:
    async with _desk(tmp_path) as desk:
        opened = await desk.call("browser_open", url=f"{site}/opens-many")

        async def has_most() -> bool:
            return len(await desk.uris()) >= MOST_TABS

        await eventually(has_most)
        for _ in range(20):
            assert len(await desk.uris()) <= MOST_TABS
            await asyncio.sleep(0.05)
        assert "# Order" in await desk.call("browser_open", url=f"{site}/form")  # the agent's own share is free
        await desk.until(_path(opened), "It opened another tab, which was closed")
        await desk.call("browser_close", tab=int(_number(opened)))


@in_a_browser
@pytest.mark.parametrize("page", ["/no-height", "/odd-answers"])
async def test_what_a_page_says_of_itself_ends_nothing(desk: Desk, site: str, page: str) -> None:
    await desk.client.call_tool("browser_open", {"url": f"{site}{page}"})
    assert "# Order" in await desk.call("browser_open", url=f"{site}/form")


@in_a_browser
async def test_downloads_of_one_name_and_of_a_long_name_are_kept(desk: Desk, site: str, downloads: Path) -> None:
    opened = await desk.call("browser_open", url=f"{site}/two-files")
    await desk.call("browser_click", ref=_ref(opened, 'button "Both"'))
    await desk.until(_path(opened), "Downloaded 'report-")
    opened = await desk.call("browser_open", url=f"{site}/long-name")
    await desk.call("browser_click", ref=_ref(opened, 'link "Get"'))
    await desk.until(_path(opened), "Downloaded 'nnn")
    assert {"report.csv", "report-2.csv", "n" * 196 + ".bin"} <= set(os.listdir(downloads))


@in_a_browser
async def test_nothing_is_done_while_a_dialog_is_open_and_the_tab_can_be_closed(desk: Desk, site: str) -> None:
    opened = await desk.call("browser_open", url=f"{site}/alert")
    await desk.until(_path(opened), "look here")
    for tool, arguments in (
        ("browser_press", {"key": "a"}),
        ("browser_back", {}),
        ("browser_open", {"url": f"{site}/form", "new_tab": False}),
        ("browser_click", {"ref": "e1"}),
        ("browser_read", {}),
    ):
        assert "browser_dialog first" in await desk.refused(tool, **arguments)
    assert "Closed" in await desk.call("browser_close")
    await asyncio.sleep(0)
    assert await desk.uris() == []


@in_a_browser
async def test_going_back_from_the_first_page_says_so(desk: Desk, site: str) -> None:
    opened = await desk.call("browser_open", url=f"{site}/cancel")
    await desk.call("browser_back")
    assert "Nothing changed" in await desk.call("browser_back") and opened


@in_a_browser
async def test_whatever_can_be_acted_on_has_a_reference(desk: Desk, site: str) -> None:
    shown = await desk.call("browser_open", url=f"{site}/parts")
    assert "## Headline" in shown and "| Tea | Buy tea |" in shown and "# Laid out" in shown
    assert "+     return 1" in shown
    assert _ref(shown, 'link "Headline"') and _ref(shown, 'button "Buy tea"')
    assert '[e1] button "Not one"' not in shown
    await desk.call("browser_click", ref=_ref(shown, 'clickable "A box"'))
    await desk.until(_path(shown), "tab", ": clicked")


@in_a_browser
async def test_what_is_slotted_into_a_shadow_tree_is_shown_and_its_changes_are_seen(desk: Desk, site: str) -> None:
    opened = await desk.call("browser_open", url=f"{site}/slots")
    shown = await desk.until(_path(opened), "around", "Between the tags", 'button "Save"', "turn")
    [turn] = re.findall(r"turn \d+", shown)

    async def has_changed() -> bool:
        return turn not in await desk.window(_path(opened))

    await eventually(has_changed)


@in_a_browser
async def test_a_long_page_shows_its_top_and_where_the_focus_is(desk: Desk, site: str) -> None:
    shown = await desk.call("browser_open", url=f"{site}/long")
    assert "# The top" in shown and 'field "Bottom"' in shown and "At the very end" in shown
    assert len(shown) < 8_300


@in_a_browser
async def test_a_long_frame_does_not_hide_the_page_around_it(desk: Desk, site: str) -> None:
    opened = await desk.call("browser_open", url=f"{site}/long-frame")
    shown = await desk.until(_path(opened), "# The top")
    assert "# The page itself" in shown and "important" in shown


@in_a_browser
async def test_an_endless_feed_is_shown_where_it_was_scrolled_to(desk: Desk, site: str) -> None:
    opened = await desk.call("browser_open", url=f"{site}/endless")
    assert "- entry 0\n" in opened and "entry 40" not in opened
    for _ in range(3):
        await desk.call("browser_press", key="End")
    shown = await desk.until(_path(opened), "above", "entry 8")
    assert "- entry 0\n" not in shown
    await desk.call("browser_press", key="Home")
    await desk.until(_path(opened), "- entry 0")


@in_a_browser
async def test_cancelling_the_first_page_ends_neither_the_browser_nor_the_terminals(tmp_path: Path, site: str) -> None:
    async with _desk(tmp_path) as desk:
        await desk.call("terminal_open", name="sh")
        opening = asyncio.create_task(desk.call("browser_open", url=f"{site}/form"))
        await asyncio.sleep(0.1)
        opening.cancel()
        await asyncio.wait({opening})
        assert "# Order" in await desk.call("browser_open", url=f"{site}/form")
        assert "Typed" in await desk.call("terminal_type", name="sh", text="x")


@in_a_browser
async def test_a_browser_has_no_secret_of_the_environment_and_leaves_nothing_behind(
    tmp_path: Path, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CHROMIUM is not None
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("DEPLOY_TOKEN", "tell-nobody")
    options = BrowserOptions(path=CHROMIUM.path, arguments=[*CHROMIUM.args, f"--user-agent={tmp_path.name}-mine"])
    environment = {**os.environ, **CHROMIUM.env}
    server = windows_server(WindowsOptions(folder=tmp_path, browser=options, environment=environment))
    async with Client(server.mcp) as client:
        await Desk(client).call("browser_open", url=f"{site}/form")
        running = running_with(f"{tmp_path.name}-mine")
        assert running and not any(b"tell-nobody" in (process / "environ").read_bytes() for process in running)

    async def is_over() -> bool:
        return not running_with(f"{tmp_path.name}-mine")

    await eventually(is_over)
    assert [name for name in os.listdir(tmp_path) if "profile" in name] == []


def test_chromium_has_its_sandbox_and_as_root_it_does_not_start_without_a_word_of_the_person() -> None:
    assert sandbox_problem([], 1000) is None
    assert "--browser-arg" in (sandbox_problem(["--no-sandbox"], 1000) or "")
    assert "--browser-arg" in (sandbox_problem(["--no-sandbox"], 0) or "")
    with pytest.raises(ValueError, match="as another user, or give --browser-arg=--no-sandbox"):
        sandbox_problem([], 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has no sandbox")
async def test_an_agent_of_root_is_told_why_no_browser_starts(tmp_path: Path) -> None:
    options = WindowsOptions(folder=tmp_path, browser=BrowserOptions(path="/bin/false"), environment=ENVIRONMENT)
    async with Client(windows_server(options).mcp) as client:
        refused = await client.call_tool("browser_open", {"url": "http://127.0.0.1:9/"})
        assert refused.is_error and "give --browser-arg=--no-sandbox" in str(refused.content)


@pytest.mark.parametrize("folder", ["t", "t" * 120])
async def test_a_browser_has_a_short_folder_and_its_last_words_are_passed_on(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chromium makes a socket in its temporary folder: the address may have 108 bytes."""
    long = tmp_path / folder
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    program = tmp_path / "chromium"
    program.write_text(
        f'#!/bin/sh\necho "$TMPDIR" > {tmp_path}/folder\necho first >&2\necho "no display here" >&2\nexit 1\n'
    )
    program.chmod(0o755)
    options = BrowserOptions(path=str(program), arguments=["--no-sandbox"])
    server = windows_server(WindowsOptions(folder=tmp_path, browser=options, environment=dict(os.environ)))
    async with Client(server.mcp) as client:
        refused = await client.call_tool("browser_open", {"url": "http://127.0.0.1:9/"})
    assert refused.is_error and "has been closed: no display here" in str(refused.content)
    own = Path((tmp_path / "folder").read_text().strip())
    assert len(str(own)) < 40 and own.name not in os.listdir(own.parent)


@in_a_browser
async def test_a_browser_of_the_persons_survives_with_its_tabs_and_may_come_later(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.async_api import async_playwright

    assert CHROMIUM is not None
    monkeypatch.setattr("a2c_smcp.windows.browser.tabs._TRY_AGAIN", 0.2)
    [port] = free_ports(1)
    options = BrowserOptions(url=f"http://127.0.0.1:{port}")
    server = windows_server(WindowsOptions(folder=tmp_path, browser=options, environment=ENVIRONMENT))
    async with async_playwright() as playwright:

        async def start() -> "BrowserContext":
            assert CHROMIUM is not None
            args = [*CHROMIUM.args, f"--remote-debugging-port={port}"]
            own = await playwright.chromium.launch_persistent_context(
                str(tmp_path / "profile"), executable_path=CHROMIUM.path, args=args, headless=True
            )
            await own.pages[0].goto(f"{site}/form")
            return own

        async with Client(server.mcp) as client:
            desk = Desk(client)
            await desk.until("tabs/problem", "your browser are not shown", "did not start")
            own = await start()
            await desk.until("tabs/1", "# Order")
            assert not any("problem" in uri for uri in await desk.uris())
            await own.close()
            await desk.until("tabs/problem", "has ended")
            own = await start()
            await desk.until("tabs/2", "# Order")
        assert await own.pages[0].title() == "Order"
        await own.close()


@in_a_browser
async def test_a_browser_that_nobody_wants_any_more_while_it_starts_leaves_no_process() -> None:
    assert CHROMIUM is not None
    options, before = BrowserOptions(path=CHROMIUM.path, arguments=CHROMIUM.args), children()
    for seconds in (0.0, 0.02, 0.1, 0.3):
        with anyio.move_on_after(seconds):
            async with browser_context(options, ENVIRONMENT):
                pass
        async with asyncio.timeout(60):
            while children() - before:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.05)
