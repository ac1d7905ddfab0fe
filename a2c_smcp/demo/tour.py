"""The guided tour: a server, a computer and an agent at work on this machine.

It prints for people; its exit code is for programs. Everything that it shows really happens.
"""

import asyncio
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.table import Table

from a2c_smcp import PROTOCOL_VERSION, __version__
from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.computer.utils.dpe_uri import build_dpe_uri, parse_dpe_uri
from a2c_smcp.demo.browser import show_console
from a2c_smcp.demo.build import can_show_terminals, show_build, write_build
from a2c_smcp.demo.processes import DemoError, started
from a2c_smcp.errors import SMCPError
from a2c_smcp.smcp import DPEDocumentSummary
from a2c_smcp.terminal import screen
from a2c_smcp.terminal.exits import FAILED, INTERRUPTED
from a2c_smcp.utils.system import DOCUMENTS

__all__ = ["run"]

OFFICE = "demo"
COMPUTER = "laptop"

_NOTE: Final = "The agent was here."
#: Files that become documents, in English and Chinese; one has an old encoding.
_PAPERS: Final = Path(__file__).parent / "papers"
#: How many seconds one step may take on a busy machine.
_STEP_TIMEOUT: Final = 30

_Item = TypeVar("_Item")


def run(keep: bool = False, browser: bool = False) -> int:
    """Walk through the tour and return the exit code. With `keep` everything runs on until Ctrl-C. With `browser` it
    does so, too; the computer's console is open, and calls of an agent need a yes.
    """
    console = screen.console(soft_wrap=True)
    try:
        asyncio.run(_Tour(console).walk(keep, browser))
    except KeyboardInterrupt:
        console.print("\nStopped.")
        return 0 if keep or browser else INTERRUPTED  # with these it runs until somebody stops it
    except (DemoError, SMCPError, TimeoutError) as error:
        console.print("\n[red]✗[/red] ", str(error) or "it took too long", "\n", sep="")
        return FAILED
    return 0


