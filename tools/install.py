"""Makes an environment of this clone, and shows each step in one line with its time.

    python tools/install.py FOLDER CONSTRAINTS REQUIREMENT …

A requirement that begins with `.` is this clone itself, editable. uv installs ten times faster than pip. It is taken
from the PATH, from .venv, or from PyPI if the constraints name it. Without uv, or if uv fails, pip does it. A step
that fails shows the last lines of its output. Needs the standard library only, and says so if Python is too old.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["main"]

_OLDEST = (3, 11)
_ROOT = Path(__file__).resolve().parent.parent
#: They come first, because a build without isolation downloads nothing more.
_BUILD_TOOLS = ("hatchling", "editables", "setuptools", "wheel")
_LAST_LINES = 20
_VERSION = sys.version.split()[0]
_TOO_OLD = f"""a2c-office needs Python 3.11 or newer, and this is {_VERSION}.
Install one (Debian 12 or newer: apt install python3 python3-venv), or name one: make PYTHON=/path/to/python3.12 …"""
_NO_VENV = """This Python cannot make virtual environments: it has no ensurepip.
Debian and Ubuntu have it in a package of its own. Type as root: apt install python3-venv
Then type the same make again. If you are not root, name another Python: make PYTHON=/path/to/python3 …"""
_ADVICE = f"""- Is the network there, and does it need a proxy? pip reads HTTPS_PROXY, and PIP_INDEX_URL.
- Does a package refuse Python {_VERSION}? Name another one: make clean, then make PYTHON=/path/to/python3.12 …
Then type the same make again: what is installed stays."""


class StepError(Exception):
    """A step did not work; the text says why, and what to do."""


class Environment:
    """One folder with a virtual environment."""

    def __init__(self, folder: Path, constraints: str) -> None:
        self.folder = folder
        self.constraints = constraints
        self.python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        self.log = folder / "install.log"

    def make(self) -> None:
        if importlib.util.find_spec("ensurepip") is None:
            raise StepError(_NO_VENV)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")
        self.step(f"{self.folder} with Python {_VERSION}", [sys.executable, "-m", "venv", str(self.folder)])

    def install(self, what: str, requirements: tuple[str, ...], uv: str | None) -> None:
        arguments = ["-c", self.constraints, *requirements]
        if uv is not None:
            command = [uv, "pip", "install", "--python", str(self.python), *arguments]
            if self.step(what, command, may_fail=True, settings=self.as_pip()):
                return
            what += ", with pip because uv could not"
        self.step(what, [*self.pip(), *arguments])

    def pip(self) -> list[str]:
        # Nothing is compiled: Python compiles what it imports, and most of this is never imported.
        return [str(self.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]

    def as_pip(self) -> dict[str, str]:
        """Settings by which uv uses the certificates and the index that pip uses: uv does not read those of pip."""
        settings = {"UV_NO_CONFIG": "1", "UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
        command = [str(self.python), "-m", "pip", "config", "get", "global.index-url"]
        said = subprocess.run(command, capture_output=True, text=True)
        index = os.environ.get("PIP_INDEX_URL") or ("" if said.returncode else said.stdout.strip())
        return {**settings, "UV_DEFAULT_INDEX": index} if index else settings

    def find_uv(self) -> str | None:
        own = self.python.parent / "uv"
        for found in (shutil.which("uv"), own, _ROOT / ".venv" / "bin" / "uv"):
            if found is not None and Path(found).exists():
                return str(found)
        pinned = [line for line in Path(self.constraints).read_text().splitlines() if line.startswith("uv==")]
        wanted = [*self.pip(), "--no-deps", *pinned]
        if pinned and self.step("uv, which installs faster than pip", wanted, may_fail=True) and own.exists():
            return str(own)
        return None

    def step(
        self, what: str, command: list[str], *, may_fail: bool = False, settings: dict[str, str] | None = None
    ) -> bool:
        """Run a command, and print what it is for and how long it took. Raises `StepError` unless it may fail."""
        print(f"  {what} …", end="", flush=True)
        began = time.monotonic()
        with self.log.open("a+", errors="replace") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            start = log.tell()
            try:
                environ = {**os.environ, **(settings or {})}
                status = subprocess.call(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environ)
            except OSError as error:
                status = -1
                log.write(f"{error}\n")
            print(f" {'failed' if status else 'done'} after {time.monotonic() - began:.1f} s", flush=True)
            log.seek(start)
            if status and not may_fail:
                last = "\n".join(f"    {line}" for line in log.read().splitlines()[-_LAST_LINES:])
                raise StepError(f"{last}\n\nThe whole output is in {self.log}.\n{_ADVICE}")
        return not status


def main(folder: str, constraints: str, *requirements: str) -> None:
    """Make the environment and install the requirements, or raise `StepError`."""
    if sys.version_info < _OLDEST:
        raise StepError(_TOO_OLD)
    environment = Environment(Path(folder), constraints)
    print(f"Setting up {folder}", flush=True)
    environment.make()
    uv = environment.find_uv()
    foreign = [requirement for requirement in requirements if not requirement.startswith(".")]
    ours = [f"--editable={requirement}" for requirement in requirements if requirement.startswith(".")]
    if ours:
        environment.install("the build tools", _BUILD_TOOLS, uv)
        environment.install("a2c-office, from here", ("--no-build-isolation", *ours, *foreign), uv)
    else:
        environment.install(" ".join(foreign), tuple(foreign), uv)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except StepError as error:
        sys.exit(f"\n{error}")
    except KeyboardInterrupt:
        sys.exit(130)
