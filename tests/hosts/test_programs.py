"""The programs of docs/hosts.md run as they are printed there, with a URL and a key put in; its configs make sense."""

import json
import re
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.conftest import DEADLINE, ROOT, Lab, python_of, run

PAGE = (ROOT / "docs" / "hosts.md").read_text("utf-8")
_SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_JSON = re.compile(r"^```json\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
_KEY = '{"A2C_API_KEY": "your key"}'

PROGRAMS = {title: found[1] for title, text in _SECTION.findall(PAGE) if (found := _PROGRAM.search(text))}
ENVIRONMENTS = {"OpenAI Agents SDK": ".venv-hosts", "LangChain": ".venv-mcp1", "pydantic-ai": ".venv-hosts"}


@pytest.mark.parametrize("host", ENVIRONMENTS)
def test_the_program_for_a_host_runs_as_it_is_printed(host: str, lab: Lab, tmp_path: Path) -> None:
    program = PROGRAMS[host]
    assert program.count("https://hub.example") == 1 and program.count(_KEY) == 1
    names = ("A2C_API_KEY", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "PATH")
    passed = {key: lab.env[key] for key in names}
    file = tmp_path / "program.py"
    file.write_text(program.replace("https://hub.example", lab.env["A2C_URL"]).replace(_KEY, json.dumps(passed)))
    deadline = time.monotonic() + DEADLINE
    while True:
        done = run([python_of(ENVIRONMENTS[host]), str(file)], lab)
        assert done.returncode == 0, done.stderr
        listed, _, answer = done.stdout.partition("\n")
        assert "'list_computers'" in listed
        # A program lists once, and a list waits three seconds for the office. A busy machine may take longer to enter.
        if "pc__echo" in listed and "- pc: 4 tools" in answer:
            break
        assert time.monotonic() < deadline, done.stdout


def test_every_program_of_the_page_is_run() -> None:
    assert PROGRAMS.keys() == ENVIRONMENTS.keys()


def commands() -> Iterator[tuple[list[str], list[str]]]:
    """The command of each config on the page, and the names of its environment."""
    configs = [json.loads(text) for text in _JSON.findall(PAGE)] + [tomllib.loads(text) for text in _TOML.findall(PAGE)]
    for config in configs:
        [servers] = [config[key] for key in ("mcpServers", "servers", "mcp", "mcp_servers") if key in config]
        [server] = servers.values()
        command = server["command"]
        whole = command if isinstance(command, list) else [command, *server["args"]]
        yield whole, list(server.get("env") or server["environment"])


def test_the_configs_name_a_command_that_is_ours_or_that_connects_to_ours(lab: Lab) -> None:
    found = list(commands())
    assert len(found) == 5
    for (program, *arguments), environment in found:
        if program == "npx":
            assert arguments[1:3] == ["mcp-remote", "http://127.0.0.1:8800/mcp"]
            continue
        assert (program, environment) == ("a2c", ["A2C_API_KEY"])
        # What the command line does not take is answered with a status, before anything is tried.
        done = run([str(Path(sys.executable).parent / "a2c"), *arguments, "--help"], lab)
        assert done.returncode == 0, done.stderr
