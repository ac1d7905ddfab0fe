"""What a console remembers between runs, in a file: an id of the computer, its port, and the browsers that are let in.

One process at a time has the file. What is wrong with it is said, and never keeps a computer from starting.
"""

import base64
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from a2c_smcp.computer.console.device_names import MAX_DEVICE_NAME
from a2c_smcp.computer.console.device_proofs import is_public_key
from a2c_smcp.computer.console.devices import MAX_DEVICES, Device
from a2c_smcp.utils.replacing import replace_file
from a2c_smcp.utils.system import IS_UNIX

__all__ = ["ConsoleMemory", "NoMemoryError", "Remembered"]

_VERSION: Final = 1
_MAX_BYTES: Final = 256 * 1024


class NoMemoryError(RuntimeError):
    """A memory that cannot be used; says why."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is in the file. `port` is the last one on `host`; 0 if there was none."""

    computer: str
    host: str = ""
    port: int = 0
    devices: tuple[Device, ...] = ()


class ConsoleMemory:
    """The file of one computer. `open` it, which may raise `NoMemoryError`, give it to a `Console`, and `close` it."""

    def __init__(self, file: Path, lock: int, now: float) -> None:
        self._file = file
        self._lock = lock
        self.notice: str | None = None
        """What to tell the person about the file; `None` if there is nothing."""
        self.found = self._read(now)
        """What the file holds."""

    @classmethod
    def open(cls, folder: Path, computer: str, now: float) -> Self:
        """The memory of the computer with this name, or `NoMemoryError`. A file that is broken is put aside."""
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
        """Write it to the file, which only its owner may read. Raises `OSError`, and then the file is as it was."""
        replace_file(self._file, json.dumps(_as_json(what), indent=1).encode())
        self.found = what

    def close(self) -> None:
        """Let another process have the file."""
        os.close(self._lock)

    def _read(self, now: float) -> Remembered:
        try:
            content = _content(self._file)
        except FileNotFoundError:
            return Remembered(secrets.token_hex(16))
        try:
            _check(content is not None)
            return _from_json(content or b"", now)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            aside = self._file.with_suffix(".broken")
            os.replace(self._file, aside)
            self.notice = (
                f"what the console remembered could not be read, and is now {aside}: browsers have to be let in again"
            )
            return Remembered(secrets.token_hex(16))


def _make_private(folder: Path) -> None:
    for each in (folder.parent, folder):  # `mode` is not for the parents that a call makes
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    if IS_UNIX and folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def _content(file: Path) -> bytes | None:
    """What is in a file; `None` if others may have put it there, while the folder was not private yet."""
    with open(os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:  # a pipe would wait for ever
        about = os.fstat(opened.fileno())
        if IS_UNIX and (about.st_uid != os.geteuid() or about.st_mode & 0o022):
            return None
        return opened.read(_MAX_BYTES + 1) if stat.S_ISREG(about.st_mode) else None


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


def _as_json(what: Remembered) -> dict[str, Any]:
    devices = [
        {
            "id": device.id,
            "name": device.name,
            "public_key": base64.b64encode(device.public_key).decode(),
            "granted": device.granted,
            "used": device.used,
        }
        for device in what.devices
    ]
    return {
        "version": _VERSION,
        "computer": what.computer,
        "host": what.host,
        "port": what.port,
        "devices": devices,
    }


def _from_json(content: bytes, now: float) -> Remembered:
    """What a file says, or one of several errors for a file that is not ours."""
    if len(content) > _MAX_BYTES:
        raise ValueError("too long")
    found = json.loads(content)
    computer, host, port = found["computer"], found["host"], found["port"]
    _check(found["version"] == _VERSION)
    _check(isinstance(computer, str) and len(bytes.fromhex(computer)) == 16)
    _check(isinstance(host, str) and isinstance(port, int) and 0 <= port < 65536)
    _check(isinstance(found["devices"], list) and len(found["devices"]) <= MAX_DEVICES)
    return Remembered(computer, host, port, tuple(_devices(found["devices"], now)))


def _devices(items: Iterable[dict[str, Any]], now: float) -> Iterable[Device]:
    for item in items:
        name, key = item["name"], base64.b64decode(item["public_key"], validate=True)
        _check(isinstance(name, str) and 0 < len(name) <= MAX_DEVICE_NAME and name.isprintable())
        _check(len(bytes.fromhex(item["id"])) == 16 and is_public_key(key))
        # A clock that was wrong must not make a key that never expires.
        granted, used = (min(float(item[field]), now) for field in ("granted", "used"))
        _check(granted - granted == 0 == used - used)
        yield Device(item["id"], name, key, granted, used)


def _check(fits: bool) -> None:
    if not fits:
        raise ValueError("not a console's memory")
