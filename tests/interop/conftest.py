"""The existing implementation, in its own virtual environment. Without it these tests fail; they never skip."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PEERS = Path(__file__).parent / "peers"
ECHO = str(ROOT / "bench" / "echo_mcp.py")
_PYTHON = ROOT / ".venv-interop" / "bin" / "python"
_DEADLINE = 60

StartPeer = Callable[..., str]


@pytest.fixture(scope="session")
def interop_python() -> str:
    if not _PYTHON.exists():
        pytest.fail("the existing implementation is missing: run `make test`, which sets up .venv-interop")
    return str(_PYTHON)


@contextmanager
def peer(python: str, name: str, *args: str) -> Iterator[str]:
    """A peer that says READY and stays until its stdin closes; yields what it said after that word."""
    process = subprocess.Popen(
        [python, "-I", str(PEERS / name), *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    watchdog = threading.Timer(_DEADLINE, process.kill)
    watchdog.start()
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            if line.startswith("READY"):
                break
        else:
            raise AssertionError("the peer did not get ready:\n" + "".join(lines))
        watchdog.cancel()  # it is there for the start: what follows may take its time
        yield line.removeprefix("READY").strip()
    finally:
        watchdog.cancel()
        try:
            process.communicate(timeout=15)  # closes stdin
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@pytest.fixture
def start_peer(interop_python: str) -> Iterator[StartPeer]:
    """Starts `computer.py` or `server.py` of the existing implementation for the length of a test."""
    with ExitStack() as stack:
        yield lambda name, *args: stack.enter_context(peer(interop_python, name, *args))


@pytest.fixture
def old_agent(interop_python: str) -> Callable[..., dict[str, Any]]:
    """Runs the existing agent to its end and returns what it saw."""

    def run(colour: str, url: str, office: str, computer: str, *tools: str) -> dict[str, Any]:
        result = subprocess.run(
            [interop_python, "-I", str(PEERS / "agent.py"), colour, url, office, computer, *tools],
            capture_output=True,
            text=True,
            timeout=2 * _DEADLINE,
            check=False,
        )
        lines = [line for line in result.stdout.splitlines() if line.startswith("RESULT ")]
        assert lines, result.stdout + result.stderr
        seen: dict[str, Any] = json.loads(lines[0].removeprefix("RESULT "))
        return seen

    return run


@pytest.fixture
def echo_command() -> list[str]:
    return [sys.executable, ECHO]
