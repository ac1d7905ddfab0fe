"""What a console remembers between runs, in a file: an id of the computer, its port, and the remembered browsers.

One process at a time has the file. A problem with it is reported, and never keeps a computer from starting.
"""

import hashlib
import os
import secrets
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, Self

import msgspec

from a2c_smcp.computer.console.device_proofs import is_public_key
from a2c_smcp.computer.console.devices import Device
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.utils.replacing import replace_file
from a2c_smcp.utils.state_folder import make_private_folder
from a2c_smcp.utils.system import IS_UNIX

__all__ = ["ConsoleMemory", "NoMemoryError", "Remembered"]

_MOST_BYTES: Final = 256 * 1024


class NoMemoryError(RuntimeError):
    """The file of a console's memory cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """The content of the file. `port` is the last port on `host`, or 0."""

    computer: str
    host: str = ""
    port: int = 0
    devices: tuple[Device, ...] = ()
    version: Literal[1] = 1


class ConsoleMemory:
    """The file of one computer. `open` it, give it to a `Console`, and `close` it at the end."""

    def __init__(self, file: Path, lock: int, now: float) -> None:
        self._file = file
        self._lock = lock
        self.notice: str | None = None
        """What to tell the person about the file, if anything."""
        self.found = self._read(now)
        """What the file holds."""

    @classmethod
    def open(cls, folder: Path, computer: str, now: float) -> Self:
        """The memory of the computer with this name. A broken file is put aside. Raises `NoMemoryError`."""
        file = folder / f"{hashlib.sha256(computer.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"
        try:
            _make_private(folder)
            lock = _locked(file.with_suffix(".lock"))
        except OSError as error:
            raise NoMemoryError(f"the console remembers nothing: {folder} cannot be used: {error.strerror}") from None
        try:
            memory = cls(file, lock, now)
            memory.keep(memory.found)
        except OSError as error:
            os.close(lock)
            raise NoMemoryError(f"the console remembers nothing: {file} cannot be used: {error.strerror}") from None
        return memory

    def keep(self, what: Remembered) -> None:
        """Write the file, which only its owner may read. After an `OSError` the file is as it was."""
        replace_file(self._file, msgspec.json.format(msgspec.json.encode(what), indent=1))
        self.found = what

    def close(self) -> None:
        """Release the file for another process."""
        os.close(self._lock)

    def _read(self, now: float) -> Remembered:
        try:
            content = _content(self._file)
        except FileNotFoundError:
            return Remembered(secrets.token_hex(16))
        try:
            _check(content is not None)
            return _decoded(content or b"", now)
        except (ValueError, RecursionError):
            aside = self._file.with_suffix(".broken")
            os.replace(self._file, aside)
            self.notice = (
                f"the console's memory could not be read, and was moved to {aside}: browsers have to be let in again"
            )
            return Remembered(secrets.token_hex(16))


def _make_private(folder: Path) -> None:
    make_private_folder(folder)
    if IS_UNIX and folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def _content(file: Path) -> bytes | None:
    """The content of a file; `None` if another user may have written it before the folder was private."""
    with open(os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:  # a pipe would wait for ever
        about = os.fstat(opened.fileno())
        if IS_UNIX and (about.st_uid != os.geteuid() or about.st_mode & 0o022):
            return None
        return opened.read(_MOST_BYTES + 1) if stat.S_ISREG(about.st_mode) else None


def _locked(file: Path) -> int:
    lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    if IS_UNIX:
        import fcntl

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise NoMemoryError(
                "the console remembers nothing: another process has the console of a computer with this name"
            ) from None
    return lock


def _decoded(content: bytes, now: float) -> Remembered:
    """What a file holds. Raises `ValueError` for a file that is not ours."""
    _check(len(content) <= _MOST_BYTES)
    found = msgspec.json.decode(content, type=Remembered)
    _check(len(bytes.fromhex(found.computer)) == 16 and 0 <= found.port < 65536)
    _check(len(found.devices) <= CONSOLE_LIMITS.devices)
    for device in found.devices:
        name = device.name
        _check(0 < len(name) <= CONSOLE_LIMITS.device_name_characters and name.isprintable())
        _check(len(bytes.fromhex(device.id)) == 16 and is_public_key(device.public_key))
    # A clock that was wrong must not make a key that never expires.
    devices = [replace(each, granted=min(each.granted, now), used=min(each.used, now)) for each in found.devices]
    return replace(found, devices=tuple(devices))


def _check(fits: bool) -> None:
    if not fits:
        raise ValueError("not a console's memory")
