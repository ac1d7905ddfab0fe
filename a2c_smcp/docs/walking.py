"""Which files of a folder may be documents: those that are neither hidden nor ignored nor links. Parses none."""

import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pathspec import GitIgnoreSpec

from a2c_smcp.docs.formats import is_never_a_document
from a2c_smcp.docs.paths import open_folder, open_inside

__all__ = ["FoundFile", "Walk", "walk"]

logger = logging.getLogger(__name__)

_IGNORE_FILE = ".gitignore"
_LARGEST_IGNORE_FILE = 2**20
_DEEPEST = 64

_Rules: TypeAlias = tuple[tuple[str, GitIgnoreSpec], ...]
"""The ignore files from the root down, each with the folder it stands in."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file as it was when the folder was walked. `path` is relative to the root, with `/`."""

    path: str
    size: int
    mtime_ns: int

    @property
    def version(self) -> tuple[int, int]:
        """Another one means that the file holds something else."""
        return self.size, self.mtime_ns


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk found: documents by path, and the folders they may stand in."""

    files: dict[str, FoundFile]
    folders: dict[str, int]
    """With their numbers in the file system: a folder that was replaced is another one."""
    left_out: int
    """Files beyond the limit."""


def walk(root: str, most_files: int) -> Walk:
    """Walk down a folder. What cannot be looked at is left out with a warning; a root that is gone raises `OSError`."""
    files: dict[str, FoundFile] = {}
    folders: dict[str, int] = {}
    left_out = 0
    todo: list[tuple[str, _Rules]] = [("", ())]
    while todo:
        folder, rules = todo.pop()
        try:
            names, number = _look_into(root, folder)
        except OSError as error:
            if not folder:
                raise
            logger.warning("%r is left out: %s", folder, error.strerror)
            continue
        folders[folder] = number
        if _IGNORE_FILE in names and (own := _ignore_rules(root, folder)) is not None:
            rules = (*rules, (folder, own))
        for name, about in sorted(names.items()):
            path = f"{folder}/{name}" if folder else name
            if name.startswith(".") or _is_ignored(path, stat.S_ISDIR(about.st_mode), rules):
                continue
            if stat.S_ISDIR(about.st_mode):
                if path.count("/") < _DEEPEST:
                    todo.append((path, rules))
            elif stat.S_ISREG(about.st_mode) and not is_never_a_document(name):
                if len(files) < most_files:
                    files[path] = FoundFile(path, about.st_size, about.st_mtime_ns)
                else:
                    left_out += 1
    if left_out:
        logger.warning("%d files are left out: at most %d are served", left_out, most_files)
    return Walk(dict(sorted(files.items())), folders, left_out)


def _look_into(root: str, folder: str) -> tuple[dict[str, os.stat_result], int]:
    """What stands in a folder, links as links; and the folder's number."""
    with open_folder(root, folder) as handle:
        return dict(_entries(handle)), os.fstat(handle).st_ino


def _entries(handle: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(handle) as entries:
        for entry in entries:
            try:
                yield entry.name, entry.stat(follow_symlinks=False)
            except OSError:
                continue  # it has gone meanwhile


def _ignore_rules(root: str, folder: str) -> GitIgnoreSpec | None:
    path = f"{folder}/{_IGNORE_FILE}" if folder else _IGNORE_FILE
    try:
        with os.fdopen(open_inside(root, path), "rb") as file:
            text = file.read(_LARGEST_IGNORE_FILE).decode("utf-8", "replace")
        return GitIgnoreSpec.from_lines(text.splitlines())
    except (OSError, ValueError) as error:
        logger.warning("%r is not followed: %s", path, error)
        return None


def _is_ignored(path: str, is_folder: bool, rules: _Rules) -> bool:
    """The innermost ignore file that says anything about a path decides."""
    for folder, spec in reversed(rules):
        below = path[len(folder) + 1 :] if folder else path
        verdict = spec.check_file(f"{below}/" if is_folder else below).include
        if verdict is not None:
            return verdict
    return False
