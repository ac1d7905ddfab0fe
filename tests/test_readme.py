"""The READMEs' Python runs, prints what its comments say, and is typed."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh-CN.md")
_SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PRINTED = re.compile(r"print\(.*\)  # (.+)$", re.MULTILINE)


def snippets(name: str) -> list[str]:
    return _SNIPPET.findall((ROOT / name).read_text())


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the snippets are told to find: a server, and the computer `laptop` in the office `lab`."""
    config = tmp_path_factory.mktemp("readme") / "mcp.json"
    config.write_text(
        json.dumps(
            {
                "name": "demo",
                "type": "stdio",
                "default_tool_meta": {"auto_apply": True},
                "server_parameters": {"command": sys.executable, "args": ["-m", "a2c_smcp.demo.mcp_server"]},
            }
        )
    )
    env = {**os.environ, "A2C_API_KEY": "secret"}
    with running(["server", "--port", "0"], r"ready on (\S+)", env) as url:
        place = ["--url", url, "--office", "lab", "--name", "laptop"]
        with running(["computer", "run", "--headless", "--config", str(config), *place], "is in office", env):
            yield {**env, "A2C_URL": url}


@contextmanager
def running(args: list[str], ready: str, env: dict[str, str]) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "a2c_smcp.cli", *args], stderr=subprocess.PIPE, text=True, env=env
    )
    assert process.stderr is not None
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        found = next(filter(None, (re.search(ready, line) for line in process.stderr)))
        watchdog.cancel()
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield found[found.lastindex or 0]
    finally:
        watchdog.cancel()
        process.terminate()
        process.wait(20)
        process.stderr.close()


@pytest.mark.parametrize("code", [pytest.param(code, id=str(n)) for n, code in enumerate(snippets(READMES[0]))])
def test_a_snippet_runs_and_prints_what_it_says(code: str, office: dict[str, str]) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=office,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == _PRINTED.findall(code)


def test_both_languages_show_the_same_code() -> None:
    assert snippets(READMES[0])
    assert snippets(READMES[0]) == snippets(READMES[1])


@pytest.mark.timeout(300)
def test_the_programs_are_typed_as_in_a_users_project(tmp_path: Path) -> None:
    for number, code in enumerate(snippets(READMES[0])):
        (tmp_path / f"program_{number}.py").write_text(code)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "."],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stdout


def quick_start(name: str) -> list[str]:
    """The commands, one a line; `tests/test_distribution.py` runs them."""
    [lines] = _SHELL.findall((ROOT / name).read_text())
    found: list[str] = lines.splitlines()
    return found


@pytest.mark.parametrize("page", [READMES[1], "docs/quickstart.md"])
def test_both_languages_and_the_site_start_alike(page: str) -> None:
    assert quick_start(READMES[0]) == quick_start(page)
