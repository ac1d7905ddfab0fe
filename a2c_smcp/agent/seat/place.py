"""Where the processes of one user find the seat of an office: a socket and a lock in a directory of that user alone.

The holder has the lock for as long as it lives, however it ends. The owner of the lock may replace the socket.
"""

import hashlib
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.link.server_urls import normal_url
from a2c_smcp.login.fresh_tokens import LoginToken
from a2c_smcp.utils.local_peers import local_peer
from a2c_smcp.utils.run_folder import NoRunFolderError, run_folder
from a2c_smcp.utils.system import SHARED_SEAT

__all__ = ["NotSharedError", "SeatPlace", "is_held", "peer_pid", "place_of", "try_lock"]

#: Part of the socket's name: processes with another version of the frames do not meet.
_VERSION: Final = 2


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
    key = f"signed in at {link.api_key.url}" if isinstance(link.api_key, LoginToken) else link.api_key
    if callable(key):
        raise NotSharedError("its key comes from a function of this process")
    # The key is hashed together with the other values, so that nobody can find it from the file's name.
    wanted = [_VERSION, normal_url(link.url), link.socketio_path, office, link.api_key_header, key]
    wanted.append(sorted(link.headers.items()))
    digest = hashlib.sha256(json.dumps(wanted).encode("utf-8", "surrogatepass")).hexdigest()[:24]
    try:
        folder = run_folder(len(digest) + len(".sock"))
    except NoRunFolderError as error:
        raise NotSharedError(str(error)) from None
    return SeatPlace(folder / f"{digest}.sock", folder / f"{digest}.lock", folder / f"{digest}.log")


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
    if (peer := local_peer(connected)) is None:
        return None  # the directory keeps other users out
    if peer.user != os.geteuid():
        raise PermissionError(f"user {peer.user} is at the other end of the socket")
    return peer.process
