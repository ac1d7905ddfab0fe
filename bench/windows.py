"""What is open as windows: a terminal at full speed, the outline of a tab, and the same tasks beside servers that an
agent must ask again and again.
"""

import asyncio
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent, TextResourceContents

from a2c_smcp.computer.computer import Computer
from a2c_smcp.windows.browser.outline import WalkerLimits
from a2c_smcp.windows.browser.tab import WALKER
from bench.process import A2C, ROOT
from tests.browser import find
from tests.windows.pages import serving_pages

#: MCP servers for terminals and browsers that an agent polls.
POLLED: Final = ROOT / ".node-windows" / "node_modules"
_SHELL: Final = POLLED / "@mako10k" / "mcp-shell-server" / "dist" / "index.js"
_BROWSER: Final = POLLED / ".bin" / "playwright-mcp"
_SECONDS: Final = 300
#: A build that prints, and fails after `{0}` seconds.
_BUILD: Final = "for i in $(seq {0}); do echo compiling part $i; sleep 1; done; echo 'error: no price'; exit 2"
#: How often an agent asks where it has to ask.
_POLL: Final = 2.0


# --- a terminal at full speed


async def flood(megabytes: int) -> dict[str, dict[str, Any]]:
    """So many megabytes through a terminal: how long, how many changes were told, and what it costs the computer."""
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "name": "windows",
            "type": "stdio",
            "default_tool_meta": {"auto_apply": True},
            "server_parameters": {"command": A2C, "args": ["windows", "--terminals", "--in", folder]},
        }
        async with Computer("pc", mcp_servers=[config]) as computer:
            command = f"yes 'a line of a build that prints much' | head -c {megabytes * 10**6}; echo 'all is said'"
            cpu, begun = time.process_time(), time.monotonic()
            await computer.execute_tool("r1", "terminal_open", {"name": "flood", "command": command}, 60)
            wait = {"name": "flood", "until": ["all is said"], "timeout": _SECONDS}
            await computer.execute_tool("r2", "terminal_wait", wait, _SECONDS)
            took, used = time.monotonic() - begun, time.process_time() - cpu
    return {
        "ours": {
            f"{megabytes} MB through a terminal, s": took,
            "CPU of the computer meanwhile, % of a core": 100 * used / took,
        }
    }


# --- the outline of a tab


async def outlines(rounds: int) -> dict[str, dict[str, Any]]:
    """The outline of large pages, beside Playwright's own snapshot."""
    from playwright.async_api import async_playwright

    chromium = find()
    if chromium is None:
        return {"ours": {}}
    pages = {
        "5,000 nodes": "".join(f"<p>row {number} <a href=/{number}>link {number}</a></p>" for number in range(2500)),
        "200,000 nodes": "<script>for (let i = 0; i < 200000; i++) document.body.append(i, ' ')</script>",
    }
    figures: dict[str, dict[str, Any]] = {"ours": {}, "Playwright's snapshot": {}}
    options = WalkerLimits().options()
    async with async_playwright() as playwright, await playwright.chromium.launch(**chromium.launch) as browser:
        for title, body in pages.items():
            page = await browser.new_page()
            await page.set_content(f"<!doctype html><body>{body}")
            figures["ours"][f"{title}, ms"] = await _median(rounds, lambda page=page: page.evaluate(WALKER, options))  # type: ignore[misc]
            if title.startswith("5,000"):
                snapshot = page.locator("body").aria_snapshot
                figures["Playwright's snapshot"][f"{title}, ms"] = await _median(rounds, snapshot)
            await page.close()
    return figures


