"""The heart of the tour: a build fails in a terminal, the agent sees it without asking, and mends it."""

import asyncio
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.markup import escape

from a2c_smcp.agent import AsyncSMCPAgentClient, text_of
from a2c_smcp.demo.processes import DemoError
from a2c_smcp.utils.distribution import install_command
from a2c_smcp.utils.system import OPEN_WINDOWS

__all__ = ["can_show_terminals", "show_build", "write_build"]

_SECONDS: Final = 30
_BUILD: Final = """echo building the shop
sleep 0.3
grep -q '^price = [0-9]' shop.conf || { echo "error: shop.conf: no price"; exit 2; }
echo built
"""


def can_show_terminals() -> bool:
    """Whether this system has terminals, and the extra for them is installed."""
    return OPEN_WINDOWS.works and importlib.util.find_spec("pyghostty") is not None


def write_build(folder: Path) -> Path:
    """A folder with a build that fails, below `folder`."""
    shop = folder / "shop"
    shop.mkdir()
    (shop / "build.sh").write_text(_BUILD)
    (shop / "shop.conf").write_text("pirce = 3\n")
    return shop


async def show_build(
    title: Callable[[str], None],
    say: Callable[[str], None],
    show: Callable[[str], None],
    agent: AsyncSMCPAgentClient,
    computer: str,
) -> None:
    """Walk through it."""
    title("A build fails in a terminal, and the agent sees it without asking")
    if not can_show_terminals():
        problem = (
            f"skipped: terminals need {install_command('windows')}" if OPEN_WINDOWS.works else OPEN_WINDOWS.problem
        )
        say(escape(problem))
        return
    changed = asyncio.Event()
    agent.on("update_desktop")(lambda _: changed.set())
    await agent.wait_for_tool(computer, "terminal_open", _SECONDS)
    await _call(agent, computer, "terminal_open", name="build", command="sh build.sh")
    begun = time.monotonic()
    show(await _seen(agent, computer, changed, "terminals/build", "has failed"))
    say(f"it was on the desktop {time.monotonic() - begun:.1f} s after the start; the build alone takes 0.3 s")
    await _call(agent, computer, "terminal_open", name="mend")
    await _call(
        agent, computer, "terminal_type", name="mend", text="sed -i.bak s/pirce/price/ shop.conf; sh build.sh\n"
    )
    show(await _seen(agent, computer, changed, "terminals/mend", "+ built"))
    say("the agent typed the mend into another terminal, and saw it pass")
    for name in ("build", "mend"):
        await _call(agent, computer, "terminal_close", name=name)


async def _seen(agent: AsyncSMCPAgentClient, computer: str, changed: asyncio.Event, path: str, words: str) -> str:
    """The window, as soon as it holds the words. The agent looks only when it is told of a change."""
    async with asyncio.timeout(_SECONDS):
        while True:
            changed.clear()
            for window in await agent.get_desktop(computer):
                uri, _, body = window.partition("\n\n")
                if path in uri and words in body:
                    return window
            await changed.wait()


async def _call(agent: AsyncSMCPAgentClient, computer: str, tool: str, **arguments: object) -> None:
    result = await agent.call_tool(computer, tool, arguments, _SECONDS)
    if result.is_error:
        raise DemoError(f"{tool} failed: {text_of(result)}")
