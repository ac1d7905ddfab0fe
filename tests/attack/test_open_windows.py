"""Programs and pages in windows of `a2c windows` that mean no good, beside an honest terminal of the same server."""

import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.agent import text_of
from a2c_smcp.computer.computer import Computer
from tests import browser
from tests.attack.processes import A2C, DEADLINE
from tests.attack.spellbound_mcp import SPELL
from tests.attack.test_terminals import POWERS
from tests.windows.conftest import eventually, running_with
from tests.windows.pages import serving_pages

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="needs terminals")]
CHROMIUM = browser.find()
#: Prints without end: words that rule a terminal, questions that it would answer, and characters upon characters.
FLOOD = f"""import sys
spell = {SPELL!r} + "\\x1b]0;" + "t" * 5000 + "\\x07\\x1b[c\\x1b[6n\\x05" + "a" + "\\u0301" * 500 + "\\r\\n"
while True: sys.stdout.write(spell * 50)
"""


STUBBORN = """import signal, time
for name in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT): signal.signal(name, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


def with_browser(folder: Path) -> list[str]:
    assert CHROMIUM is not None
    chosen = [word for argument in CHROMIUM.args for word in ("--browser-arg", argument)]
    return ["--browser", "--browser-path", CHROMIUM.path, *chosen, "--downloads", str(folder)]


class Office:
    def __init__(self, computer: Computer) -> None:
        self._computer = computer

    async def call(self, tool: str, **arguments: Any) -> str:
        return text_of(await self._computer.execute_tool("r", tool, arguments, DEADLINE))

    async def works(self) -> float:
        """How long an honest terminal takes for one command."""
        begun = time.monotonic()
        await self.call("terminal_open", name="honest", command="echo $((6 * 7)) here")
        assert "42 here" in await self.call("terminal_wait", name="honest", until=["42 here"], timeout=float(DEADLINE))
        await self.call("terminal_close", name="honest")
        return time.monotonic() - begun

    async def desktop(self) -> str:
        return "\n".join(await self._computer.get_desktop())


@asynccontextmanager
async def office(folder: Path, *options: str) -> AsyncIterator[Office]:
    config = {
        "name": "windows",
        "type": "stdio",
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {
            "command": A2C,
            "args": ["windows", "--terminals", "--in", str(folder), *options],
            "env": {"PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(folder)},
        },
    }
    async with Computer("pc", mcp_servers=[config]) as computer:
        yield Office(computer)


async def test_a_program_that_prints_spells_without_end_rules_nobody(tmp_path: Path) -> None:
    (tmp_path / "flood.py").write_text(FLOOD)
    async with office(tmp_path) as attacked:
        await attacked.call("terminal_open", name="hostile", command=f"{sys.executable} flood.py")
        for _ in range(3):
            assert await attacked.works() < DEADLINE / 2
        shown = await attacked.desktop()
        assert "terminal hostile" in shown and not [power for power in POWERS if power in shown]
        assert "Closed" in await attacked.call("terminal_close", name="hostile")


@pytest.mark.skipif(CHROMIUM is None or not Path("/proc").exists(), reason=browser.MISSING)
async def test_a_computer_that_stops_leaves_no_stubborn_program_no_browser_and_no_profile(tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    async with serving_pages() as site, office(tmp_path, *with_browser(tmp_path)) as attacked:
        await attacked.call("browser_open", url=f"{site}/form")
        await attacked.call("terminal_open", name="stubborn", command=f"{sys.executable} stubborn.py {tmp_path}")
        await attacked.call("terminal_wait", name="stubborn", until=["ready"], timeout=DEADLINE)
        assert len(running_with(str(tmp_path))) >= 3

    async def is_over() -> bool:
        return not running_with(str(tmp_path))

    await eventually(is_over)
    assert [name for name in os.listdir(tmp_path) if "profile" in name] == []


@pytest.mark.skipif(CHROMIUM is None, reason=browser.MISSING)
@pytest.mark.parametrize(
    "page", ["/busy", "/alerts", "/no-height", "/odd-answers", "/opens-many", "/feed", "/long-name"]
)
async def test_a_page_that_means_no_good_costs_the_terminals_nothing(tmp_path: Path, page: str) -> None:
    async with serving_pages() as site, office(tmp_path, *with_browser(tmp_path)) as attacked:
        await attacked.call("browser_open", url=f"{site}{page}")
        for _ in range(3):
            assert await attacked.works() < DEADLINE / 2

        async def is_shown() -> bool:
            return f"{site}{page}" in await attacked.desktop()

        await eventually(is_shown)


@pytest.mark.skipif(CHROMIUM is None, reason=browser.MISSING)
async def test_a_page_that_opens_tabs_without_end_leaves_the_agent_its_own(tmp_path: Path) -> None:
    async with serving_pages() as site, office(tmp_path, *with_browser(tmp_path)) as attacked:
        await attacked.call("browser_open", url=f"{site}/opens-many")

        async def is_full() -> bool:
            return (await attacked.desktop()).count("/tabs/") >= 19

        await eventually(is_full)
        for _ in range(3):
            assert "# Order" in await attacked.call("browser_open", url=f"{site}/form", new_tab=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has no sandbox")
async def test_a_page_meets_no_browser_without_a_sandbox_unless_a_person_said_so(tmp_path: Path) -> None:
    """A page that breaks out of a browser of root owns the machine."""
    path = ["--browser", "--browser-path", CHROMIUM.path if CHROMIUM is not None else "/bin/false"]
    async with serving_pages() as site, office(tmp_path, *path) as attacked:
        assert "--browser-arg=--no-sandbox" in await attacked.call("browser_open", url=f"{site}/form")
        assert await attacked.works() < DEADLINE / 2
