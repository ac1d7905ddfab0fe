"""The progress of calls, for the callbacks of their callers. A slow or failing callback harms no call."""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread

from a2c_smcp.agent.types import ProgressCallback
from a2c_smcp.smcp import ToolProgress
from a2c_smcp.utils.latest import LatestOnly

__all__ = ["ProgressListeners"]

logger = logging.getLogger(__name__)

#: How many seconds a call that has its result waits until its callback has taken the last report.
_LAST_SECONDS: Final = 1.0


class ProgressListeners:
    """The callbacks for the progress of calls, by computer and `req_id`."""

    def __init__(self) -> None:
        self._listeners: dict[tuple[str, str], list[_ProgressListener]] = {}

    def take(self, report: ToolProgress) -> None:
        """Hand a report to the callers of its call. Without a caller it is dropped."""
        for listener in self._listeners.get((report["computer"], report["req_id"]), ()):
            listener.put(report)

    @asynccontextmanager
    async def listening(self, computer: str, req_id: str, callback: ProgressCallback) -> AsyncIterator[None]:
        """Call back for every report of one call inside the block. The last report is still delivered at its end."""
        listener, key = _ProgressListener(callback, req_id), (computer, req_id)
        self._listeners.setdefault(key, []).append(listener)
        try:
            try:
                yield
            finally:
                self._listeners[key].remove(listener)
                if not self._listeners[key]:
                    del self._listeners[key]
            await listener.end()
        finally:
            listener.stop()


class _ProgressListener:
    """Calls back in a task, one report at a time. If reports come faster, only the first three and the latest count."""

    def __init__(self, callback: ProgressCallback, req_id: str) -> None:
        self._callback = callback
        self._req_id = req_id
        self._progress = 0.0
        self._latest = LatestOnly(self._call_back)
        #: A limiter of its own: a callback that blocks must not take the threads of others.
        self._thread = anyio.CapacityLimiter(1)

    def put(self, report: ToolProgress) -> None:
        # A computer of another implementation may report less than before.
        self._progress = max(self._progress, report["progress"])
        self._latest.put(self._progress, report.get("total"), report.get("message"))

    async def end(self) -> None:
        """Wait a short time until the callback has taken the last report."""
        with anyio.move_on_after(_LAST_SECONDS):
            await self._latest.end()

    def stop(self) -> None:
        self._latest.stop()

    async def _call_back(self, *report: Any) -> None:
        try:
            await self._call(*report)
        except (Exception, asyncio.CancelledError):
            me = asyncio.current_task()
            assert me is not None
            if me.cancelling():
                raise
            # This is the caller's code. Whatever it raises, the next report is still delivered.
            logger.exception("the callback for the progress of %s failed", self._req_id)

    async def _call(self, *report: Any) -> None:
        if inspect.iscoroutinefunction(self._callback):
            outcome: Any = self._callback(*report)
        else:
            # The callback may block, and must not stop the event loop.
            call = partial(self._callback, *report)
            outcome = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._thread)
        if inspect.isawaitable(outcome):
            await outcome
