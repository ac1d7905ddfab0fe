"""A protected MCP server for a file of tests, and what the tests see of a computer that signs in to it."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import MissingSignIn
from a2c_smcp.computer.mcp_clients.server_state import ServerState

__all__ = ["DEADLINE", "config", "protected_server", "sign_in_of", "until"]

DEADLINE = 60.0
_ROOT = Path(__file__).parent.parent.parent.parent


@contextmanager
def protected_server(issuer: str) -> Iterator[str]:
    """Its address, without a path."""
    command = [sys.executable, "-m", "tests.computer.sign_in.protected_mcp", issuer]
    process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    watch = threading.Timer(DEADLINE, process.kill)
    watch.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        watch.cancel()
        yield f"http://127.0.0.1:{json.loads(line)['port']}"
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


def config(url: str, kind: str = "streamable", **oauth: Any) -> dict[str, Any]:
    path = "/mcp" if kind == "streamable" else "/sse"
    parameters = {"url": url + path, **({"oauth": oauth} if oauth else {})}
    return {"name": "guarded", "type": kind, "server_parameters": parameters, "default_tool_meta": {"auto_apply": True}}


async def until(computer: Computer, state: ServerState) -> None:
    with anyio.fail_after(DEADLINE):
        while computer.statuses[0].state is not state:  # noqa: ASYNC110 - a state
            await anyio.sleep(0.02)


async def sign_in_of(computer: Computer) -> MissingSignIn:
    """The sign-in that a person is asked for."""
    with anyio.fail_after(DEADLINE):
        while True:
            for decision in computer.decisions.pending:
                if isinstance(decision, MissingSignIn):
                    return decision
            await anyio.sleep(0.02)
