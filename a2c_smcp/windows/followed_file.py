"""The end of a file that grows, such as a log. A file that is replaced or cut is followed by its name."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["FileTail"]

_LINES: Final = 200
#: How much of the end of a file is looked at. A line that is longer is cut.
_BYTES: Final = 256 * 1024


@dataclass(slots=True)
class FileTail:
    """The last 200 lines of a file. `look` says whether they have changed."""

    path: Path
    lines: list[str] = field(default_factory=list)
    problem: str | None = "not read yet"
    """Why there is nothing to show; `None` if there is."""
    modified: float = 0.0
    """When the file was last written."""
    _seen: tuple[int, int, int] | None = None

    def look(self) -> bool:
        """Read the file if it has changed. Returns whether something is different. A missing file may come later."""
        try:
            found = os.stat(self.path)
            if not stat.S_ISREG(found.st_mode):
                raise OSError("not a file that can be followed")
            seen = (found.st_ino, found.st_size, found.st_mtime_ns)
            if seen == self._seen:
                return False
            lines = _last_lines(self.path)
            problem = None
        except OSError as error:
            seen, lines, problem = None, [], error.strerror or str(error)
        changed = (lines, problem) != (self.lines, self.problem)
        self._seen, self.lines, self.problem = seen, lines, problem
        if seen is not None:
            self.modified = seen[2] / 1e9
        return changed


def _last_lines(path: Path) -> list[str]:
    # Without O_NONBLOCK a pipe that has just taken the file's place would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _BYTES))
        text = file.read(_BYTES).decode(errors="replace")
    lines = text.split("\n")
    if size > _BYTES:
        lines = lines[1:] or [text]
    if lines and not lines[-1]:
        lines.pop()
    return lines[-_LINES:]
