"""`a2c agent call` at a real terminal: the questions of the tool are put to the person there."""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pexpect
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.socketio import SMCPComputerClient
from tests.computer.conftest import hub
from tests.computer.fakes.computers import FAST, asking, listed
from tests.computer.fakes.offices import new_office, options
from tests.computer.test_asking import URL
from tests.server.harness import Running

__all__ = ["hub"]

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "As in\x1b[2J the passport"},
        "size": {"type": "string", "enum": ["small", "large"]},
    },
    "required": ["name"],
}


@pytest.fixture
def runtime_directory() -> Iterator[dict[str, str]]:
    folder = tempfile.mkdtemp(prefix="a2c")
    yield {"XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
    shutil.rmtree(folder, ignore_errors=True)


def called(url: str, office: str, environ: dict[str, str], tool: str, params: dict[str, Any], keys: Any) -> str:
    """Run the command at a terminal: for each pair wait for a text, and type the answer. What it showed at the end."""
    arguments = ["-m", "a2c_smcp.cli", "agent", "call", "pc", tool, json.dumps(params)]
    process = pexpect.spawn(
        sys.executable,
        [*arguments, "--url", url, "--office", office],
        env={**os.environ, **environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
        encoding="utf-8",
        timeout=30,
        dimensions=(40, 200),
    )
    process.delaybeforesend = None
    shown = ""
    for wanted, typed in keys:
        process.expect_exact(wanted)
        shown += str(process.before) + wanted
        process.send(typed)
    process.expect(pexpect.EOF)
    process.close()
    assert process.exitstatus == 0, shown + str(process.before)
    assert "\x1b[2J" not in shown
    return str(process.before)


async def test_the_person_at_the_terminal_of_the_agent_answers(hub: Running, runtime_directory: dict[str, str]) -> None:
    office = new_office()
    server = {**asking("new"), "questions": "agent", "default_tool_meta": {"auto_apply": True}}
    async with (
        Computer("pc", mcp_servers=[server], timings=FAST) as computer,
        SMCPComputerClient(computer, options(hub.url)) as client,
    ):
        await listed(computer)
        await client.join_office(office)

        async def call(tool: str, params: dict[str, Any], *keys: tuple[str, str]) -> str:
            return await asyncio.to_thread(called, hub.url, office, runtime_directory, tool, params, keys)

        said = await call(
            "ask",
            {"message": "Who flies?", "schema": SCHEMA},
            ("asker on pc asks:", ""),
            ("Answer? y(es), n(o):", "y\r"),
            ("Your name:", "Ada\r"),
            ("1. small", ""),
            ("size:", "2\r"),
            ("Send this to asker?", "y\r"),
        )
        assert '"name": "Ada", "size": "large"' in said
        said = await call("visit", {"url": URL}, ("It leads to example.com.", ""), ("Is it done?", "n\r"))
        assert '"decline"' in said
        said = await call("ask", {"message": "Well?"}, ("Answer?", "\x04"))
        assert '"cancel"' in said
