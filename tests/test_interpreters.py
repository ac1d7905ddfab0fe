"""`make test-all`: which Pythons it finds, what it runs with each, and what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from tests.interpreters import VERSIONS, find_python

ROOT = Path(__file__).parent.parent


def script(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_python_is_found_on_the_path_or_at_pyenv_and_a_shim_that_finds_none_is_passed_over(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    on_path = script(tmp_path / "bin" / "python3.12", "echo 3.12")
    script(tmp_path / "bin" / "python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127")
    script(tmp_path / ".pyenv" / "versions" / "3.13.9" / "bin" / "python", "echo 3.13")
    newest = script(tmp_path / ".pyenv" / "versions" / "3.13.10" / "bin" / "python", "echo 3.13")
    script(tmp_path / ".pyenv" / "versions" / "3.14.0" / "bin" / "python", "echo 3.11")
    found = {version: find_python(version, environ) for version in VERSIONS}
    assert found == {"3.11": None, "3.12": on_path, "3.13": newest, "3.14": None}


def test_each_gets_an_environment_of_its_own_and_the_end_says_which_were_not_found(tmp_path: Path) -> None:
    path = f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"
    for version in ("3.12", "3.13"):
        script(tmp_path / "bin" / f"python{version}", f"echo {version}")
    for version in ("3.11", "3.14"):
        script(tmp_path / "bin" / f"python{version}", "exit 127")
    script(tmp_path / "bin" / "make", 'echo "make $*"; case "$*" in *3.13*) exit 2;; esac')
    done = subprocess.run(
        [sys.executable, "-m", "tests.interpreters", "tests/agent", "tests/server"],
        cwd=ROOT,
        env={"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    run = f"make test PYTHON={tmp_path}/bin/python3.12 VENV=.venv-3.12 TESTS=tests/agent tests/server\n"
    assert run in done.stdout
    assert re.findall(r"^Python (\S+): (passed|failed|not found)", done.stdout, re.MULTILINE) == [
        ("3.11", "not found"),
        ("3.12", "passed"),
        ("3.13", "failed"),
        ("3.14", "not found"),
    ]


def test_the_makefile_sets_up_the_environment_that_it_is_told() -> None:
    wanted = ["make", "--dry-run", "--always-make", "test", "PYTHON=python9", "VENV=.venv-9", "TESTS=tests/agent"]
    planned = subprocess.run(wanted, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "python9 tools/install.py .venv-9 constraints.txt '.[dev]'\n" in planned
    assert re.search(
        r"^\.venv-9/bin/python -m tests.guarded \.venv-9/bin/pytest .* tests/agent$", planned, re.MULTILINE
    )
    assert ".venv/" not in planned


def test_the_versions_are_those_of_ci() -> None:
    job = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]["test"]
    assert tuple(job["strategy"]["matrix"]["python"]) == VERSIONS
