"""The server against clients of mcp 1.x, from their own environment. Without it these tests fail; they never skip."""

import subprocess
from pathlib import Path

import pytest

from tests.mcp_server.clients import http_shop, stdio

_PYTHON = Path(__file__).parents[2] / ".venv-mcp1" / "bin" / "python"
_CLIENT = Path(__file__).parent / "peers" / "mcp1_client.py"


def client(*arguments: str) -> None:
    if not _PYTHON.exists():
        pytest.fail("mcp 1.x is missing: run `make test`, which sets up .venv-mcp1")
    command = [str(_PYTHON), str(_CLIENT), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def test_a_client_of_mcp_1_over_a_pipe() -> None:
    server = stdio()
    client("stdio", server.command, *server.args)


def test_a_client_of_mcp_1_over_http() -> None:
    with http_shop() as address:
        client("http", address)
