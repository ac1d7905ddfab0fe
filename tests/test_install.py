"""`tools/install.py`, which sets up every environment: what a newcomer sees when a step works, and when one fails."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.interpreters import find_python

INSTALL = Path(__file__).parent.parent / "tools" / "install.py"
#: Neither uv nor pip reaches PyPI.
OFFLINE = {"UV_OFFLINE": "1", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}


def install(*words: str | Path, python: str = sys.executable, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [python, INSTALL, *words], capture_output=True, text=True, timeout=110, env=os.environ | OFFLINE | environ
    )


def wheel(folder: Path, name: str) -> None:
    """A package with nothing in it."""
    info = f"{name}-1.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1-py3-none-any.whl", "w") as file:
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


def test_each_step_is_a_line_and_one_that_fails_shows_why_and_what_to_do(tmp_path: Path) -> None:
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("little==1\nmissing==13.0\n")
    wheel(tmp_path, "little")
    done = install(tmp_path / "env", constraints, "little", PIP_FIND_LINKS=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    first, *steps = done.stdout.splitlines()
    assert first.startswith("Setting up ") and all(" after " in step and step.endswith(" s") for step in steps)
    assert " done after " in steps[-1] and "little" in steps[-1]
    failed = install(tmp_path / "env", constraints, "missing", PIP_FIND_LINKS=str(tmp_path))
    assert failed.returncode == 1 and " failed after " in failed.stdout
    assert "ERROR: Cannot install missing" in failed.stderr  # of pip's last lines
    assert "HTTPS_PROXY" in failed.stderr and "install.log" in failed.stderr and "PYTHON=" in failed.stderr


def test_without_ensurepip_it_says_which_package_to_install(tmp_path: Path) -> None:
    code = f"import runpy, sys; sys.modules['ensurepip'] = None; sys.argv[1:] = ['{tmp_path}/env', '{os.devnull}', 'x']"
    code += f"; runpy.run_path('{INSTALL}', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "apt install python3-venv" in done.stderr
    assert not (tmp_path / "env").exists()


def test_an_old_python_is_told_so_and_nothing_is_made(tmp_path: Path) -> None:
    found = (find_python(version, os.environ) for version in ("3.10", "3.9", "3.8", "3.7"))
    old = next(filter(None, found), None)
    if old is None:
        pytest.skip("no Python before 3.11 on this machine")
    done = install(tmp_path / "env", os.devnull, "x", python=old)
    assert done.returncode == 1 and "needs Python 3.11 or newer" in done.stderr
    assert not (tmp_path / "env").exists()


def test_no_step_of_make_hides_why_it_fails() -> None:
    """`npm --silent` fails without a word."""
    recipes = (INSTALL.parent.parent / "Makefile").read_text().splitlines()
    installing = [line for line in recipes if "npm install" in line or "installArchSpecificPackage" in line]
    assert installing and not [line for line in installing if "--silent" in line or "2>&1" in line]
