"""Where sign-ins are kept: the system's keyring, or a file of mode 0600 where there is none. One lock per sign-in.

A refresh token that is used twice is taken for stolen, and the issuer ends the whole sign-in. So the processes of a
user take turns: each holds the lock while it renews a token, and reads again what is kept first.
"""

import asyncio
import hashlib
import logging
import os
import stat
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import anyio.to_thread

from a2c_smcp.computer.sign_in.kept_sign_in import KeptSignIn
from a2c_smcp.oidc.sign_in_errors import IssuerSilentError
from a2c_smcp.utils.file_locks import try_file_lock
from a2c_smcp.utils.replacing import replace_file
from a2c_smcp.utils.state_folder import make_private_folder
from a2c_smcp.utils.system import IS_UNIX

__all__ = ["MemoryStore", "SignInStore", "TokenStore", "key_of"]

logger = logging.getLogger(__name__)

#: The name under which the system's keyring shows our entries.
_SERVICE: Final = "a2c-office sign-in"
#: The file of an entry that is in the keyring. Without this file the keyring, which may ask the person, is not asked.
_IN_KEYRING: Final = b"in the keyring\n"
_MOST_BYTES: Final = 1024 * 1024
#: How many seconds to wait for the keyring, which may ask the person, and for another process.
_KEYRING_SECONDS: Final = 60.0
_LOCK_SECONDS: Final = 45.0


def key_of(server: str, url: str, client_id: str | None) -> str:
    """The key of a sign-in. Two servers with one URL may be two accounts, so the server's name is part of it."""
    return hashlib.sha256("\0".join((server, url, client_id or "")).encode("utf-8", "surrogatepass")).hexdigest()[:40]


class SignInStore(Protocol):
    """What a Computer needs of a store."""

    async def load(self, key: str) -> KeptSignIn | None: ...

    async def save(self, key: str, kept: KeptSignIn) -> None: ...

    async def delete(self, key: str) -> bool: ...

    def locked(self, key: str) -> Any:
        """An async context: no other process renews this sign-in meanwhile."""


class MemoryStore:
    """Sign-ins that end with the program."""

    def __init__(self) -> None:
        self._kept: dict[str, KeptSignIn] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def load(self, key: str) -> KeptSignIn | None:
        return self._kept.get(key)

    async def save(self, key: str, kept: KeptSignIn) -> None:
        self._kept[key] = kept

    async def delete(self, key: str) -> bool:
        return self._kept.pop(key, None) is not None

    def locked(self, key: str) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())


