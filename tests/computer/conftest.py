"""MCP servers that are started once per run."""

import subprocess
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def http_server() -> Iterator[str]:
    """The base URL of an MCP server that speaks streamable HTTP at `/mcp` and SSE at `/sse`."""
    with start_http_server() as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.communicate(timeout=20)  # closes its stdin


def start_http_server(port: int = 0) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.computer.fakes.http_server", str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
