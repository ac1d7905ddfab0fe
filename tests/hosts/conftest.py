"""A real office for real hosts: a server, a computer `pc` with one MCP server, and `a2c mcp` as a host starts it."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from a2c_smcp.agent import LinkOptions
from a2c_smcp.computer import Computer, SMCPComputerClient
from a2c_smcp.server import APIKeyAuthentication
from a2c_smcp.smcp import SMCPTool
from tests.hosts.everything import Places, everything
from tests.hosts.poison_mcp import tools as poison
from tests.server.harness import async_server

ROOT = Path(__file__).parents[2]
A2C = str(Path(sys.executable).parent / "a2c")
KEY = "key-of-the-hosts"
WORKSHOP = str(Path(__file__).with_name("workshop_mcp.py"))
POISON = str(Path(__file__).with_name("poison_mcp.py"))
NODE_HOSTS = ROOT / ".node-hosts"
DEADLINE = 100.0


@dataclass(frozen=True, slots=True)
class Lab:
    """Where the office is, for what a host is given as environment; and what the computer's tool has noted."""

    env: dict[str, str]
    log: Path

    def wait_until_noted(self, word: str, times: int = 1) -> None:
        deadline = time.monotonic() + DEADLINE
        while self.noted(word) < times:
            assert time.monotonic() < deadline, f"the tool did not note {word!r} {times} times"
            time.sleep(0.05)

    def noted(self, word: str) -> int:
        return self.log.read_text().split().count(word) if self.log.exists() else 0


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """An office with the computer `pc`."""
    with running_lab() as found:
        yield found


@pytest.fixture(scope="module")
def poisoned_lab() -> Iterator[Lab]:
    """An office with `pc`, and with `evil`, whose forty tools have schemas that some host cannot read."""
    with running_lab(hostile=True) as found:
        yield found


class _HostileComputer(Computer):
    """Tells agents of every tool of its server. Our own computer hides those that are not MCP's at all."""

    def get_available_tools(self) -> list[SMCPTool]:
        return [
            {
                "name": tool["name"],
                "description": tool.get("description", ""),
                "params_schema": tool["inputSchema"],
                "return_schema": tool.get("outputSchema"),
            }
            for tool in poison()
        ]


@contextmanager
def running_lab(*, hostile: bool = False) -> Iterator[Lab]:
    # Not pytest's own directory: the path of a socket has 103 bytes at most.
    folder = Path(tempfile.mkdtemp(prefix="a2c-lab-"))
    log = folder / "log"
    with (
        async_server(APIKeyAuthentication([KEY])) as hub,
        start_blocking_portal() as portal,
        ExitStack() as computers,
    ):
        joined = [_computer(hub.url, "pc", [WORKSHOP, str(log)])]
        joined += [_computer(hub.url, "evil", [POISON], _HostileComputer)] if hostile else []
        for each in joined:
            computers.enter_context(portal.wrap_async_context_manager(each))
        settings = {
            "A2C_URL": hub.url,
            "A2C_OFFICE": "lab",
            "A2C_API_KEY": KEY,
            "XDG_RUNTIME_DIR": str(folder),
            "XDG_STATE_HOME": str(folder),
            "NODE_HOSTS": str(NODE_HOSTS),
        }
        path = f"{Path(A2C).parent}{os.pathsep}{os.environ['PATH']}"
        clean = {key: value for key, value in os.environ.items() if not key.startswith("A2C_")}
        yield Lab({**clean, **settings, "PATH": path}, log)
    shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def _computer(url: str, name: str, command: list[str], kind: type[Computer] = Computer) -> AsyncIterator[None]:
    config = {
        "name": "workshop",
        "type": "stdio",
        "protocol": "legacy",
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": sys.executable, "args": ["-I", "-S", *command]},
    }
    computer = kind(name, mcp_servers=[config])
    async with computer, SMCPComputerClient(computer, LinkOptions(url, api_key=KEY)) as client:
        await client.join_office("lab")
        yield


def python_of(environment: str) -> str:
    """The interpreter of an environment of its own. Without it the tests fail; they never skip."""
    python = ROOT / environment / "bin" / "python"
    if not python.exists():
        pytest.fail(f"{environment} is missing: run `make test`, which sets it up")
    return str(python)


def run(command: list[str], lab: Lab, **more: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, env=lab.env, capture_output=True, text=True, timeout=DEADLINE, check=False, **more)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(scope="session")
def places() -> Iterator[Places]:
    with everything() as found:
        yield found