class _Tour:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._step = 0

    async def walk(self, keep: bool, browser: bool) -> None:
        self._console.print(f"\n[bold]A2C-SMCP[/bold] {__version__}, protocol {PROTOCOL_VERSION}")
        key = secrets.token_urlsafe(12)
        # The key is passed in the environment: everybody can read the list of processes.
        env = {name: value for name, value in os.environ.items() if not name.startswith("A2C_")}
        env["A2C_API_KEY"] = key
        async with AsyncExitStack() as stack:
            self._title("A server, a computer and an agent, each a process of its own")
            url = await stack.enter_async_context(started("server", ["server", "--port", "0"], r"ready on (\S+)", env))
            self._say(f"the server is at {url}; only these three know the key of this run")
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="a2c-demo-"))
            config = _write_config(Path(folder))
            # The record of the tour, and what its console remembers, go with the tour.
            env = {**env, "XDG_STATE_HOME": folder}
            place = ["--url", url, "--office", OFFICE, "--name", COMPUTER]
            arguments = ["computer", "run", "--headless", "--config", str(config), *place]
            ready = r"is in office"
            if browser:
                arguments += ["--console", "0"]
                ready = r"has its console at (\S+)[\s\S]*is in office"
            link = await stack.enter_async_context(started("computer", arguments, ready, env))
            hosts = "several MCP servers" if DOCUMENTS.works else "an MCP server"
            self._say(f"the computer [bold]{COMPUTER}[/bold] hosts {hosts} and has joined office '{OFFICE}'")
            agent = await stack.enter_async_context(AsyncSMCPAgentClient(url, name="ada", api_key=key))
            await agent.join_office(OFFICE)
            self._say("the agent [bold]ada[/bold] has joined it too")

            await self._tools(agent)
            await self._window(agent)
            await show_build(self._title, self._say, self._show, agent, COMPUTER)
            await self._documents(agent)
            await self._files(agent, Path(folder) / "papers")
            await self._cancel(agent)
            await self._crash(agent)
            if browser:
                await show_console(self._console, agent, COMPUTER, link, config)
            elif keep:
                await self._keep(agent, url, key)
        self._console.print("\n[green]✓[/green] That was the tour; everything it started has been stopped.\n")

    # --- the stations

    async def _tools(self, agent: AsyncSMCPAgentClient) -> None:
        self._title("Its tools")
        table = Table("tool", "what it does", box=None, pad_edge=False)
        # The computer may have joined before its MCP server ran.
        for tool in await agent.wait_for_tools(COMPUTER, timeout=_STEP_TIMEOUT):
            table.add_row(tool["name"], tool["description"])
        self._console.print(Padding(table, (0, 0, 0, 3)))
        self._say(f"greet → [green]{await self._call(agent, 'greet', text='world')}[/green]")

    async def _window(self, agent: AsyncSMCPAgentClient) -> None:
        self._title("Its desktop, live")
        heard = asyncio.Event()
        agent.on("update_desktop")(lambda _: heard.set())
        self._show((await _until_some(agent.get_desktop, COMPUTER, size=1))[0])
        heard.clear()
        await self._call(agent, "write_note", text=_NOTE)
        async with asyncio.timeout(_STEP_TIMEOUT):
            await heard.wait()
        self._say("[yellow]notify:update_desktop[/yellow]: the window changed, and the agent heard of it")

        async def noted() -> list[str]:
            return [window for window in await agent.get_desktop(COMPUTER) if _NOTE in window]

        self._show((await _until_some(noted))[0])

    async def _documents(self, agent: AsyncSMCPAgentClient) -> None:
        self._title("Its documents, from the catalogue to one table")

        async def about_finance() -> list[DPEDocumentSummary]:
            documents = (await agent.get_finder(COMPUTER, keywords=["财务"]))["documents"]
            return [each for each in documents if each["server"] == "demo"]

        documents = await _until_some(about_finance)
        uri = documents[0]["uri"]
        self._say(f"{len(documents)} document about 财务: [bold]{documents[0]['title']}[/bold]")
        async for page in agent.iter_document_pages(COMPUTER, uri):
            self._say(f"  page {page['page_index']}: {page['title']}, {page['element_count']} elements")
        text = await agent.read_page(COMPUTER, uri, 1, format="markdown")
        self._console.print(Padding(Markdown(text), (1, 0, 1, 6)))
        table = await agent.read_element(COMPUTER, uri, "table-1")
        self._say(f"and one element of it as data: {json.dumps(table['content']['rows'])}")

    async def _files(self, agent: AsyncSMCPAgentClient, folder: Path) -> None:
        self._title("A folder of real files, page by page")
        if not DOCUMENTS.works:
            self._say(DOCUMENTS.problem)
            return

        async def catalogue() -> list[DPEDocumentSummary]:
            documents = (await agent.get_finder(COMPUTER, limit=100))["documents"]
            return [each for each in documents if each["server"] == "papers"]

        for document in await _until_some(catalogue):
            self._say(
                f"  {unquote(document['file_uri'])}: [bold]{document['title']}[/bold], {document['page_count']} pages"
            )
        await agent.wait_for_tool(COMPUTER, "search_documents", _STEP_TIMEOUT)

        async def hits() -> list[dict[str, Any]]:
            result = await agent.call_tool(COMPUTER, "search_documents", {"query": "basil"}, _STEP_TIMEOUT)
            found: list[dict[str, Any]] = (result.structured_content or {}).get("hits", [])
            return found

        hit = (await _until_some(hits))[0]
        self._say(f"search_documents basil → [green]{hit['title']}[/green], page {hit['page_index']}")
        uri = parse_dpe_uri(hit["page_uri"])
        document_uri = build_dpe_uri(uri.host, uri.doc_ref)
        async for page in agent.iter_document_pages(COMPUTER, document_uri):
            self._say(f"  page {page['page_index']}: {page['title']}, {page['element_count']} elements")
        text = await agent.read_page(COMPUTER, document_uri, hit["page_index"], format="markdown")
        self._console.print(Padding(Markdown(text), (1, 0, 1, 6)))
        table = await agent.read_element(COMPUTER, document_uri, parse_dpe_uri(hit["element_uri"]).element_id or "")
        self._say(f"and the table as data: {json.dumps(table['content']['rows'])}")
        heard = asyncio.Event()
        agent.on("update_finder")(lambda _: heard.set())
        (folder / "handbook.md").write_text("# The garden handbook\n\nEverything is new: we grow mushrooms now.\n")
        async with asyncio.timeout(_STEP_TIMEOUT):
            await heard.wait()
        self._say("[yellow]notify:update_finder[/yellow]: a file was saved, and the agent heard of it")

        async def renewed() -> list[DPEDocumentSummary]:
            return (await agent.get_finder(COMPUTER, keywords=["mushrooms"]))["documents"]

        self._say(f"its summary now: {(await _until_some(renewed))[0]['summary']}")

    async def _cancel(self, agent: AsyncSMCPAgentClient) -> None:
        self._title("A slow call, cancelled where it runs")
        call = asyncio.create_task(agent.call_tool(COMPUTER, "count_slowly", {"seconds": 60}, 120, req_id="slow"))
        await asyncio.sleep(0.5)
        await agent.cancel("slow")
        result = await call
        self._say(f"after half a second: {(result.meta or {}).get('a2c_cancelled') and 'cancelled'}")
        self._show(await self._status(agent))

    async def _crash(self, agent: AsyncSMCPAgentClient) -> None:
        self._title("An MCP server dies and comes back")
        gone = asyncio.Event()
        agent.on("update_tool_list")(lambda _: gone.set())
        result = await agent.call_tool(COMPUTER, "crash", {}, _STEP_TIMEOUT)
        self._say(f"the call fails at once: error_code {(result.meta or {}).get('error_code')}")
        async with asyncio.timeout(_STEP_TIMEOUT):
            await gone.wait()
        await agent.wait_for_tool(COMPUTER, "greet", _STEP_TIMEOUT)
        self._say("[yellow]notify:update_tool_list[/yellow]: its tools were gone, and are back")
        self._say(f"greet → [green]{await self._call(agent, 'greet', text='again')}[/green]")

    async def _keep(self, agent: AsyncSMCPAgentClient, url: str, key: str) -> None:
        await agent.leave_office()
        self._title("Everything stays up until Ctrl-C")
        self._say("from another terminal, for instance:")
        for command in ("tools", f"call {COMPUTER} greet text=you", f"desktop {COMPUTER}", "watch"):
            self._console.print(
                f"      A2C_API_KEY={key} A2C_URL={url} A2C_OFFICE={OFFICE} A2C_NAME=you {_a2c()} agent {command}"
            )
        await asyncio.Event().wait()

    # --- small parts

    async def _call(self, agent: AsyncSMCPAgentClient, tool: str, **params: Any) -> str:
        result = await agent.call_tool(COMPUTER, tool, params, _STEP_TIMEOUT)
        text: str = result.content[0].text  # type: ignore[union-attr]  # the demo's tools return text only
        if result.is_error:
            raise DemoError(f"{tool} failed: {text}")
        return text

    async def _status(self, agent: AsyncSMCPAgentClient) -> str:
        return (await _until_some(agent.get_desktop, COMPUTER, window="window://demo.board/status"))[0]

    def _title(self, text: str) -> None:
        self._step += 1
        self._console.print(f"\n[bold cyan]{self._step}. {text}[/bold cyan]")

    def _say(self, text: str) -> None:
        self._console.print(f"   {text}")

    def _show(self, window: str) -> None:
        uri, _, body = window.partition("\n\n")
        self._console.print(f"   [dim]{uri}[/dim]")
        for line in body.splitlines():
            self._console.print(f"   │ {line}", markup=False)


