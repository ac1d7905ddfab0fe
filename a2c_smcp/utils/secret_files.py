"""Files with keys: reading one, and checking who else may read or change it. Knows no command."""

import shlex
from pathlib import Path

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.owned_files import changeable
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
        if (found := changeable(path, about, [folder], "who may put keys into it")) is not None:
            return found
    except OSError:
        return None  # the reader of the file reports the problem
    if secret and about.st_mode & 0o044:
        return f"{path} may be read by others, and has keys in it; type: chmod 600 {shlex.quote(str(path))}"
    return None
