"""Where the programs of this package keep data of one user from one run to the next."""

import os
from contextlib import suppress
from pathlib import Path

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.system import IS_UNIX
from a2c_smcp.utils.values import file_path

__all__ = ["make_private_folder", "state_folder"]


def state_folder() -> Path:
    """`$XDG_STATE_HOME/a2c-smcp`, or `~/.local/state/a2c-smcp`; it need not exist.

    Raises `BadRequestError` if there is no home.
    """
    return file_path(os.environ.get("XDG_STATE_HOME") or "~/.local/state") / "a2c-smcp"


def make_private_folder(folder: Path) -> None:
    """Make a folder if it is missing. It and the parents that are missing, too, get the mode 0700.

    In the state folder nobody else may enter folders that are there already: earlier releases let them. Raises
    `OSError`.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    if not IS_UNIX:
        return
    with suppress(BadRequestError):  # there is no home
        top = state_folder()
        for each in (folder, *folder.parents):
            if each.is_relative_to(top) and (about := each.stat()).st_mode & 0o077 and about.st_uid == os.geteuid():
                each.chmod(0o700)
