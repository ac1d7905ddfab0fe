"""`a2c uninstall-data`: what the programs of this package keep on this disk for one user, and its removal.

It knows three places and nothing else: the state folder, the cache folder and the folders of local sockets. It follows
no link, so nothing outside of them is touched.
"""

import asyncio
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from a2c_smcp.computer.sign_in.token_store import TokenStore
from a2c_smcp.terminal.exits import FAILED
from a2c_smcp.utils.run_folder import run_folders
from a2c_smcp.utils.state_folder import state_folder
from a2c_smcp.utils.system import IS_UNIX

__all__ = ["KeptFolder", "kept_data", "uninstall_data"]

_PARTS: Final = {
    "console": "which browsers may use a console, and what its cards remember",
    "docs": "the index of documents, which is made again when it is needed",
    "history": "what was typed at the prompt of a computer",
    "logins": "your sign-ins at servers",
    "offices": "which office an MCP host used last",
    "record": "the record of calls and decisions",
    "rules": "rules that were made in a console or at a prompt",
    "sign-in": "sign-ins of computers at MCP servers",
    "tools": "what the tools of MCP servers were when a person allowed them",
}


@dataclass(frozen=True, slots=True)
class KeptFolder:
    """One of our folders."""

    path: Path
    problem: str = ""
    """Why it is not removed."""


def kept_data() -> list[KeptFolder]:
    """Our folders that are there."""
    folders = [state_folder()]
    if IS_UNIX:  # elsewhere there are neither documents nor local sockets
        from a2c_smcp.docs.index import cache_folder

        folders += [cache_folder().parent, *run_folders()]
    return [KeptFolder(path, _problem_of(path)) for path in dict.fromkeys(folders) if os.path.lexists(path)]


def _problem_of(path: Path) -> str:
    about = path.lstat()
    if stat.S_ISLNK(about.st_mode):
        return f"a link to {os.readlink(path)}, which is not followed"
    if not stat.S_ISDIR(about.st_mode):
        return "not a folder"
    return "another user's" if IS_UNIX and about.st_uid != os.geteuid() else ""


def uninstall_data(say: Callable[[str], None], is_agreed: Callable[[], bool]) -> int:
    """Show what is kept, and remove it once `is_agreed`. Returns the exit status."""
    found = kept_data()
    for kept in found:
        say(f"{kept.path}{f': {kept.problem}' if kept.problem else ''}")
        for line in () if kept.problem else _lines_of(kept.path):
            say(f"  {line}")
    removable = [kept.path for kept in found if not kept.problem]
    if not removable:
        say("Nothing is kept that could be removed.")
        return 0
    if running := [str(path) for folder in removable for path in folder.glob("*.sock") if _answers(path)]:
        say(f"Nothing was removed: stop what still runs first. It listens at {', '.join(running)}")
        return FAILED
    if not is_agreed():
        say("Nothing was removed.")
        return FAILED
    sign_ins = state_folder() / "sign-in"
    if state_folder() in removable and not sign_ins.is_symlink():
        asyncio.run(_forget_sign_ins(sign_ins, [file.stem for file in sorted(sign_ins.glob("*.json"))]))
    failures: list[str] = []
    for path in removable:
        # It opens each folder by its parent's descriptor: a link that comes meanwhile is not followed either.
        shutil.rmtree(path, onerror=lambda _, place, error: failures.append(f"{place}: {error[1]}"))
    for failure in failures:
        say(f"not removed: {failure}")
    say("Removed." if not failures else "Removed, but for these.")
    return FAILED if failures else 0


def _lines_of(folder: Path) -> Iterator[str]:
    for name in sorted(os.listdir(folder)):
        files, size = _size_of(folder / name)
        count = f"{files:>6} file{'s' if files != 1 else ' '} {size / 1e6:>9.1f} MB"
        yield f"{name:<10} {count}  {_PARTS.get(name, '')}".rstrip()


def _size_of(path: Path) -> tuple[int, int]:
    """How many files are below, and their bytes. A link is a file."""
    with suppress(OSError):
        if not stat.S_ISDIR((about := path.lstat()).st_mode):
            return 1, about.st_size
        sizes = [_size_of(path / name) for name in os.listdir(path)]
        return sum(files for files, _ in sizes), sum(size for _, size in sizes)
    return 0, 0


def _answers(path: Path) -> bool:
    with closing(socket.socket(socket.AF_UNIX)) as asking, suppress(OSError):
        asking.settimeout(1)
        asking.connect(str(path))
        return True
    return False


async def _forget_sign_ins(folder: Path, keys: Iterable[str]) -> None:
    """Delete what the system's keyring holds: the files say only that it is there."""
    store = TokenStore(folder)
    for key in keys:
        await store.delete(key)
