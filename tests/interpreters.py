"""`make test` with every Python that the package supports and this machine has, one after the other.

    python -m tests.interpreters [TEST …]

Each has an environment of its own in this clone, `.venv-3.12` for instance. Says which versions were not found, and
exits with 1 when a run failed. Needs the standard library only.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["VERSIONS", "find_python", "main"]

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
_SHOW_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def find_python(version: str, environ: Mapping[str, str]) -> str | None:
    """A Python of this version: on the PATH, else the newest of pyenv's; `None` without one."""
    return next((path for path in _candidates(version, environ) if _is(path, version, environ)), None)


def _candidates(version: str, environ: Mapping[str, str]) -> Iterator[str]:
    if on_path := shutil.which(f"python{version}", path=environ.get("PATH", "")):
        yield on_path  # of pyenv it may be a script that finds nothing
    root = environ.get("PYENV_ROOT") or os.path.join(environ.get("HOME", ""), ".pyenv")
    patches = [path for path in Path(root, "versions").glob(f"{version}.*") if path.name.split(".")[-1].isdigit()]
    for path in sorted(patches, key=lambda path: int(path.name.split(".")[-1]), reverse=True):
        yield str(path / "bin" / "python")


def _is(path: str, version: str, environ: Mapping[str, str]) -> bool:
    try:
        command = [path, "-c", _SHOW_VERSION]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=dict(environ))
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.returncode == 0 and said.stdout.strip() == version


def main(tests: list[str]) -> int:
    outcomes: dict[str, str] = {}
    for version in VERSIONS:
        python = find_python(version, os.environ)
        if python is None:
            outcomes[version] = "not found on this machine"
            continue
        print(f"\n=== Python {version}: {python}", flush=True)
        started = time.monotonic()
        targets = [f"TESTS={' '.join(tests)}"] if tests else []
        status = subprocess.run(["make", "test", f"PYTHON={python}", f"VENV=.venv-{version}", *targets]).returncode
        outcomes[version] = f"{'failed' if status else 'passed'} in {time.monotonic() - started:.0f} s"
    print()
    for version, outcome in outcomes.items():
        print(f"Python {version}: {outcome}")
    return 1 if any(outcome.startswith("failed") for outcome in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
