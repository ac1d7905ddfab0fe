"""Servers that are started once per run: MCP servers, and offices."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from a2c_smcp.server import OpenAuthentication, SyncOpenAuthentication
from tests.server.conftest import LIMITS
from tests.server.harness import Running, async_server, sync_server


@pytest.fixture(scope="session")
def http_server() -> Iterator[str]:
    """The base URL of an MCP server that speaks streamable HTTP at `/mcp` and SSE at `/sse`."""
    with start_http_server() as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.communicate(timeout=20)  # closes its stdin


@pytest.fixture(scope="session")
def asking_http_server() -> Iterator[str]:
    """The base URL of an MCP server whose tools ask, in both eras, with mcp's own way to do so."""
    with start_http_server(fake="asking_http") as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.communicate(timeout=20)


def start_http_server(port: int = 0, fake: str = "http_server") -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.computer.fakes.{fake}", str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="session")
def hub() -> Iterator[Running]:
    """Offices; quick pings, because some tests pull cables. Answers and relays may take as long as a busy computer
    does.
    """
    with async_server(
        OpenAuthentication(),
        replace(LIMITS, relay_timeout=50.0, tool_call_grace=20.0),
        ping_interval=0.5,
        ping_timeout=20,
    ) as running:
        yield running


@pytest.fixture(scope="session")
def sync_hub() -> Iterator[Running]:
    with sync_server(SyncOpenAuthentication(), replace(LIMITS, relay_timeout=50.0, tool_call_grace=20.0)) as running:
        yield running
