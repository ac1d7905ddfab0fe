"""The package that a command such as `npx` or `uvx` downloads, and whether its registry has it.
The package manager asks the registry, and only if the person said so.
"""

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from a2c_smcp.utils.children import kill_group, start_group

__all__ = ["DownloadedPackage", "downloaded_package", "is_there"]

_SECONDS: Final = 30.0
#: Options of these commands that have a value of their own.
_WITH_VALUE: Final = frozenset({"--from", "--with", "--python", "-p", "--package", "-c", "--call", "--index-url"})
#: Options whose value is the package.
_NAMING: Final = frozenset({"--from", "-p", "--package", "--spec"})


@dataclass(frozen=True, slots=True)
class DownloadedPackage:
    """A package that a command downloads when it starts. `registry` is `npm` or `PyPI`."""

    registry: str
    name: str

    @property
    def question(self) -> list[str]:
        """The command that asks the registry: its exit status says whether the package is there."""
        if self.registry == "npm":
            return ["npm", "view", self.name, "name"]
        plain = self.name.partition("[")[0].partition("@")[0].partition("=")[0].partition(">")[0].partition("<")[0]
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions", plain]


def downloaded_package(command: str, args: Sequence[str]) -> DownloadedPackage | None:
    """What a command line downloads; `None` if it downloads nothing, or if that is not to be seen. Pure."""
    program = PurePath(command).name.removesuffix(".cmd").removesuffix(".exe")
    words = list(args)
    if program == "pipx" and words[:1] == ["run"]:
        program, words = "uvx", words[1:]
    registry = {"npx": "npm", "bunx": "npm", "pnpx": "npm", "uvx": "PyPI"}.get(program)
    while registry is not None and words:
        word = words.pop(0)
        option, equals, value = word.partition("=")
        if option in _NAMING:
            name = value if equals else words[0] if words else ""
        elif word.startswith("-"):
            if option in _WITH_VALUE and not equals and words:
                words.pop(0)
            continue
        else:
            name = word
        return DownloadedPackage(registry, name) if _is_name(name) else None
    return None


def _is_name(name: str) -> bool:
    """Whether it is a name of a registry, and no path, repository or archive."""
    return name[:1] not in ("", ".", "/", "~") and ":" not in name and name.count("/") == name.startswith("@")


async def is_there(package: DownloadedPackage) -> bool | None:
    """Whether the registry has the package; `None` if it cannot be asked."""
    question = package.question
    if shutil.which(question[0]) is None:
        return None
    process = await start_group(*question, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env=dict(os.environ))
    try:
        async with asyncio.timeout(_SECONDS):
            return await process.wait() == 0
    except TimeoutError:
        return None
    finally:
        await kill_group(process)
