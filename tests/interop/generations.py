"""Peers of release 0.4.2 and ours side by side, for `test_generations.py`: one process of each kind for all tests."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from queue import Empty, Queue
from typing import Any

from anyio.from_thread import start_blocking_portal

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.link.interface import LinkOptions
from tests.computer.fakes.computers import FAST
from tests.interop.conftest import PEERS, ROOT

PYTHON_04 = ROOT / ".venv-interop04" / "bin" / "python"
PICTURES = str(PEERS / "pictures_mcp.py")
OFFICE = "interop"
DEADLINE = 60


class Peer04:
    """A process of release 0.4.2."""

    def __init__(self, script: str, *args: str) -> None:
        assert PYTHON_04.exists(), "release 0.4.2 is missing: run `make test`, which sets up .venv-interop04"
        command = [str(PYTHON_04), "-I", str(PEERS / script), *args]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)
        self._lines: Queue[str] = Queue()
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said = [*self.said[-100:], line]
            if line.startswith(("READY", "RESULT ")):
                self._lines.put(line)
        self._lines.put("")

    def _next(self) -> str:
        try:
            line = self._lines.get(timeout=DEADLINE)
        except Empty:
            line = ""
        assert line, "the peer has ended or is silent:\n" + "".join(self.said)
        return line

    def ready(self) -> str:
        return self._next().removeprefix("READY").strip()

    def ask(self, *what: Any) -> dict[str, Any]:
        """Have the agent do something. The answer has `value`, or `error`, `text` and `payload`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return self.result()

    def result(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self._next().removeprefix("RESULT "))
        return said

    def do(self, *what: Any) -> Any:
        said = self.ask(*what)
        assert "error" not in said, said
        return said["value"]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(DEADLINE)

    def end(self) -> None:
        """Close its stdin. Its computer does not always end by itself."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(DEADLINE)
        self._reader.join(DEADLINE)
        self._process.stdout.close()


@contextmanager
def peer_04(script: str, *args: str) -> Iterator[Peer04]:
    peer = Peer04(script, *args)
    try:
        yield peer
    finally:
        peer.end()


@contextmanager
def our_computer(
    url: str | LinkOptions, name: str, server: Mapping[str, Any] | None = None, **settings: Any
) -> Iterator[Computer]:
    """Our computer in a thread of its own, in the office. `server` has more of the config of its MCP server."""
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        computer = Computer(name, mcp_servers=[pictures(**(server or {}))], timings=FAST, **settings)
        stack.enter_context(portal.wrap_async_context_manager(computer))
        client = SMCPComputerClient(computer, url, api_key="secret")
        stack.enter_context(portal.wrap_async_context_manager(client))
        portal.call(client.join_office, OFFICE)
        yield computer


def pictures(**more: Any) -> dict[str, Any]:
    """The config of the MCP server with pictures."""
    return {
        "name": "pictures",
        "type": "stdio",
        "share": "all",
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": sys.executable, "args": [PICTURES]},
        **more,
    }
