"""Computers for the tests: quick timings, servers that misbehave by name, and a record of what happened."""

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, get_args

import anyio
from mcp_types import CallToolResult, TextContent

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.connection_options import Timings
from a2c_smcp.computer.mcp_clients.pipes.process import StdioTimings
from a2c_smcp.computer.mcp_clients.probe import ProbeTimeouts
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.resources.shown import ShownResources
from a2c_smcp.computer.watching.events import (
    CallEnded,
    CallProgressed,
    CallStarted,
    ComputerEvent,
    ServerLogged,
    ServerStatus,
    SharedResourcesChanged,
)
from tests.computer.fakes.misbehaving import TOOLS
from tests.computer.fakes.processes import command, eventually, nothing_left_over

FAST = Timings(
    start=30,
    probe=ProbeTimeouts(probe=0.5),
    backoff_first=0.01,
    backoff_most=0.05,
    stdio=StdioTimings(flush=0.2, eof=0.2, terminate=0.2, kill=20, drain=0.1),
)
DEADLINE = 30.0
_SHARING = str(Path(__file__).with_name("sharing.py"))
_ASKING = str(Path(__file__).with_name("asking.py"))
TASKING = str(Path(__file__).with_name("tasking.py"))

#: Without the reports of calls: whoever reads those has the servers asked for them.
_FOLLOWED = set(get_args(ComputerEvent)) - {CallProgressed}

E = TypeVar("E")


def server(name: str, mode: str = "normal", *, prefixed: bool = True, **more: Any) -> dict[str, Any]:
    """The config, as written, of a misbehaving server. Its tools are called `NAME.TOOL`, or just `TOOL`.

    Keywords that are keys of a config go there, others are the server's options.
    """
    keys = {
        "disabled",
        "forbidden_tools",
        "tool_meta",
        "default_tool_meta",
        "vrl",
        "protocol",
        "tool_prefix",
        "share",
        "poll",
    }
    own = {key: more.pop(key) for key in keys if key in more}
    program, arguments = command(mode, **more)
    return {
        "name": name,
        "type": "stdio",
        "protocol": "legacy",
        "default_tool_meta": {"auto_apply": True},
        "tool_meta": {tool: {"alias": f"{name}.{tool}"} for tool in TOOLS} if prefixed else {},
        "server_parameters": {"command": program, "args": arguments},
        **own,
    }


def sharing(name: str, mode: str = "normal", **more: Any) -> dict[str, Any]:
    """The config, as written, of a server that has more to share. Its tools are called `NAME.TOOL`."""
    written = server(name, mode, prefixed=False, **{"tool_prefix": f"{name}.", **more})
    arguments = written["server_parameters"]["args"]
    written["server_parameters"]["args"] = [*arguments[:2], _SHARING, *arguments[3:]]
    return written


def asking(era: str, **options: str) -> dict[str, Any]:
    """The config, as written, of a server whose tools ask the person something."""
    arguments = ["-I", "-S", _ASKING, f"era={era}", *(f"{key}={value}" for key, value in options.items())]
    return {
        "name": "asker",
        "type": "stdio",
        "server_parameters": {"command": sys.executable, "args": arguments},
    }


def tasking(era: str) -> dict[str, Any]:
    """The config, as written, of a server whose tools run as tasks."""
    return {
        "name": "tasker",
        "type": "stdio",
        "server_parameters": {"command": sys.executable, "args": ["-I", "-S", TASKING, f"era={era}"]},
    }


class Record:
    """What a Computer published, and waiting for it."""

    def __init__(self) -> None:
        self.events: list[ComputerEvent] = []
        self._more = asyncio.Event()

    async def follow(self, computer: Computer, ready: asyncio.Event) -> None:
        async with computer.events(kinds=_FOLLOWED) as events:
            ready.set()
            async for event in events:
                self.events.append(event)
                self._more.set()

    async def until(self, happened: Callable[[], Any]) -> Any:
        with anyio.fail_after(DEADLINE):
            while not (value := happened()):
                self._more.clear()
                await self._more.wait()
        await asyncio.sleep(0)  # what was published together with it is recorded, too
        return value

    async def of(self, kind: type[E], times: int = 1) -> list[E]:
        found: list[E] = await self.until(lambda: len(self.now(kind)) >= times and self.now(kind))
        return found

    @property
    def changes(self) -> list[ComputerEvent]:
        """Without what calls and logs have to say, and without news of the lists that say the same as the desktop."""
        others = (CallStarted, CallProgressed, CallEnded, ServerLogged, SharedResourcesChanged)
        return [event for event in self.events if not isinstance(event, others)]

    def now(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    async def reached(self, name: str, state: ServerState, times: int = 1) -> ServerStatus:
        def found() -> list[ServerStatus]:
            return [event for event in self.now(ServerStatus) if (event.server, event.state) == (name, state)]

        await self.until(lambda: len(found()) >= times)
        return found()[times - 1]

    def states(self, name: str) -> list[str]:
        """Those that it went through; one that starts slowly may say several times what it does."""
        found = [event.state.value for event in self.now(ServerStatus) if event.server == name]
        return [state for state, _ in itertools.groupby(found)]


@asynccontextmanager
async def recorded(computer: Computer) -> AsyncIterator[Record]:
    record, ready = Record(), asyncio.Event()
    task = asyncio.create_task(record.follow(computer, ready))
    await ready.wait()
    try:
        yield record
    finally:
        task.cancel()
        await asyncio.wait({task})


@asynccontextmanager
async def running(*servers: dict[str, Any], **options: Any) -> AsyncIterator[tuple[Computer, Record]]:
    """A booted Computer; afterwards nothing is left of it."""
    with nothing_left_over():
        computer = Computer("pc", mcp_servers=servers, **{"timings": FAST, **options})
        async with recorded(computer) as record, computer:
            yield computer, record


async def listed(computer: Computer) -> None:
    """What its servers list is known, templates and prompts too, and announced. On a busy machine that takes longer
    than a boot waits for it.
    """
    await eventually(lambda: not computer._happened.is_waiting and not _reads_lists(computer._resources))
    await asyncio.sleep(0)  # what was published just now is recorded, too


def _reads_lists(shown: ShownResources) -> bool:
    """Whether a list of a server is read now. Its templates are read after its resources, and its prompts beside."""
    shelves = shown._shelves.values()
    refreshers = [*(it.refresher for it in shelves), *(it.refresher for it in shown.shared._prompts.values())]
    return not all(it.listed.is_set() for it in shelves) or any(it.running for it in refreshers)


async def from_now_on(computer: Computer, record: Record) -> None:
    """Forget what was announced. Nothing that happened before is announced later, so the test sees only what it does
    itself.
    """
    await listed(computer)
    record.events.clear()


def names(computer: Computer) -> list[str]:
    return [tool["name"] for tool in computer.get_available_tools()]


def state(computer: Computer, name: str) -> ServerState:
    return next(status.state for status in computer.statuses if status.server == name)


def reason(computer: Computer, name: str) -> str:
    return next(status.reason or "" for status in computer.statuses if status.server == name)


def text(result: CallToolResult) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


def code(result: CallToolResult) -> int | None:
    found = (result.meta or {}).get("error_code")
    assert found is None or isinstance(found, int)
    return found


async def call(computer: Computer, tool: str, timeout: float | None = DEADLINE, **params: Any) -> CallToolResult:
    return await computer.execute_tool("r", tool, params, timeout)