async def _until_some(look: Callable[..., Awaitable[list[_Item]]], *args: Any, **kwargs: Any) -> list[_Item]:
    """The result of `look` as soon as it is not empty: windows and documents are read after the tools."""
    async with asyncio.timeout(_STEP_TIMEOUT):
        while not (found := await look(*args, **kwargs)):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.1)
    return found


def _write_config(folder: Path) -> Path:
    papers = folder / "papers"
    shutil.copytree(_PAPERS, papers)
    (papers / "annual-report.md").rename(papers / "年度报告.md")
    (papers / "old-notes.txt").rename(papers / "旧笔记.txt")
    serve = ["docs", "serve", str(papers), "--host", "demo.papers", "--cache", str(folder / "cache")]
    commands = {"demo": ["a2c_smcp.demo.mcp_server"]}
    if DOCUMENTS.works:
        commands["papers"] = ["a2c_smcp.cli", *serve]
    if can_show_terminals():
        shop = write_build(folder)
        commands["windows"] = ["a2c_smcp.cli", "windows", "--terminals", "--in", str(shop), "--host", "demo.windows"]
    servers = [
        {
            "name": name,
            "type": "stdio",
            "default_tool_meta": {"auto_apply": True},
            "server_parameters": {"command": sys.executable, "args": ["-m", *command]},
        }
        for name, command in commands.items()
    ]
    path = folder / "servers.json"
    path.write_text(json.dumps(servers))
    return path


def _a2c() -> str:
    beside = Path(sys.executable).parent / "a2c"
    return os.path.relpath(beside) if beside.exists() else "a2c"
