"""Folders that are followed while their files change."""

from collections.abc import Callable, Collection, Coroutine
from pathlib import Path
from typing import Any

import anyio
from watchfiles import awatch

__all__ = ["follow_folders"]


async def follow_folders(folders: Collection[Path], changed: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Call `changed` after every change in these folders, until cancelled. Each call is a task of its own. It is also
    called once some seconds after the start: nobody knows when watching begins, and what changed before that.

    Folders are followed and not files, because editors and container hosts replace a file, or the link to it. Raises
    a group with `OSError` or `RuntimeError` if the system cannot follow them: it may have too many watches.
    """
    # The watching thread does not notice a cancellation by itself: it would wait for seconds.
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_set_when_cancelled, stop)
        is_first = True
        async for changes in awatch(
            *folders, watch_filter=None, recursive=False, debounce=200, stop_event=stop, yield_on_timeout=True
        ):  # milliseconds
            if changes or is_first:
                tasks.start_soon(changed)
            is_first = False


async def _set_when_cancelled(event: anyio.Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        event.set()
