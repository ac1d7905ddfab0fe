"""Files that only this user may have written: opened so that nothing can hold the reader up, and refused otherwise.

On Windows only the kind of file is looked at: who may write to it is not known there.
"""

import os
import shlex
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from a2c_smcp.utils.system import IS_UNIX

__all__ = ["UnsafeFileError", "changeable", "read_owned"]

#: A FIFO without a writer, or a device, must not hold up whoever opens it. Windows has none of these flags.
_FLAGS: Final = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"))
#: Linux follows no more links than these.
_MOST_LINKS: Final = 40


class UnsafeFileError(OSError):
    """A file that is not used. `strerror` says why, and what to type."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(None, why, os.fspath(path))
        self.strerror = why


def read_owned(path: Path, most: int) -> bytes:
    """The first `most` bytes of a regular file that nobody but this user and root may change or replace. Raises
    `UnsafeFileError` if it is not such a file, or `OSError`.
    """
    opened = os.open(path, _FLAGS)
    try:
        about = os.fstat(opened)
        if not stat.S_ISREG(about.st_mode):
            raise UnsafeFileError(path, f"{path} is not a regular file")
        way = _way_to(path.absolute())
        for link in way[:-1] if IS_UNIX else ():
            if link.lstat().st_uid not in (0, os.geteuid()):
                raise UnsafeFileError(path, f"{link} belongs to another user, who may have it lead elsewhere")
        folders = {path.resolve().parent, *(each.parent for each in way)}
        if (why := changeable(path, about, folders, "who may change what it says")) is not None:
            raise UnsafeFileError(path, why)
        with open(opened, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(opened)


def _way_to(path: Path) -> list[Path]:
    """The links that lead to a file, and the file. Who may write to one of their folders may replace them."""
    way = [path]
    while way[-1].is_symlink() and len(way) <= _MOST_LINKS:
        way.append(way[-1].parent / way[-1].readlink())
    return way


def changeable(path: Path, about: os.stat_result, folders: Iterable[Path], who_may: str) -> str | None:
    """How others can change a file that looks like `about`, or replace it in one of its `folders`, and the command
    that prevents it; `None` if they cannot. `who_may` says what they could do.
    """
    if not IS_UNIX or _is_read_only(path):
        return None
    if about.st_uid not in (0, os.geteuid()):
        name = shlex.quote(str(path))
        return f"{path} belongs to another user, {who_may}; type: sudo chown {os.geteuid()} {name}"
    if about.st_mode & 0o022:
        return f"{path} may be changed by others, {who_may}; type: chmod 600 {shlex.quote(str(path))}"
    for folder in folders:
        above = folder.stat()
        if above.st_uid not in (0, os.geteuid()):
            return f"{path} may be replaced by the owner of {folder}, {who_may}; move it to a folder of your own"
        # In a folder with the sticky bit, such as /tmp, only its owner may replace a file.
        if above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX:
            place = shlex.quote(str(folder))
            return f"{path} may be replaced by others, who may write to its folder; type: chmod go-w {place}"
    return None


def _is_read_only(path: Path) -> bool:
    """Whether nobody can write there: Kubernetes mounts its ConfigMaps like this, in folders with mode 0777."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
