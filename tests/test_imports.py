"""What each role imports, in a process of its own: memory and the time of a start are mostly imports."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.computer.fakes.processes import command

ROOT = Path(__file__).parent.parent
BUDGETS = tomllib.loads((ROOT / "budgets.toml").read_text("utf-8"))["modules"]

#: Runs a command, and writes the names of its modules when it ends.
_NOTING = """
import atexit, json, sys
out, *sys.argv[1:] = sys.argv[1:]
atexit.register(lambda: open(out, "w").write(json.dumps(sorted(sys.modules))))
from a2c_smcp.cli import main
sys.exit(main())
"""

#: What no role needs before it is asked for.
_NEVER = {"rich.progress", "openpyxl", "docx", "pypdfium2", "playwright", "yaml", "jsonschema", "vrl_python", "keyring"}
#: What a role has no use for.
FOREIGN = {
    "server": {"mcp", "mcp_types", "httpx2", "cryptography", "jwt", "nats", "prompt_toolkit", "opentelemetry"},
    "computer": {
        *("mcp", "httpx2", "cryptography", "jwt", "opentelemetry"),
        *("uvicorn", "starlette", "sse_starlette", "h11", "prompt_toolkit", "rich"),
    },
    "agent": {"mcp", "mcp_types", "httpx2", "cryptography", "jwt", "uvicorn", "starlette", "prompt_toolkit"},
    "mcp": {"prompt_toolkit", "rich"},
}

_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


class Roles:
    """Runs commands that note their modules in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.modules: dict[str, set[str]] = {}

    @contextmanager
    def running(self, role: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
        noted = self._folder / f"{role}.json"
        environment = {**os.environ, "HOME": str(self._folder), "XDG_STATE_HOME": str(self._folder)}
        with subprocess.Popen(
            [sys.executable, "-c", _NOTING, str(noted), *arguments],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()
                process.communicate(timeout=60)
        self.modules[role] = set(json.loads(noted.read_text()))


def said(process: "subprocess.Popen[str]", pattern: str) -> str:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if found := re.search(pattern, line):
            return found[0]
    raise AssertionError(f"it did not say {pattern!r}: {''.join(lines)}")


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    folder = tmp_path_factory.mktemp("imports")
    program, arguments = command("normal")
    config = folder / "servers.json"
    config.write_text(json.dumps([{"name": "a", "type": "stdio", "command": program, "args": arguments}]))
    roles = Roles(folder)
    with roles.running("server", "server", "--port", "0") as server:
        place = ("--url", said(server, r"http://[\d.]+:\d+"), "--office", "o")
        run = ("computer", "run", "--headless", "--yes", "--config", str(config), "--name", "pc", *place)
        with roles.running("computer", *run) as computer:
            said(computer, "is in office")
            with roles.running("agent", "agent", "tools", *place) as agent:
                said(agent, "computer  tool")
                agent.wait(60)
        with roles.running("mcp", "mcp", *place) as mcp:
            assert mcp.stdin is not None
            mcp.stdin.write(json.dumps(_HELLO) + "\n")
            mcp.stdin.flush()
            said(mcp, "serverInfo")
            mcp.stdin.close()
            mcp.stdin = None
            mcp.wait(60)
    return roles.modules


@pytest.mark.parametrize("role", BUDGETS)
def test_a_role_imports_no_more_modules_than_its_budget_says(role: str, modules: dict[str, set[str]]) -> None:
    assert len(modules[role]) <= BUDGETS[role], f"{role} has {len(modules[role])} modules: see budgets.toml"


@pytest.mark.parametrize("role", FOREIGN)
def test_a_role_imports_nothing_that_it_has_no_use_for(role: str, modules: dict[str, set[str]]) -> None:
    assert (FOREIGN[role] | _NEVER) & modules[role] == set()
