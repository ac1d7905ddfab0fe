"""The progress of one call at a pace that others can follow: at most ten reports a second, the last one always."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

__all__ = ["PacedProgress"]

#: Nine of these make a second, and the last report, which does not wait, is the tenth.
_PAUSE: Final = 1 / 8.9


class PacedProgress:
    """Sends the reports of a call; of those that come faster than they may leave, the latest. `end` must be awaited
    before the result is sent.
    """

    def __init__(self, send: Callable[[float, float | None, str | None], Awaitable[None]]) -> None:
        self._send = send
        self._latest: tuple[float, float | None, str | None] | None = None
        self._task: asyncio.Task[None] | None = None

    def take(self, progress: float, total: float | None, message: str | None) -> None:
        self._latest = (progress, total, message)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Send the last report, if it still waits. Nothing is sent after this."""
        self.stop()
        if (last := self._latest) is not None:
            self._latest = None
            await self._send(*last)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while (report := self._latest) is not None:
            self._latest = None
            await self._send(*report)
            # Also after the last one for now: the next task must not send at once.
            await asyncio.sleep(_PAUSE)
