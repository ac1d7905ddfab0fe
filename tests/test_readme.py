"""The READMEs' quick start greets, and their Python runs, prints what its comments say, and is typed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


# --- the quick start

#: Stands for the `python3` of a user: the environments that it makes see what is installed here, so that nothing has to
#: be fetched.
_PYTHON3 = """#!/bin/sh
{python} "$@" || exit
[ "$1 $2" != "-m venv" ] || echo {packages} > "$3/lib/python{version}/site-packages/installed-already.pth"
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    everywhere = shutil.ignore_patterns(".*", "__pycache__")
    at_the_top = shutil.ignore_patterns("tests", "bench", "docs", "build")

    def leave_out(folder: str, names: list[str]) -> set[str]:
        return everywhere(folder, names) | (at_the_top(folder, names) if Path(folder) == ROOT else set())

    return Path(shutil.copytree(ROOT, tmp_path / "clone", ignore=leave_out))


@pytest.mark.timeout(300)
def test_the_quick_start_goes_from_the_installation_to_the_greeting(tmp_path: Path, clone: Path, port: int) -> None:
    [lines] = _SHELL.findall((ROOT / READMES[0]).read_text())
    assert len(lines.splitlines()) == 6
    (tmp_path / "python3").write_text(
        _PYTHON3.format(
            python=Path(sys.executable).resolve(),
            packages=sysconfig.get_path("purelib"),
            version=sysconfig.get_python_version(),
        )
    )
    (tmp_path / "python3").chmod(0o755)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("A2C_", "PYTHON", "VIRTUAL_ENV"))}
    env = {
        **clean,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads the value the other way round
        "A2C_PORT": str(port),
        "A2C_URL": f"http://127.0.0.1:{port}",
    }
    with (tmp_path / "stdout").open("w") as out, (tmp_path / "stderr").open("w") as err:
        shell = subprocess.Popen(
            ["sh", "-e", "-c", lines], stdout=out, stderr=err, env=env, cwd=clone, start_new_session=True
        )
        try:
            status = shell.wait(240)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)  # the server and the computer are in the shell's group
    said = (tmp_path / "stdout").read_text()
    assert status == 0, said + (tmp_path / "stderr").read_text()
    assert said.splitlines()[-1] == "Hello, world!"


@pytest.mark.parametrize("page", [READMES[1], "docs/quickstart.md"])
def test_both_languages_and_the_site_start_alike(page: str) -> None:
    assert _SHELL.findall((ROOT / READMES[0]).read_text()) == _SHELL.findall((ROOT / page).read_text())
