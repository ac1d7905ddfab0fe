"""Opening files inside a folder, and never outside it.

A path is walked down from the folder, one directory handle after the other, and no link is followed on the way. So it
does not matter what a path is spelled like, nor what is swapped for a link between one look and the next.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["OutsideError", "open_folder", "open_inside"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a named pipe would wait for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class OutsideError(OSError):
    """A path that does not lead to a plain file inside the folder."""


@contextmanager
def open_folder(root: str, relative: str = "") -> Iterator[int]:
    """Open a directory inside `root`. Neither `root` nor a part of the path may be a link. Raises `OSError`."""
    handle = os.open(root, _DIRECTORY)
    try:
        for part in _parts(relative):
            below = os.open(part, _DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def open_inside(root: str, relative: str) -> int:
    """Open a plain file inside `root` for reading; the caller closes the handle.

    Raises `OutsideError` if the path leads to something else, and other kinds of `OSError`.
    """
    folder, _, name = relative.rpartition("/")
    _parts(relative)
    with open_folder(root, folder) as directory:
        handle = os.open(name, _FILE, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OutsideError(f"{relative!r} is not a plain file")
    return handle


def _parts(relative: str) -> list[str]:
    if not relative:
        return []
    parts = relative.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise OutsideError(f"{relative!r} is not a path inside the folder")
    return parts
