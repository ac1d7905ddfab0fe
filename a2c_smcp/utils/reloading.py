"""Files that a program reads again while it runs: on SIGHUP, when an operator asks, and when they have changed.

A file that is broken, missing or half written changes nothing: what was read before stays, and the log says so.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, TypeAlias

from a2c_smcp.utils.text import on_one_line

__all__ = ["FileReloads", "ReloadPart"]

logger = logging.getLogger(__name__)

#: Seconds between two looks at the files. A file is read when it was the same at two looks, after a change.
_LOOK: Final = 0.25

_Stamps: TypeAlias = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class ReloadPart:
    """Some files that belong together, and what reads them again."""

    name: str
    """What the files have in them, for people."""
    files: tuple[Path, ...]
    read: Callable[[], Awaitable[str | None]]
    """Reads the files and applies them. Returns what has changed, in words. Raises `ValueError` or `OSError` if they
    cannot be used; nothing may have changed then."""


class FileReloads:
    """Watches the files inside `async with`."""

    def __init__(self, parts: Sequence[ReloadPart]) -> None:
        self._parts = parts
        self._read = {part.name: _stamps(part.files) for part in parts}
        """How the files of each part looked when they were read."""
        self._seen = dict(self._read)
        self._lock = asyncio.Lock()
        self._asked = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._watching is not None
        self._watching.cancel()
        with suppress(asyncio.CancelledError):
            await self._watching

    def ask(self) -> None:
        """Read everything again soon. A signal handler may call this."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._asked.set)

    async def reload(self) -> list[str]:
        """Read everything again. Returns what has changed, and what cannot be used, in sentences."""
        said = [await self._reload(part) for part in self._parts]
        return [sentence for sentence in said if sentence is not None]

    async def _reload(self, part: ReloadPart) -> str | None:
        async with self._lock:
            self._read[part.name] = self._seen[part.name] = await asyncio.to_thread(_stamps, part.files)
            try:
                await asyncio.to_thread(_check_kind, part.files)
                changed = await part.read()
            except (ValueError, OSError) as error:
                sentence = f"the {part.name} stay as they were: {on_one_line(error)}"
                logger.error("%s", sentence)
                return sentence
            if changed is not None:
                logger.info("read again: %s", changed)
            return changed

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await self._asked.wait()
            try:
                if self._asked.is_set():
                    self._asked.clear()
                    await self.reload()
                for part in self._parts:
                    await self._look_at(part)
            except Exception:
                # A fault with one file must not end the watch over the others.
                logger.exception("failed to look after the files of this program")

    async def _look_at(self, part: ReloadPart) -> None:
        now = await asyncio.to_thread(_stamps, part.files)
        settled, self._seen[part.name] = now == self._seen[part.name], now
        if settled and now != self._read[part.name]:
            await self._reload(part)


def _check_kind(files: Sequence[Path]) -> None:
    """Raise `ValueError` for a FIFO or a device: its reader might wait for ever, and nothing would be read again."""
    for file in files:
        if file.exists() and not file.is_file():
            raise ValueError(f"{file} is not a regular file")


def _stamps(files: Sequence[Path]) -> _Stamps:
    """What differs when a file was written or replaced. Links are followed: Kubernetes replaces the folder behind
    one.
    """
    return tuple(map(_stamp, files))


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
