"""Every command on a system without what only Unix has: it works, or says what is missing. Never a traceback.

The system is this one, with `tests/no_unix` on the PYTHONPATH of every process.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters

from tests.mcp_server.clients import LEGACY, connected

ROOT = Path(__file__).parent.parent
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "tests" / "no_unix"), str(ROOT)))}
A2C = (sys.executable, "-m", "a2c_smcp.cli")
DEADLINE = 100.0
PARTS = (
    "the prompt of a computer",
    "folders as documents (a2c docs)",
    "what is open as windows (a2c windows)",
    "a seat that processes share (a2c mcp)",
)


@contextmanager
def started(*arguments: str, ready: str, log: Path) -> Iterator[re.Match[str]]:
    """A command that runs until it is told to end, and what it said when it was ready."""
    with log.open("w") as stderr:
        process = subprocess.Popen([*A2C, *arguments], stdin=subprocess.DEVNULL, stderr=stderr, env=ENV)
    try:
        deadline = time.monotonic() + DEADLINE
        while (match := re.search(ready, log.read_text())) is None:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield match
        process.terminate()
        assert process.wait(DEADLINE) == 0, log.read_text()
        assert "Traceback" not in log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("no_unix")


@pytest.fixture(scope="module")
def office(folder: Path) -> Iterator[tuple[str, ...]]:
    """How to reach an office whose server and computer lack everything, too."""
    command = {"command": sys.executable, "args": ["-m", "a2c_smcp.demo.mcp_server"], "env": ENV}
    config = folder / "config.json"
    entry = {"name": "demo", "type": "stdio", "default_tool_meta": {"auto_apply": True}, "server_parameters": command}
    config.write_text(json.dumps([entry]))
    with started("server", "--port", "0", ready=r"ready on (\S+)", log=folder / "server.log") as said:
        place = ("--url", said[1], "--office", "lab")
        arguments = ("computer", "run", "--headless", "--config", str(config), "--name", "pc", *place)
        with started(*arguments, ready="is in office", log=folder / "computer.log"):
            yield place


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*A2C, *arguments], capture_output=True, text=True, timeout=DEADLINE, check=False, env=ENV)
    assert "Traceback" not in done.stderr
    return done


def test_a_computer_says_at_its_start_what_it_lacks_and_an_agent_uses_it(office: tuple[str, ...], folder: Path) -> None:
    log = (folder / "computer.log").read_text()
    for part in PARTS:
        assert log.count(f"not on this system: {part}, which needs ") == 1, log
    called = run("agent", "call", "pc", "greet", "text=world", *office)
    assert (called.returncode, called.stdout) == (0, "Hello, world!\n"), called.stderr


async def test_the_bridge_serves_a_host_and_takes_the_seat_for_itself(office: tuple[str, ...], folder: Path) -> None:
    arguments = ["-m", "a2c_smcp.cli", "mcp", *office, "--search", "never"]
    async with connected(StdioServerParameters(command=sys.executable, args=arguments, env=ENV), LEGACY) as (
        host,
        heard,
    ):
        while not (names := [tool.name for tool in (await host.list_tools()).tools if tool.name.endswith("greet")]):
            await heard.of("tools")
        answer: Any = await host.call_tool(names[0], {"text": "host"})
        assert answer.content[0].text == "Hello, host!"


def test_the_doctor_looks_at_the_office_there(office: tuple[str, ...]) -> None:
    done = run("doctor", *office, "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["ok"]) == (0, True), said
    assert [each["what"].split(", which")[0] for each in said["findings"] if each["about"] == "system"] == [
        f"not on this system: {part}" for part in PARTS
    ]
    assert "its computers: pc" in said["findings"][-1]["what"]


#: In one process, because each takes half a second to import. Prints a line for each command, and at the end the
#: modules that cannot be imported.
_COMMANDS = """
import importlib, json, pkgutil, sys
import typer
from typer.testing import CliRunner
import a2c_smcp
from a2c_smcp.cli import app

def commands(group, words=()):
    yield words
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*words, name))

for words in [*json.loads(sys.argv[1]), *([*words, "-h"] for words in commands(typer.main.get_command(app)))]:
    done = CliRunner().invoke(app, words)
    crash = done.exception if not isinstance(done.exception, SystemExit) else None
    print(json.dumps([words, done.exit_code, done.output, crash and repr(crash)]))
broken = []
for module in pkgutil.walk_packages(a2c_smcp.__path__, "a2c_smcp."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except Exception:
            broken.append(module.name)
print(json.dumps(broken))
"""


def test_what_cannot_work_says_so_and_nothing_else_misses_a_module(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[]")
    file = str(tmp_path / "config.json")
    prompt = ["computer", "run"]
    serve, check = ["docs", "serve", str(tmp_path)], ["docs", "check", str(tmp_path)]
    validate, schema = ["computer", "validate", file], ["computer", "schema"]
    windows = ["windows", "--terminals"]
    words = json.dumps([prompt, serve, check, windows, validate, schema])
    done = subprocess.run(
        [sys.executable, "-c", _COMMANDS, words], capture_output=True, text=True, timeout=DEADLINE, check=False, env=ENV
    )
    assert done.returncode == 0, done.stderr
    *lines, broken = map(json.loads, done.stdout.splitlines())
    assert [line for line in lines if line[3]] == []
    ended = {
        tuple(words): (status, " ".join(re.sub("[│╭╮╰╯─]", " ", output).split())) for words, status, output, _ in lines
    }
    status, said = ended[tuple(prompt)]
    assert (
        status == 2 and "not on this system: the prompt of a computer, which needs a Unix terminal; run it with" in said
    )
    for docs in (serve, check):
        status, said = ended[tuple(docs)]
        assert status == 1 and said.startswith("a2c docs: not on this system: folders as documents (a2c docs), which")
    status, said = ended[tuple(windows)]
    assert status == 1 and said.startswith("a2c windows: not on this system: what is open as windows")
    assert [ended[tuple(each)][0] for each in (validate, schema)] == [0, 0]
    assert {status for words, (status, _) in ended.items() if words[-1] == "-h"} == {0}
    rooms = ("a2c_smcp.docs.", "a2c_smcp.windows.", "a2c_smcp.computer.cli.")
    assert broken and all(name.startswith(rooms) for name in broken)
    assert not {
        "a2c_smcp.computer.cli.headless",
        "a2c_smcp.computer.cli.doctor",
        "a2c_smcp.docs.cli",
        "a2c_smcp.windows.cli",
    } & {*broken}
