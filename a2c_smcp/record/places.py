"""Where the record of a computer is kept. Imports nothing of a record, so that `--help` stays quick."""

import hashlib
import re
from pathlib import Path

from a2c_smcp.utils.state_folder import state_folder

__all__ = ["record_of"]


def record_of(computer: str) -> Path:
    """The file of the computer with this name. Raises `BadRequestError` if there is no home."""
    digest = hashlib.sha256(computer.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", computer).strip("-.")[:48]
    return state_folder() / "record" / f"{plain or 'computer'}-{digest}.sqlite"
