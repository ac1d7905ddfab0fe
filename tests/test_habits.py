"""What a contributor relies on: the hook, the commands that CONTRIBUTING.md names, and what CI runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import BEGUN_FIRST

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_hook_keeps_a_commit_out_that_the_check_refuses(tmp_path: Path) -> None:
    for name in ("Makefile", "hooks/pre-commit"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | environment
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)

    assert run("git", "init").returncode == 0
    assert run("make", "hooks").returncode == 0
    fake = tmp_path / "bin" / "make"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "make $*"; exit ${REFUSE:-0}\n')
    fake.chmod(0o755)
    commit = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty", "-m", "Try")
    path = f"{fake.parent}{os.pathsep}{os.environ['PATH']}"
    refused = run(*commit, PATH=path, REFUSE="1")
    assert "check" in refused.stdout + refused.stderr
    assert refused.returncode != 0 and run("git", "rev-parse", "HEAD").returncode != 0
    assert run(*commit, PATH=path).returncode == 0


def test_ci_runs_the_command_that_people_type_on_every_python_that_the_package_names() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    job = yaml.safe_load(text)["jobs"]["test"]
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make test PYTHON=python"]


def test_long_tests_are_begun_first() -> None:
    assert [name for name in BEGUN_FIRST if not (ROOT / "tests" / name).exists()] == []
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "tests/utils/test_backoff.py"]
    done = subprocess.run([*command, "tests/fuzz"], cwd=ROOT, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.startswith("tests/fuzz/test_fuzz.py::")
    test = re.search(r"^test:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert test is not None and "--no-loadscope-reorder" in test[1], "xdist begins with the files of most tests"


def test_the_commands_of_the_contributors_page_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {match for match in re.findall(r"\bmake ([a-z-]+)", text) if match not in ("and", "it")} <= targets
