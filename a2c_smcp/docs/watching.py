"""Hears that files of a folder were saved, made or removed, and tells it when nothing more happens to them.

watchfiles' own `awatch` follows links to wherever they lead, and does not say when it has begun to watch. So its
backend, `RustNotify`, is used as its documentation shows, on the folders that were walked and on no others.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

__all__ = ["LONGEST_SECONDS", "FolderWatch", "watching"]

logger = logging.getLogger(__name__)

QUIET_SECONDS = 0.25
"""A file that was not written to for so long has settled."""
SAME_FILES_SECONDS = 2.0
"""Files that change all the time, such as a log, are not waited for longer than this."""
LONGEST_SECONDS = 30.0
_POLL_SECONDS = 5.0
_STEP_MS, _DEBOUNCE_MS, _TIMEOUT_MS = 20, 100, 1000


class FolderWatch:
    """Changes in some folders. Not in the folders below them."""

    def __init__(self) -> None:
        self._paths: asyncio.Queue[set[str]] = asyncio.Queue()
        self.works = True
        """False if the system has no more watches. Then the folder is looked at every few seconds."""

    def heard(self, paths: set[str]) -> None:
        self._paths.put_nowait(paths)

    async def settled(self) -> None:
        """Return when something has changed and the changes are over."""
        if not self.works:
            await asyncio.sleep(_POLL_SECONDS)
            return
        await self.quiet(await self._paths.get())

    async def quiet(self, seen: Collection[str] = ()) -> None:
        """Return when nothing changes any more, or only the same files do."""
        if not self.works:
            return
        seen = set(seen)
        clock = asyncio.get_running_loop().time
        started = grown = clock()
        while clock() - grown < SAME_FILES_SECONDS and clock() - started < LONGEST_SECONDS:
            try:
                async with asyncio.timeout(QUIET_SECONDS):
                    more = await self._paths.get()
            except TimeoutError:
                return
            if more - seen:
                grown = clock()
                seen |= more


@asynccontextmanager
async def watching(folders: Collection[str]) -> AsyncIterator[FolderWatch]:
    """Watch these folders. Every change after this block was entered is heard. Without folders, nothing is watched."""
    watch = FolderWatch()
    if not folders:
        watch.works = False
        yield watch
        return
    loop = asyncio.get_running_loop()
    stop = threading.Event()
    try:
        notify = await asyncio.to_thread(
            RustNotify, sorted(folders), False, False, 300, recursive=False, ignore_permission_denied=True
        )
    except (OSError, RuntimeError) as error:
        logger.warning("changes are looked for every %g s: %s", _POLL_SECONDS, error)
        watch.works = False
        yield watch
        return

    def follow() -> None:
        with notify:
            while not stop.is_set():
                try:
                    found = notify.watch(_DEBOUNCE_MS, _STEP_MS, _TIMEOUT_MS, stop)
                except WatchfilesRustInternalError:
                    # Something has changed, under a name that is no text.
                    found = {(0, "")}
                    stop.wait(0.1)
                if isinstance(found, set):
                    loop.call_soon_threadsafe(watch.heard, {path for _, path in found})
                elif found != "timeout":
                    return

    task = asyncio.create_task(asyncio.to_thread(follow))
    try:
        yield watch
    finally:
        stop.set()
        await asyncio.wait({task})