async def _median(rounds: int, action: Callable[[], Awaitable[Any]]) -> float:
    await action()
    times = []
    for _ in range(rounds):
        begun = time.monotonic()
        await action()
        times.append(time.monotonic() - begun)
    return 1000 * sorted(times)[rounds // 2]


# --- the same tasks beside servers that are polled


@dataclass(slots=True)
class _Model:
    """What a model would have to do: turns, and the characters that it reads and writes."""

    client: Client
    turns: int = 0
    characters: int = 0

    async def call(self, tool: str, **arguments: Any) -> str:
        self.turns += 1
        result = await self.client.call_tool(tool, arguments)
        text = "\n".join(content.text for content in result.content if isinstance(content, TextContent))
        self.characters += len(json.dumps(arguments)) + len(text)
        if result.is_error:
            raise SystemExit(f"{tool} failed: {text[:500]}")
        return text

    async def tools(self) -> int:
        tools = (await self.client.list_tools()).tools
        return sum(len(json.dumps(tool.model_dump(mode="json", by_alias=True, exclude_none=True))) for tool in tools)

    def figures(self, **more: float) -> dict[str, float]:
        return {"turns of the model": self.turns, "characters that it reads and writes": self.characters, **more}


@asynccontextmanager
async def _server(command: str, *arguments: str, legacy: bool = False, **more: str) -> AsyncIterator[_Model]:
    # Without these words the shell server wants a model of its own to judge every command.
    env = {**os.environ, "MCP_SHELL_SECURITY_MODE": "permissive", "MCP_SHELL_ENHANCED_MODE": "false"} | more
    parameters = StdioServerParameters(
        command="sh",
        cwd=tempfile.gettempdir(),
        args=["-c", 'exec "$@" 2>/dev/null', "sh", command, *arguments],
        env=env,
    )
    async with Client(stdio_client(parameters), mode="legacy" if legacy else "auto", cache=None) as client:
        yield _Model(client)


async def build_fails(seconds: int, *, beside: bool) -> dict[str, dict[str, Any]]:
    """An agent starts a build and wants to know that it has failed, and why."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        async with _server(A2C, "windows", "--terminals", "--in", folder) as model:
            figures["ours"] = await _watched_build(model, seconds)
        if beside:
            async with _server("node", str(_SHELL), legacy=True, MCP_SHELL_ALLOWED_WORKDIRS=folder) as model:
                figures["mcp-shell-server"] = await _polled_build(model, seconds, folder)
    return figures


async def _watched_build(model: _Model, seconds: int) -> dict[str, float]:
    begun = time.monotonic()
    await model.call("terminal_open", name="build", command=_BUILD.format(seconds))
    async with asyncio.timeout(_SECONDS), model.client.listen(resources_list_changed=True) as changes:
        # The program that runs the model hears of changes, and wakes the model when a window's priority has changed.
        async for _ in changes:
            resources = (await model.client.list_resources()).resources
            if failed := [each.uri for each in resources if "priority=70" in each.uri]:
                break
    [content] = (await model.client.read_resource(failed[0])).contents
    assert isinstance(content, TextResourceContents)
    assert "error: no price" in content.text
    model.turns += 1
    model.characters += len(content.text)
    return model.figures(**{"known after the failure, s": time.monotonic() - begun - seconds})


async def _polled_build(model: _Model, seconds: int, folder: str) -> dict[str, float]:
    begun = time.monotonic()
    command = _BUILD.format(seconds)
    said = await model.call(
        "shell_execute", command=command, execution_mode="background", working_directory=folder, timeout_seconds=120
    )
    found = re.search(r'"execution_id"\s*:\s*"([^"]+)"', said)
    assert found is not None, said
    while True:
        await asyncio.sleep(_POLL)
        said = await model.call("process_get_execution", execution_id=found[1])
        if re.search(r'"status"\s*:\s*"(failed|completed)"', said):
            break
    known = time.monotonic() - begun - seconds
    if "error: no price" not in said and (output := re.search(r'"output_id"\s*:\s*"([^"]+)"', said)):
        await model.call("read_execution_output", output_id=output[1])
    return model.figures(**{"known after the failure, s": known})


async def form(*, beside: bool) -> dict[str, dict[str, Any]]:
    """An agent opens a page with a form, fills it in, sends it, and reads the answer."""
    chromium = find()
    if chromium is None:
        return {"ours": {}}
    figures = {}
    args = [word for argument in chromium.args for word in ("--browser-arg", argument)]
    async with serving_pages() as site:
        async with _server(A2C, "windows", "--browser", "--browser-path", chromium.path, *args) as model:
            shown = await model.call("browser_open", url=f"{site}/form")
            await model.call("browser_fill", ref=_ref(shown, r"\[(e\d+)\] field \"Name"), text="Ada")
            await model.call("browser_fill", ref=_ref(shown, r"\[(e\d+)\] select \"Size"), text="Large")
            shown = await model.call("browser_click", ref=_ref(shown, r"\[(e\d+)\] button \"Save"))
            assert "Thank you" in shown
            figures["ours"] = model.figures(**{"characters of the tools' descriptions": await model.tools()})
        if beside:
            options = ("--headless", "--no-sandbox", "--isolated", "--executable-path", chromium.path)
            async with _server(str(_BROWSER), *options, legacy=True) as model:
                shown = await model.call("browser_navigate", url=f"{site}/form")
                shown = shown if "ref=" in shown else await model.call("browser_snapshot")
                name, size = (
                    _ref(shown, r"textbox \"Name[^\n]*\[ref=(\w+)\]"),
                    _ref(shown, r"combobox[^\n]*\[ref=(\w+)\]"),
                )
                save = _ref(shown, r"button \"Save[^\n]*\[ref=(\w+)\]")
                await model.call("browser_type", element="Name", target=name, text="Ada")
                await model.call("browser_select_option", element="Size", target=size, values=["Large"])
                shown = await model.call("browser_click", element="Save", target=save)
                shown = shown if "Thank you" in shown else await model.call("browser_snapshot")
                assert "Thank you" in shown
                figures["@playwright/mcp"] = model.figures(
                    **{"characters of the tools' descriptions": await model.tools()}
                )
    return figures


def _ref(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, text
    return found[1]


def can_compare() -> bool:
    """Whether the servers that are polled are installed."""
    built = POLLED / "node-pty" / "build" / "Release" / "pty.node"
    return built.exists() and _SHELL.exists() and _BROWSER.exists() and shutil.which("node") is not None


def run(action: Awaitable[dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    async def main() -> dict[str, dict[str, Any]]:
        return await action

    return asyncio.run(main())
