"""Where the programs of this package have their local sockets: a directory of one user, for as long as they run."""

import os
import stat
import sys
from pathlib import Path
from typing import Final

__all__ = ["LONGEST_SOCKET_PATH", "NoRunFolderError", "is_private_folder", "run_folder", "run_folders"]

#: The longest address of a local socket: 108 bytes on Linux, 104 elsewhere, with the zero at its end.
LONGEST_SOCKET_PATH: Final = 103
_TEMPORARY: Final = Path("/tmp")
_DARWIN_USER_TEMP_DIR: Final = 65537


class NoRunFolderError(Exception):
    """This user has no directory for local sockets. The text says why."""


def run_folder(name_length: int) -> Path:
    """A directory of this user's, made if it is missing. The address of a socket in it, whose name has this many
    bytes, is short enough. If a stranger could have made it first, its owner and mode are checked.
    """
    folders = run_folders()
    folder = next(folder for folder in folders if len(os.fsencode(folder)) + 1 + name_length <= LONGEST_SOCKET_PATH)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise NoRunFolderError(f"{folder} cannot be made: {error.strerror}") from None
    if not is_private_folder(folder):
        raise NoRunFolderError(f"{folder} is not a directory that belongs to this user alone")
    return folder


def run_folders() -> list[Path]:
    """Where it may be, the best place first. The last one is short enough for every name."""
    user = os.geteuid()
    # Not TMPDIR: hosts pass few variables on to their processes, so it would lead to another place than in a terminal.
    runtimes = [os.environ.get("XDG_RUNTIME_DIR"), f"/run/user/{user}"]
    if sys.platform == "darwin":
        runtimes.append(os.confstr(_DARWIN_USER_TEMP_DIR))
    # The XDG specification says to ignore a relative path. For another process it would be another directory.
    folders = [
        Path(runtime) / "a2c"
        for runtime in runtimes
        if runtime and os.path.isabs(runtime) and is_private_folder(Path(runtime))
    ]
    return [*folders, _TEMPORARY / f"a2c-{user}"]


def is_private_folder(folder: Path) -> bool:
    """Whether this is a directory, not a link to one, that nobody else may enter."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
