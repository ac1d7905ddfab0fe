"""A file that gets new content in one step: a reader sees the old content or the new one, and never a part of it."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

__all__ = ["replace_file"]


def replace_file(target: Path, content: bytes, before_rename: Callable[[int], None] | None = None) -> None:
    """Write the content to a new file beside the target, with mode 0600, and rename that file to the target.

    `before_rename` is called with the descriptor of the new file. Whatever it raises is raised here. After that, and
    after an `OSError` of the writing, the target is as it was.
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
    with suppress(OSError):  # it is written; some folders cannot be opened
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
