"""Replaces the content of a file in one step: a reader sees the old content or the new one, never a part of it."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

__all__ = ["replace_file"]


def replace_file(target: Path, content: bytes, before_rename: Callable[[int], None] | None = None) -> None:
    """Write the content to a new file beside the target, with mode 0600, and rename that file to the target.

    `before_rename` is called with the descriptor of the new file, and its errors are raised here. After such an error,
    or an `OSError` of the writing, the target is as it was.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    new = Path(name)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if before_rename is not None:
                before_rename(file.fileno())
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # the file is written; some folders cannot be opened
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
