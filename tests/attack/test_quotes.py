"""An MCP server that quotes its secrets and shouts: neither its agent, nor a log, has the secrets or the megabytes."""

import json
import sys
from pathlib import Path

import anyio

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.errors import SMCPError
from tests.attack.harness import target
from tests.attack.processes import A2C, started

INDISCREET = str(Path(__file__).parents[1] / "computer" / "fakes" / "indiscreet.py")
#: The PIN is short, and nothing that a port, a time or an id could have in it.
SECRETS = ("canary-4711", "canary-4712", "8~31", "canary-in-the-file")
CONFIG = {
    "servers": [
        {
            "name": "indiscreet",
            "type": "stdio",
            "protocol": "legacy",
            "default_tool_meta": {"auto_apply": True},
            "server_parameters": {
                "command": sys.executable,
                "args": ["-I", "-S", INDISCREET, "--token=${input:argument}"],
                "env": {"TOKEN": "Bearer ${input:token}", "PIN": "8~31", "PLAIN": "canary-in-the-file"},
            },
        }
    ],
    "inputs": [
        {"id": "argument", "type": "promptString", "description": "", "default": "canary-4711"},
        {"id": "token", "type": "promptString", "description": "", "default": "canary-4712"},
    ],
}


async def test_secrets_and_megabytes_stay_where_they_are(tmp_path: Path) -> None:
    file = tmp_path / "indiscreet.json"
    file.write_text(json.dumps(CONFIG))
    heard: list[str] = []
    with target(tmp_path) as server:
        place = ["--url", server.url, "--office", "o", "--name", "pc"]
        command = [A2C, "computer", "run", "--headless", "--log-level", "debug", "--config", str(file), *place]
        with started(command, tmp_path / "computer.log") as computer:
            computer.says("indiscreet is running")
            computer.says("is in office")
            async with AsyncSMCPAgentClient(server.url, name="agent", live=False) as agent:
                await agent.join_office("o")
                with anyio.fail_after(60):
                    for tool, params in (("leak", {}), ("shout", {"size": 15_000_000}), ("die", {})):
                        result = await agent.call_tool("pc", tool, params, 30)
                        assert result.is_error
                        heard.append(repr(result))
                    computer.says("is backing_off")
                    computer.says("is running", after=computer.log.read_text().index("is backing_off"))
                    try:
                        heard.append(repr(await agent.read_resource("pc", "window://indiscreet/one")))
                    except SMCPError as error:
                        heard.append(f"{error!r} {error.details}")
        logs = [computer.log.read_text(errors="replace"), server.log]
    for said in (*heard, *logs):
        assert not [secret for secret in SECRETS if secret in said]
    assert "refused for ${input:argument} Bearer ${input:token} *** ***" in heard[0]
    assert max(map(len, heard)) < 3000
    assert max(len(line) for log in logs for line in log.splitlines()) < 3000
