"""Reads something again when it has changed, one reading at a time. Knows nothing of what is read."""

import asyncio
from collections.abc import Awaitable, Callable

__all__ = ["Refresher"]


class Refresher:
    """If something changes during a reading, even many times, it is read once more afterwards.

    Before that comes a pause as long as the reading was, at most half a second, so that constant changes do not take
    all of this computer's time. A `Refresher` keeps `read` only while it runs, so that it keeps nothing else alive.
    """

    def __init__(self) -> None:
        self.is_stale = False
        """Whether something has changed since the last reading began."""
        self.running: asyncio.Task[None] | None = None
        self.since = 0.0
        """When it began to run, by the event loop's clock."""

    def soon(self, read: Callable[[], Awaitable[None]], name: str) -> asyncio.Task[None]:
        """Call `read` in a task called `name`. The task ends when nothing is stale any more."""
        self.is_stale = True
        if self.running is None:
            self.since = asyncio.get_running_loop().time()
            self.running = asyncio.create_task(self._run(read), name=name)
        return self.running

    async def _run(self, read: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self.is_stale:
                self.is_stale = False
                began = loop.time()
                await read()
                if self.is_stale:
                    await asyncio.sleep(min(loop.time() - began, 0.5))
        finally:
            self.running = None
