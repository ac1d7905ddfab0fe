"""The progress of one call on its way to the agent: at most ten reports a second, the last one always."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from a2c_smcp.smcp import ToolCallReq, ToolProgress

__all__ = ["ProgressSender"]

#: Nine of these make a second, and the last report, which does not wait, is the tenth.
_PAUSE: Final = 1 / 8.9


class ProgressSender:
    """Sends the reports of a call; of those that come faster than they may leave, the latest. `end` must be awaited
    before the result is sent.
    """

    def __init__(self, request: ToolCallReq, send: Callable[[ToolProgress], Awaitable[None]]) -> None:
        self._request = request
        self._send = send
        self._latest: ToolProgress | None = None
        self._task: asyncio.Task[None] | None = None

    def take(self, progress: float, total: float | None, message: str | None) -> None:
        report: ToolProgress = {
            "computer": self._request["computer"],
            "agent": self._request["agent"],
            "req_id": self._request["req_id"],
            "progress": progress,
        }
        if total is not None:
            report["total"] = total
        if message is not None:
            report["message"] = message
        self._latest = report
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Send the last report, if it still waits. Nothing is sent after this."""
        self.stop()
        if (last := self._latest) is not None:
            self._latest = None
            await self._send(last)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while (report := self._latest) is not None:
            self._latest = None
            await self._send(report)
            # Also after the last one for now: the next task must not send at once.
            await asyncio.sleep(_PAUSE)
