"""The programs of docs/migrating.md, before and after, and the old names that import here."""

import re
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path

import pytest

from tests.interop.conftest import ECHO, ROOT
from tests.interop.generations import PYTHON_04

pytestmark = pytest.mark.interop

PAGE = (ROOT / "docs" / "migrating.md").read_text("utf-8")
_PROGRAM = re.compile(r"^<!-- (\S+\.py) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHONS = {"012": str(ROOT / ".venv-interop" / "bin" / "python"), "042": str(PYTHON_04), "after": sys.executable}
DEADLINE = 60


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for name, code in _PROGRAM.findall(PAGE):
        (folder / name).write_text(code)
    return folder


def command(programs: Path, role: str, release: str, *args: str) -> list[str]:
    name = f"{role}_after.py" if release == "after" else f"{role}_before.py"
    if role == "server" and release != "after":
        name = f"server_before_{release}.py"
    return [PYTHONS[release], "-I", str(programs / name), *args]


@contextmanager
def running(arguments: list[str], ready: str | None) -> Iterator[None]:
    """A program until the end of the block. With `ready`, wait until it has said so."""
    heard = threading.Event()
    out: list[str] = []
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            out.append(line)
            if ready is not None and line.startswith(ready):
                heard.set()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert ready is None or heard.wait(DEADLINE), "".join(out)
        yield
    finally:
        process.kill()
        process.wait(DEADLINE)
        reader.join(DEADLINE)
        assert process.stdout is not None
        process.stdout.close()


def connectable(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def office(programs: Path, server: str, computer: str) -> Iterator[str]:
    """A server and a computer of these releases; yields the address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        stack.enter_context(running(command(programs, "server", server, str(port)), None))
        until = time.monotonic() + DEADLINE
        while not connectable(port):
            assert time.monotonic() < until, "the server does not listen"
            time.sleep(0.05)
        stack.enter_context(running(command(programs, "computer", computer, url, ECHO), "READY"))
        yield url


@pytest.mark.parametrize(
    ("server", "computer", "agents"),
    [
        ("012", "012", ("012", "after")),
        ("042", "042", ("042", "after")),
        ("042", "after", ("042",)),
        ("after", "after", ("012", "042", "after")),
    ],
)
def test_the_programs_of_the_page_do_the_same(
    programs: Path, server: str, computer: str, agents: tuple[str, ...]
) -> None:
    with office(programs, server, computer) as url:
        for agent in agents:
            arguments = command(programs, "agent", agent, url)
            done = subprocess.run(arguments, capture_output=True, text=True, timeout=DEADLINE, check=False)
            assert done.returncode == 0, (agent, done.stdout, done.stderr)
            assert "hello" in done.stdout.splitlines(), (agent, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("a2c_smcp.agent", "AgentEventHandler", "AgentHandler"),
        ("a2c_smcp.agent", "AsyncAgentEventHandler", "AgentHandler"),
        ("a2c_smcp.agent", "SMCPProtocolError", "SMCPError"),
        ("a2c_smcp.computer.mcp_clients.model", "SseServerConfig", "SSEServerConfig"),
        ("a2c_smcp.computer.mcp_clients.model", "MCPServerPromptStringInput", "PromptStringInput"),
        ("a2c_smcp.computer.mcp_clients.model", "MCPServerPickStringInput", "PickStringInput"),
        ("a2c_smcp.computer.mcp_clients.model", "MCPServerCommandInput", "CommandInput"),
        ("a2c_smcp.computer.mcp_clients.model", "BaseMCPServerConfig", "BaseServerConfig"),
        ("a2c_smcp.utils", "WindowURI", "WindowURI"),
        ("a2c_smcp.utils", "is_window_uri", "is_window_uri"),
    ],
)
def test_an_old_name_imports_and_says_the_new_one(module: str, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"is called a2c_smcp\.[a-z_.]+\.{new} here"):
        found = getattr(import_module(module), old)
    assert found.__name__ == new
    assert f"`{old}`*" in PAGE or f".{old}`*" in PAGE, "the page marks it with a star"


def test_a_name_that_nobody_has_is_still_an_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for module in ("a2c_smcp.agent", "a2c_smcp.computer.mcp_clients.model", "a2c_smcp.utils", "a2c_smcp.server"):
            with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
                _ = import_module(module).Nothing
