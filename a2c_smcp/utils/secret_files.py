"""Files with keys: reading one, and checking who else may read or change it. Knows no command."""

import os
import shlex
import stat
from pathlib import Path

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.system import IS_UNIX

__all__ = ["exposure", "key_in"]


def key_in(path: Path) -> str:
    """The key in a file, without blanks and line breaks around it. Raises `BadRequestError`."""
    try:
        with path.open("rb") as file:
            # A key is much shorter. A large file was named by mistake, and is not read.
            key = file.read(64 * 1024 + 1).decode().strip()
    except OSError as error:
        raise BadRequestError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadRequestError(f"{path}: is not text") from None
    if not key or len(key.splitlines()) > 1:
        raise BadRequestError(f"{path}: must have one key, on a line of its own")
    return key


def exposure(path: Path, *, secret: bool = True) -> str | None:
    """What other users can do with a file of keys, and the command that prevents it; `None` if they can do nothing.
    Without `secret` they may read the file: it has hashes only.
    """
    if not IS_UNIX:
        return None
    try:
        about, folder = path.stat(), path.resolve().parent
        above = folder.stat()
    except OSError:
        return None  # the reader of the file reports the problem
    name, place = shlex.quote(str(path)), shlex.quote(str(folder))
    if about.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to another user, who may put keys into it; type: sudo chown {os.geteuid()} {name}"
    if about.st_mode & 0o022:
        return f"{path} may be changed by others, who may put keys into it; type: chmod 600 {name}"
    if above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX:
        return f"{path} may be replaced by others, who may write to its folder; type: chmod go-w {place}"
    if secret and about.st_mode & 0o044:
        return f"{path} may be read by others, and has keys in it; type: chmod 600 {name}"
    return None
