"""The progress of calls, for the callbacks of their callers. A callback that is slow or fails harms no call."""

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

#: How long a call that has its result waits for its callback to take the last report, in seconds.
_LAST_SECONDS: Final = 1.0


class ProgressListeners:
    """Those who want to hear of the progress of their calls, by computer and `req_id`."""

    def __init__(self) -> None:
        self._listeners: dict[tuple[str, str], list[_ProgressListener]] = {}

    def take(self, report: ToolProgress) -> None:
        """Hand a report to the callers of its call. It is dropped if there is none."""
        for listener in self._listeners.get((report["computer"], report["req_id"]), ()):
            listener.put(report)

    @asynccontextmanager
    async def listening(self, computer: str, req_id: str, callback: ProgressCallback) -> AsyncIterator[None]:
        """Call back for every report of one call while this is entered, and once more at its end for the last."""
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
    """Calls back in a task, one report at a time. Of reports that come faster than that, the latest counts."""

    def __init__(self, callback: ProgressCallback, req_id: str) -> None:
        self._callback = callback
        self._req_id = req_id
        self._progress = 0.0
        self._latest = LatestOnly(self._call_back)
        #: Its own: callbacks that block must not take the threads of others.
        self._thread = anyio.CapacityLimiter(1)

    def put(self, report: ToolProgress) -> None:
        # A computer of another make may report less than before.
        self._progress = max(self._progress, report["progress"])
        self._latest.put(self._progress, report.get("total"), report.get("message"))

    async def end(self) -> None:
        """Wait until the last report is taken, but not for long."""
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
            # Not our code: whatever it raises, the next report is still told.
            logger.exception("the callback for the progress of %s failed", self._req_id)

    async def _call(self, *report: Any) -> None:
        if inspect.iscoroutinefunction(self._callback):
            outcome: Any = self._callback(*report)
        else:
            # It may block, which must not hold up the loop.
            call = partial(self._callback, *report)
            outcome = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._thread)
        if inspect.isawaitable(outcome):
            await outcome
