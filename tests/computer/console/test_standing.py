"""The page says in every view how both ways are: to the computer, and from there to the office."""

from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, expect

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.computer.watching.events import OfficeStatus
from a2c_smcp.computer.watching.office_states import OfficeStates
from a2c_smcp.link.interface import Connected, Disconnected, Joined, Membership
from a2c_smcp.server.auth import OpenAuthentication
from tests.computer.console.harness import go, opened, tab
from tests.computer.console.test_live import _cut
from tests.computer.fakes.offices import new_office, options
from tests.server.conftest import LIMITS
from tests.server.harness import async_server

VIEWS = ("decisions", "calls", "servers", "tools", "desktop", "finder", "office")


def test_a_state_is_known_since_it_began_and_not_since_it_was_told_again() -> None:
    states, url = OfficeStates(), "http://host:7000"
    states.hear("1", url, Connected(url), 10.0)
    states.hear("1", url, Joined(Membership("computer", "pc", "lab"), again=False), 11.0)
    states.hear("1", url, Disconnected("gone", final=False), 20.0)
    assert states.hear("1", url, Disconnected("refused", final=True), 30.0).since == 20.0
    assert states.statuses == (OfficeStatus("1", "disconnected", url, "lab", "pc", "refused", True),)


async def test_an_office_whose_server_is_gone_is_said_in_every_view_until_it_is_back(browser: Browser) -> None:
    async with opened() as (computer, console), tab(browser, console.link()) as page:
        status, waiting = page.locator(".status"), page.locator(".waiting")
        await expect(status).to_have_text("Live, in no office")
        with ExitStack() as first:
            url = first.enter_context(async_server(OpenAuthentication(), LIMITS)).url
            async with SMCPComputerClient(computer, options(url)) as client:
                await client.join_office(new_office())
                await expect(status).to_have_text("Live")
                await expect(waiting).to_have_text("Nothing waiting")
                first.close()
                for view in VIEWS:
                    await go(page, view)
                    await expect(status).to_contain_text("No office since ")
                    await expect(status).to_contain_text("trying again")
                    await expect(status).to_have_attribute("data-trouble", "")
                    await expect(waiting).to_have_text("Nothing known")
                    cards = page.locator(".decisions")
                    await expect(cards).to_contain_text("Nothing waits for you that this page knows of.")
                    await expect(cards).to_contain_text(f"no connection to the server {url} since ")
                    await expect(cards).to_contain_text("It tries again every few seconds.")
                with async_server(OpenAuthentication(), LIMITS, urlsplit(url).port or 0):
                    await expect(status).to_have_text("Live")
                    await expect(waiting).to_have_text("Nothing waiting")
                    await expect(page.locator(".ways")).to_contain_text("The computer is in the office ")


@pytest.mark.parametrize(
    ("locale", "short", "known", "ways"),
    [
        ("en-US", "No computer since ", "Nothing known", ["does not answer", "next try in", "heard last:"]),
        ("zh-CN", "断开", "未得知有待决", ["没有回应此页面", "后重试", "最后得知："]),
    ],
)
async def test_a_computer_that_is_gone_is_said_with_the_next_try(
    browser: Browser, locale: str, short: str, known: str, ways: list[str]
) -> None:
    async with opened() as (computer, console), tab(browser, console.link(), locale=locale) as page:
        _joined(computer)
        await go(page, "office")
        await page.context.set_offline(True)
        await _cut(console)
        await expect(page.locator(".status [role=status]")).to_contain_text(short)
        await expect(page.locator(".waiting")).to_have_text(known)
        for said in ways:
            await expect(page.locator(".ways")).to_contain_text(said)
        await page.context.set_offline(False)
        await expect(page.locator(".status:not([data-trouble])")).to_have_count(1)


async def test_an_office_that_is_gone_is_said_in_chinese_sentences_without_blanks(browser: Browser) -> None:
    async with opened() as (computer, console), tab(browser, console.link(), locale="zh-CN") as page:
        _joined(computer)
        computer.office_heard("1", "https://office.example", Disconnected("transport close", final=False))
        for view in ("office", "decisions"):
            await go(page, view)
            await expect(page.locator(".status")).to_contain_text("正在重试")
            for place in (".ways", ".decisions") if view == "office" else (".decisions",):
                await expect(page.locator(place)).to_contain_text("断开，智能体无法使用它。它每隔几秒重试一次。")


async def test_who_does_not_try_again_says_so_on_a_phone_as_well(browser: Browser) -> None:
    phone = {"width": 390, "height": 800}
    async with opened() as (computer, console), tab(browser, console.link(), viewport=phone) as page:
        _joined(computer)
        computer.office_heard("1", "https://office.example", Disconnected("the server refused the key", final=True))
        await expect(page.locator(".status")).to_contain_text("not tried again")
        assert await _is_in_sight(page)
        # A long name leaves room for everything, in two lines.
        await page.evaluate("document.querySelector('.computer').textContent = 'the-laptop-of-the-whole-studio'")
        assert await page.evaluate(_FITS) == [True, True]
        await page.locator(".status").click()
        await expect(page.locator(".ways")).to_contain_text("It does not try again by itself: join the office again")
        await expect(page.locator("dl.facts .chip")).to_have_text("disconnected, not tried again")


_FITS = """() => {
  const [header, status, waiting] = [".top", ".status", ".waiting"].map((each) =>
    document.querySelector(each).getBoundingClientRect());
  return [status.bottom <= header.bottom && status.top >= waiting.bottom, waiting.right <= innerWidth];
}"""


def _joined(computer: Computer) -> None:
    computer.office_heard("1", "https://office.example", Connected("https://office.example"))
    computer.office_heard("1", "https://office.example", Joined(Membership("computer", "pc", "lab"), again=False))


async def _is_in_sight(page: Page) -> bool:
    box = await page.locator(".status").bounding_box()
    return box is not None and box["width"] > 60 and box["height"] > 8
