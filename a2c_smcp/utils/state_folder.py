"""Where the programs of this package keep data of one user from one run to the next."""

import os
from pathlib import Path

from a2c_smcp.utils.values import file_path

__all__ = ["state_folder"]


def state_folder() -> Path:
    """`$XDG_STATE_HOME/a2c-smcp`, or `~/.local/state/a2c-smcp`; it need not exist.

    Raises `BadRequestError` if there is no home.
    """
    return file_path(os.environ.get("XDG_STATE_HOME") or "~/.local/state") / "a2c-smcp"
