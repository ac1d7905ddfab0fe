"""Where the processes of one user find the seat of an office: a socket and a lock in a directory of that user alone.

The holder has the lock for as long as it lives, however it ends. The owner of the lock may replace the socket.
"""

import hashlib
import json
import os
import socket
import stat
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.utils.system import SHARED_SEAT

__all__ = ["NotSharedError", "SeatPlace", "is_held", "normal_url", "peer_pid", "place_of", "try_lock"]

#: Part of the socket's name: processes with another version of the frames do not meet.
_VERSION: Final = 2
#: The longest address of a socket: 108 bytes on Linux, 104 elsewhere, with the zero at its end.
_LONGEST: Final = 103
_TEMPORARY: Final = Path("/tmp")
_DARWIN_USER_TEMP_DIR: Final = 65537
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class NotSharedError(Exception):
    """Processes cannot share a seat here. The text says why."""


@dataclass(frozen=True, slots=True)
class SeatPlace:
    """The files of one seat. Another URL, office or key has other files."""

    socket: Path
    lock: Path
    log: Path
    """What the holder writes to stderr."""


def place_of(link: LinkOptions, office: str) -> SeatPlace:
    """The place of this office's seat, in a directory that only this user may enter. Raises `NotSharedError` if there
    is none.
    """
    if not SHARED_SEAT.works:
        raise NotSharedError(f"it needs {SHARED_SEAT.needs}; {SHARED_SEAT.instead}")
    # The key is hashed together with the other values, so that nobody can find it from the file's name.
    wanted = [_VERSION, normal_url(link.url), link.socketio_path, office, link.api_key_header, link.api_key]
    wanted.append(sorted(link.headers.items()))
    digest = hashlib.sha256(json.dumps(wanted).encode("utf-8", "surrogatepass")).hexdigest()[:24]
    folder = _folder(len(digest) + len("/.sock"))
    return SeatPlace(folder / f"{digest}.sock", folder / f"{digest}.lock", folder / f"{digest}.log")


def normal_url(url: str) -> str:
    """The URL in one spelling: `http://host`, `HTTP://Host/` and `http://host:80` are the same."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    user, at, address = host.rpartition("@")
    scheme = scheme.lower()
    address = address.lower().removesuffix(_DEFAULT_PORTS.get(scheme, "\0"))
    return f"{scheme}{separator}{user}{at}{address}{slash}{path}".rstrip("/")


def _folder(name_length: int) -> Path:
    """A directory of this user's, made if it is missing. If a stranger could have made it first, its owner and mode are
    checked.
    """
    user = os.geteuid()
    # Not TMPDIR: hosts pass few variables on to their processes, so it would lead to another place than in a terminal.
    runtimes = [os.environ.get("XDG_RUNTIME_DIR"), f"/run/user/{user}"]
    if sys.platform == "darwin":
        runtimes.append(os.confstr(_DARWIN_USER_TEMP_DIR))
    # The XDG specification says to ignore a relative path. For the holder it would be another directory.
    folders = [
        Path(runtime) / "a2c" for runtime in runtimes if runtime and os.path.isabs(runtime) and _is_ours(Path(runtime))
    ]
    folders.append(_TEMPORARY / f"a2c-{user}")
    folder = next(folder for folder in folders if len(os.fsencode(folder)) + name_length <= _LONGEST)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise NotSharedError(f"{folder} cannot be made: {error.strerror}") from None
    if not _is_ours(folder):
        raise NotSharedError(f"{folder} is not a directory that belongs to this user alone")
    return folder


def _is_ours(folder: Path) -> bool:
    """Whether this is a directory, not a link to one, that nobody else may enter."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def try_lock(place: SeatPlace) -> int | None:
    """The lock as a file descriptor, held until its last copy is closed; `None` while another process has it."""
    import fcntl  # some systems lack it, and then there is no place

    lock = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # If somebody has removed the file meanwhile, a lock on it would keep nobody out.
        if os.fstat(lock).st_ino != os.stat(place.lock).st_ino:
            raise BlockingIOError
    except OSError:
        os.close(lock)
        return None
    return lock


def is_held(place: SeatPlace) -> bool:
    """Whether a holder has the lock, or is about to have it. Changes nothing."""
    import fcntl

    try:
        lock = os.open(place.lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(lock)


def peer_pid(connected: socket.socket) -> int | None:
    """The process at the other end, if the system tells. Raises `PermissionError` for a process of another user."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None  # the directory keeps other users out
    packed = struct.Struct("3i")
    pid, user, _ = packed.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, packed.size))
    if user != os.geteuid():
        raise PermissionError(f"user {user} is at the other end of the socket")
    return int(pid)