class TokenStore:
    """Sign-ins in the keyring, or in files of this folder. `on_notice` is told once that they are in files."""

    def __init__(self, folder: Path, on_notice: Callable[[str], None] = logger.warning) -> None:
        self._folder = folder
        self._on_notice = on_notice
        self._has_keyring = True
        self._stuck: asyncio.Future[Any] | None = None
        """A question to the keyring that took too long. While it has no answer, the keyring is not asked again."""
        self._unsaved: dict[str, KeptSignIn] = {}
        """What could not be written: the files have older refresh tokens, which must not be used again."""
        self._has_told = False

    async def load(self, key: str) -> KeptSignIn | None:
        """What is kept, or `None`. An entry that cannot be read counts as none."""
        if (unsaved := self._unsaved.get(key)) is not None:
            return unsaved
        content = await anyio.to_thread.run_sync(self._read, key)
        if content == _IN_KEYRING:
            content = await self._in_keyring("get_password", key)
        try:
            return None if content is None else KeptSignIn.read(content)
        except ValueError:
            logger.warning("a kept sign-in cannot be read, and is ignored")
            return None

    async def save(self, key: str, kept: KeptSignIn) -> None:
        """Keep it. If the disk is full, the sign-in lasts as long as the program, and a warning says so."""
        in_keyring = await self._in_keyring("set_password", key, kept.written().decode()) is not None
        try:
            await anyio.to_thread.run_sync(self._write, key, _IN_KEYRING if in_keyring else kept.written())
        except OSError as error:
            logger.warning("a sign-in is not kept for the next run: %s cannot be written: %s", self._folder, error)
            self._unsaved[key] = kept
            return
        self._unsaved.pop(key, None)
        if not in_keyring and not self._has_told:
            self._has_told = True
            why = "the keyring does not take it" if self._has_keyring else "this system has no keyring"
            self._on_notice(f"{why}: sign-ins are kept in files in {self._folder}, which only you can read")

    async def delete(self, key: str) -> bool:
        """Forget it. Returns whether there was something to forget."""
        found = await anyio.to_thread.run_sync(self._read, key)
        is_unsaved = self._unsaved.pop(key, None) is not None
        if found is not None:
            # Also if it is in the file: an older entry may be in the keyring.
            done = await self._in_keyring("delete_password", key)
            if done is None and found == _IN_KEYRING:
                logger.warning("the keyring does not delete a sign-in: look for %r in it", _SERVICE)
        await anyio.to_thread.run_sync(self._unlink, key)
        return found is not None or is_unsaved

    @asynccontextmanager
    async def locked(self, key: str) -> AsyncIterator[None]:
        """Raises `IssuerSilentError` if another process holds the lock for too long."""
        lock = await anyio.to_thread.run_sync(self._open_lock, key)
        try:
            until = time.monotonic() + _LOCK_SECONDS
            while lock is not None and not try_file_lock(lock):
                if time.monotonic() > until:
                    raise IssuerSilentError("another process of yours has been signing in for too long")
                await asyncio.sleep(0.05)
            yield
        finally:
            if lock is not None:
                os.close(lock)

    # --- the keyring

    async def _in_keyring(self, method: str, key: str, *value: str) -> bytes | None:
        """The answer of the keyring; `b""` for a change that was made. `None`: there is no keyring, it fails, or it has
        no such entry.
        """
        if not self._has_keyring or (self._stuck is not None and not self._stuck.done()):
            return None
        asking = asyncio.ensure_future(
            anyio.to_thread.run_sync(_ask_keyring, method, key, *value, abandon_on_cancel=True)
        )
        await asyncio.wait({asking}, timeout=_KEYRING_SECONDS)
        if not asking.done():
            self._stuck = asking
            return None
        self._has_keyring, answer = asking.result()
        return answer

    # --- files

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _read(self, key: str) -> bytes | None:
        with (
            suppress(OSError),
            open(os.open(self._file(key), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file,
        ):
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                return None
            if IS_UNIX and (about.st_uid != os.geteuid() or about.st_mode & 0o077):
                logger.warning("%s is not used: others can read or change it", self._file(key))
                return None
            return file.read(_MOST_BYTES)
        return None

    def _write(self, key: str, content: bytes) -> None:
        self._make_folder()
        replace_file(self._file(key), content)

    def _unlink(self, key: str) -> None:
        with suppress(OSError):
            self._file(key).unlink(missing_ok=True)

    def _make_folder(self) -> None:
        make_private_folder(self._folder)
        if IS_UNIX and self._folder.stat().st_mode & 0o077:
            self._folder.chmod(0o700)

    def _open_lock(self, key: str) -> int | None:
        try:
            self._make_folder()
            return os.open(self._folder / f"{key}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return None  # without a folder nothing is kept either


def _ask_keyring(method: str, key: str, *value: str) -> tuple[bool, bytes | None]:
    """Whether there is a keyring, and its answer."""
    try:
        import keyring  # an extra, and 0.2 s
        import keyring.errors
    except ImportError:
        return False, None
    try:
        said = getattr(keyring, method)(_SERVICE, key, *value)
    except keyring.errors.NoKeyringError:
        return False, None
    except Exception as error:
        # A boundary: backends raise errors of the services behind them. One entry may be too long for a keyring that
        # takes the others.
        if method != "delete_password":
            logger.warning("the keyring fails (%s)", type(error).__name__)
        return True, None
    if method == "get_password":
        return True, None if said is None else said.encode()
    return True, b""
