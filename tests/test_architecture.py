"""docs/architecture.md is true: its names exist, its rooms keep to themselves, and its journeys are made."""

import ast
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import a2c_smcp
from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.computer import Computer, SMCPComputerClient
from a2c_smcp.computer.decisions.book import Accepted, Decision, DecisionAnswer
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.watching.events import ServerStatus
from a2c_smcp.office_mcp import office_server
from a2c_smcp.server import APIKeyAuthentication
from tests.computer.fakes.computers import FAST, Record, asking, recorded, server
from tests.computer.fakes.offices import options
from tests.mcp_server.clients import LEGACY, connected
from tests.nats_server import running_nats
from tests.server.harness import AsyncPeer, async_server, eventually, two_servers
from tests.tracing import Trace, tracing

PACKAGE = Path(a2c_smcp.__file__).parent
ROOT = PACKAGE.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")

_QUOTED = re.compile(r"`([^`\n]+)`")
_DOTTED = re.compile(r"[a-z_][a-z0-9_]*(\.[A-Za-z_]\w*)+")
_FILE = re.compile(r"[\w./-]+(\.(py|md|txt|toml)|/)")
#: What a module that says that it is pure does without.
_IMPURE = {"aiohttp", "anyio", "asyncio", "socketio", "time"}


def section(title: str) -> str:
    match = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match, f"the page has no section {title!r}"
    return match[1]


def journey(title: str) -> list[str]:
    """The functions that a section lists: the first name of each line."""
    lines = re.findall(r"^1\. (.*)$", section(title), re.MULTILINE)
    assert len(lines) > 10
    return [_QUOTED.findall(line)[0] for line in lines]


# --- names


_WORDS = sorted(set(_QUOTED.findall(PAGE)))


@pytest.mark.parametrize("name", [word for word in _WORDS if _DOTTED.fullmatch(word) and not _FILE.fullmatch(word)])
def test_a_name_on_the_page_exists(name: str) -> None:
    assert _exists(f"a2c_smcp.{name}") or _exists(name), f"there is no {name} any more: docs/architecture.md"


@pytest.mark.parametrize("file", [word for word in _WORDS if _FILE.fullmatch(word)])
def test_a_file_on_the_page_exists(file: str) -> None:
    places = (ROOT / file, PACKAGE / file, PACKAGE / "computer" / file)
    assert any(place.exists() for place in places), f"there is no {file} any more: docs/architecture.md"


def _exists(name: str) -> bool:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            if not hasattr(found, part) and part not in getattr(found, "__annotations__", {}):
                return False
            found = getattr(found, part, None)
        return True
    return False


# --- rooms


def rooms() -> Iterator[tuple[str, str]]:
    """Each room, and a room that it must not know."""
    for row in re.findall(r"^\| (`.*?) \| .* \| (`.*) \|$", section("The rooms"), re.MULTILINE):
        for room in _QUOTED.findall(row[0]):
            for other in _QUOTED.findall(row[1]):
                yield room, other


@cache
def imports_of(file: Path) -> frozenset[str]:
    return frozenset(_imports(ast.parse(file.read_text("utf-8"))))


