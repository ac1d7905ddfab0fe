"""Where sign-ins are kept: for each server one file of mode 0600 and one lock, in a folder of this user.

A refresh token that is used twice is taken for stolen, and the issuer ends the whole sign-in. So the processes of a
user take turns: each of them takes the lock, reads the file again, and only then asks for a new token.
"""

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from a2c_smcp.errors import BadRequestError, ConnectionLostError
from a2c_smcp.link.server_urls import normal_url
from a2c_smcp.login.kept_login import KeptLogin
from a2c_smcp.utils.file_locks import try_file_lock
from a2c_smcp.utils.replacing import replace_file
from a2c_smcp.utils.state_folder import make_private_folder, state_folder
from a2c_smcp.utils.system import IS_UNIX

__all__ = ["LoginFile", "login_file"]

logger = logging.getLogger(__name__)

_MOST_BYTES: Final = 256 * 1024
#: Seconds to wait for another process that renews the token, and between two looks whether it has ended.
_LOCK_SECONDS: Final = 25.0
_LOCK_PAUSE: Final = 0.02


class LoginFile:
    """The sign-in of this user at one server, if there is one."""

    def __init__(self, folder: Path, url: str) -> None:
        self.url = normal_url(url)
        name = hashlib.sha256(self.url.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self.path, self._lock = folder / f"{name}.json", folder / f"{name}.lock"

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def load(self) -> KeptLogin | None:
        """What is kept; `None` if there is no file, or none that can be used. For the latter a warning says why."""
        try:
            with self.path.open("rb") as file:
                about = os.fstat(file.fileno())
                if IS_UNIX and (about.st_uid != os.geteuid() or about.st_mode & 0o077):
                    logger.warning("%s is not used: others can read or change it; sign in again", self.path)
                    return None
                kept = KeptLogin.read(file.read(_MOST_BYTES))
        except OSError:
            return None
        except ValueError:
            logger.warning("%s cannot be read; sign in again", self.path)
            return None
        # A file that was copied to another name must not send a token to another server.
        return kept if kept.url == self.url else None

    def save(self, kept: KeptLogin) -> None:
        """Raises `OSError`."""
        self._make_folder()
        replace_file(self.path, kept.written())

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Hold the lock, so that no other process of this user renews the token meanwhile. Raises `ConnectionLostError`
        if another process has held it for too long.
        """
        with self._opened_lock() as lock:
            until = time.monotonic() + _LOCK_SECONDS
            while not try_file_lock(lock):
                if time.monotonic() > until:
                    raise ConnectionLostError("another process of yours has been renewing the token for too long")
                await asyncio.sleep(_LOCK_PAUSE)
            yield

    @contextmanager
    def _opened_lock(self) -> Iterator[int]:
        self._make_folder()
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            yield lock
        finally:
            os.close(lock)

    def _make_folder(self) -> None:
        folder = self.path.parent
        make_private_folder(folder)
        if IS_UNIX and folder.stat().st_mode & 0o077:
            folder.chmod(0o700)


def login_file(url: str) -> LoginFile | None:
    """The place of the sign-in at a server; `None` if this user has no home."""
    try:
        return LoginFile(state_folder() / "logins", url)
    except BadRequestError:
        return None
