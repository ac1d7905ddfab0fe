"""Which Unix features this system has, and which parts of the package do not work without them. Windows has few of
them.

It checks for the features, not for the name of a system: so a test can take a feature away.
"""

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["DOCUMENTS", "HAS_GUARDIANS", "IS_UNIX", "OPEN_WINDOWS", "PROMPT", "SHARED_SEAT", "SystemPart", "lacking"]


def _has_locks() -> bool:
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return False
    return True


def _has_terminals() -> bool:
    try:
        import termios  # noqa: F401
    except ImportError:
        return False
    return True


#: Whether users, file modes, locks, process groups, and pipes that an event loop reads are as on Unix.
IS_UNIX: Final = _has_locks()


def _has_guardians() -> bool:
    """Also with Linux, /proc may be missing, or show another namespace than that of our own number."""
    try:
        sees_itself = os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False
    return sees_itself and hasattr(os, "pidfd_open") and hasattr(os, "memfd_create") and hasattr(socket, "send_fds")


#: Whether a process can be the parent of all that its descendants leave, and see them: Linux.
HAS_GUARDIANS: Final = IS_UNIX and _has_guardians()


@dataclass(frozen=True, slots=True)
class SystemPart:
    """A part of the package that does not work on every system."""

    name: str
    works: bool
    needs: str
    instead: str
    """What to do instead."""

    @property
    def problem(self) -> str:
        """What to tell a person on a system where it does not work."""
        return f"not on this system: {self.name}, which needs {self.needs}; {self.instead}"


PROMPT: Final = SystemPart(
    "the prompt of a computer",
    IS_UNIX and _has_terminals(),
    "a Unix terminal",
    "run it with --headless, and --console for a page in the browser",
)
DOCUMENTS: Final = SystemPart(
    "folders as documents (a2c docs)",
    os.open in os.supports_dir_fd and all(hasattr(os, flag) for flag in ("O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK")),
    "folders that can be opened without following links",
    "use another MCP server for them",
)
OPEN_WINDOWS: Final = SystemPart(
    "what is open as windows (a2c windows)",
    IS_UNIX and _has_terminals(),
    "Unix terminals",
    "use another MCP server for them",
)
SHARED_SEAT: Final = SystemPart(
    "a seat that processes share (a2c mcp)",
    IS_UNIX and hasattr(os, "fork") and hasattr(socket, "AF_UNIX"),
    "local sockets and locks",
    "start one a2c mcp --http for all hosts",
)


def lacking() -> Iterator[SystemPart]:
    """The parts that do not work here."""
    return (part for part in (PROMPT, DOCUMENTS, OPEN_WINDOWS, SHARED_SEAT) if not part.works)