def _imports(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize(("room", "other"), list(rooms()))
def test_a_room_imports_nothing_of_what_it_does_not_know(room: str, other: str) -> None:
    forbidden = "a2c_smcp." + other.strip("/").replace("/", ".")
    files = list((PACKAGE / room).rglob("*.py")) if room.endswith("/") else [PACKAGE / room]
    assert files
    found = {
        f"{file.relative_to(ROOT)} imports {name}"
        for file in files
        for name in imports_of(file)
        if name == forbidden or name.startswith(f"{forbidden}.")
    }
    assert not found


def test_no_part_of_the_computer_imports_its_command_line() -> None:
    files = [file for file in (PACKAGE / "computer").rglob("*.py") if "cli" not in file.parts]
    found = {file.name for file in files for name in imports_of(file) if name.startswith("a2c_smcp.computer.cli")}
    assert not found


def test_what_says_that_it_is_pure_imports_no_sockets_no_loop_and_no_clock() -> None:
    pure = [file for file in PACKAGE.rglob("*.py") if re.search(r"\bPure\b", _docstring(file))]
    assert len(pure) > 20
    found = [(str(file.relative_to(ROOT)), _IMPURE.intersection(imports_of(file))) for file in pure]
    assert [(file, names) for file, names in found if names] == []


def _docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""


# --- one name, one thing

#: Names that mean two things, and why.
_TWICE = {
    # The specification calls both so: what crosses the wire, and what a person writes.
    *("MCPServerConfig", "MCPServerInput", "ToolMeta"),
    # Named after what they extend, in `utils/socketio_internals.py` and `utils/engineio_internals.py`.
    "AsyncClient",
}


def test_a_class_or_alias_is_defined_once_in_the_whole_package() -> None:
    places: dict[str, list[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        for name in _defined(ast.parse(file.read_text("utf-8"))):
            places.setdefault(name.lstrip("_"), []).append(str(file.relative_to(PACKAGE)))
    twice = {name: sorted(files) for name, files in places.items() if len(files) > 1 and name not in _TWICE}
    assert not twice
    assert all(len(places[name]) == 2 for name in _TWICE)


def _defined(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                yield name


# --- journeys


@dataclass
class World:
    """A server, a Computer and an agent, and the functions that they pass."""

    agent: AsyncSMCPAgentClient
    record: Record
    trace: Trace

    async def passes(self, functions: list[str], made: Callable[[], Awaitable[object]]) -> list[str]:
        """Make the journey, and wait for every function; those that were passed, in the order of the first time."""
        self.trace.begin()
        await made()
        with suppress(TimeoutError):  # the test says which one was not passed
            await eventually(lambda: set(functions) <= self.trace.names.keys(), 30)
        return [name for name in self.trace.names if name in functions]

    async def tool(self, name: str, **params: Any) -> None:
        await self.agent.call_tool("pc", f"a.{name}", params, timeout=20)

    async def confirmation(self) -> None:
        await self.agent.call_tool("pc", "c.echo", {"text": "x"}, timeout=20)

    async def question(self) -> None:
        await self.agent.call_tool("pc", "q.ask", {}, timeout=20, on_progress=lambda *_: None)


async def _accept(_: Decision) -> DecisionAnswer:
    return Accepted({})


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    # The server's thread has to start under the trace.
    with tracing() as trace, async_server(APIKeyAuthentication(["key"])) as hub:
        asks = {**asking("new"), "name": "q", "tool_prefix": "q.", "default_tool_meta": {"auto_apply": True}}
        computer = Computer(
            "pc", mcp_servers=[server("a", documents=2), asks, server("c", default_tool_meta=None)], timings=FAST
        )
        link = options(hub.url, api_key="key")
        async with (
            recorded(computer) as record,
            computer,
            SMCPComputerClient(computer, link) as client,
            AsyncSMCPAgentClient(link, name="ag") as agent,
        ):
            await client.join_office("o")
            computer.decisions.attend("test", {"question", "confirmation"}, _accept).begin()
            resources = computer._resources  # from now on it is subscribed to them
            await eventually(lambda: not resources._tasks and not resources._finder._tasks)
            # What the start of the servers has changed is announced, and no ack is on its way.
            await eventually(lambda: not (computer._happened.is_waiting or client._to_announce or client._link._asks))
            yield World(agent, record, trace)


async def test_the_running_system_passes_every_function_that_the_page_lists() -> None:
    async with world() as it:

        async def join() -> None:
            await it.agent.join_office("o")
            await it.agent.settled()

        async def desktop() -> None:
            await it.tool("set_resource", uri="window://fake/0", text="new")

        async def crash() -> None:
            await it.tool("crash", code=1)
            await it.record.until(
                lambda: [event for event in it.record.now(ServerStatus) if event.state is ServerState.BACKING_OFF]
            )

        async def report() -> None:
            await it.agent.call_tool("pc", "a.report", {"steps": 3}, timeout=20, on_progress=lambda *_: None)

        async def by_host() -> None:
            async with connected(office_server(it.agent, search="never").mcp, LEGACY) as (host, _):
                tools = (await host.list_tools()).tools
                echo = next(tool.name for tool in tools if tool.name.startswith("pc__a_echo"))
                await host.call_tool(echo, {"text": "x"})

        journeys: dict[str, Callable[[], Awaitable[object]]] = {
            "A join": join,
            "A tool call": lambda: it.tool("echo", text="x"),
            "A confirmation": it.confirmation,
            "Progress of a call": report,
            "A desktop change": desktop,
            "A document read": lambda: it.agent.read_resource("pc", "dpe://fake/1"),
            "A call by an MCP host": by_host,
            "A question": it.question,
            "A crash": crash,
        }
        for title, made in journeys.items():
            listed = journey(title)
            passed = await it.passes(listed, made)
            missed = [name for name in listed if name not in passed]
            assert not missed, f"docs/architecture.md, {title!r}: the running system does not pass {missed}"
            if title == "A tool call":
                for _ in range(4):  # an announcement of the computer may have come between
                    if passed != listed:
                        passed = await it.passes(listed, made)
                assert passed == listed, "docs/architecture.md lists the functions of a call in another order"


async def test_between_two_processes_a_join_and_a_call_pass_every_function_that_the_page_lists(tmp_path: Path) -> None:
    listed = journey("A call between two processes")
    listed_for_join = journey("A join among several processes")
    with running_nats(tmp_path) as nats, tracing() as trace, two_servers(None, nats.url, "map") as two:
        agent, computer = AsyncPeer(), AsyncPeer()
        computer.answer("client:get_tools", lambda _: {"tools": [], "req_id": "1"})
        try:
            for number, (peer, role) in enumerate(((agent, "agent"), (computer, "computer"))):
                await peer.connect(two.url_for(number), transports=["websocket"])
                await peer.call("server:join_office", {"role": role, "name": "n", "office_id": "o"})
            for _ in range(2):  # the first one learns the other clock
                trace.begin()
                await agent.call("client:get_tools", {"agent": "n", "computer": "n", "req_id": "1"})
            called = list(trace.names)
            trace.begin()
            await computer.call("server:join_office", {"role": "computer", "name": "n", "office_id": "p"})
            await eventually(lambda: set(listed_for_join) <= trace.names.keys(), 30)
        finally:
            await agent.disconnect()
            await computer.disconnect()
    assert [name for name in called if name in listed] == listed
