"""A server that quotes its own secret in an error: the agent reads what was written in the config."""

import sys
from pathlib import Path

import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.errors import SMCPError

SCRIPT = str(Path(__file__).parent / "fakes" / "indiscreet.py")
CONFIG = {
    "name": "indiscreet",
    "type": "stdio",
    "protocol": "legacy",
    "default_tool_meta": {"auto_apply": True},
    "server_parameters": {"command": sys.executable, "args": [SCRIPT], "env": {"TOKEN": "${input:token}"}},
}
TOKEN = parse_input({"id": "token", "type": "promptString", "description": "", "default": "canary-4711"})


async def test_what_a_server_quotes_of_its_config_is_shown_as_written() -> None:
    async with Computer("c", mcp_servers=[CONFIG], inputs=[TOKEN]) as computer:
        result = await computer.execute_tool("1", "leak", {}, timeout=10)
        with pytest.raises(SMCPError) as caught:
            await computer.read_resource("window://indiscreet/one")
    for text in (repr(result), str(caught.value), repr(caught.value.details)):
        assert "canary-4711" not in text
    assert "${input:token}" in repr(result)
    assert "${input:token}" in repr(caught.value.details)
