"""Where programs of this package keep what outlives a run, for one user."""

import os
from pathlib import Path

from a2c_smcp.utils.values import file_path

__all__ = ["state_folder"]


def state_folder() -> Path:
    """`$XDG_STATE_HOME/a2c-smcp`, or `~/.local/state/a2c-smcp`; it need not exist.

    Raises `BadRequestError` if there is no home.
    """
    return file_path(os.environ.get("XDG_STATE_HOME") or "~/.local/state") / "a2c-smcp"
