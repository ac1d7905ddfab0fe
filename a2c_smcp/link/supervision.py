"""A task that keeps a connection up, and callers that wait for the first connection."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from a2c_smcp.errors import ConnectionLostError

__all__ = ["First", "Supervisor"]

logger = logging.getLogger(__name__)

#: Seconds after which work that has not ended is cancelled once more. Its own end takes less.
_CANCEL_AGAIN: Final = 5.0

First = asyncio.Future[None]
"""Has a result once there was a connection, or the error of the first attempt."""


class Supervisor:
    """Runs `work` until it is closed. `work` sets the future that it is given."""

    def __init__(self, work: Callable[[First], Coroutine[Any, Any, None]], name: str) -> None:
        self._work = work
        self._name = name
        self._task: asyncio.Task[None] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        """Where the work runs, or ran last."""

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def open(self) -> None:
        """Begin, and wait for the first connection. Raises the error of the first attempt; the work has ended then."""
        if self.is_running:
            self.check_loop()
            return
        first = self._start()
        try:
            await asyncio.shield(first)
        except BaseException:
            first.cancel()  # otherwise asyncio complains of an exception that was never retrieved
            await self.close()
            raise

    def begin(self) -> None:
        """Begin without waiting, for work that tries for ever."""
        if self.is_running:
            raise RuntimeError("this client is open already; call attend once, and not after open")
        self._start().set_result(None)

    async def close(self) -> None:
        """Cancel the work and wait for its end. Safe to call twice, and from any task."""
        task, self._task = self._task, None
        while task is not None and not task.done():
            # Once may not be enough: `asyncio.wait_for` of Python 3.11, which libraries use, loses a cancellation if
            # what it waits for ends at the same moment.
            task.cancel()
            await asyncio.wait({task}, timeout=_CANCEL_AGAIN)

    def check_loop(self) -> asyncio.AbstractEventLoop:
        """The running loop. Raises `RuntimeError` if the work runs in another one."""
        loop = asyncio.get_running_loop()
        if self.loop is not None and self.loop is not loop:
            raise RuntimeError("this client was opened in another event loop; use it there")
        return loop

    def _start(self) -> First:
        self.loop = asyncio.get_running_loop()
        first: First = self.loop.create_future()
        self._task = asyncio.create_task(self._run(first), name=self._name)
        return first

    async def _run(self, first: First) -> None:
        try:
            await self._work(first)
        except Exception as error:
            # A boundary: nobody else would hear of this fault of ours.
            logger.exception("%s ended", self._name)
            if not first.done():
                first.set_exception(error)
        finally:
            if not first.done():
                first.set_exception(ConnectionLostError("the client was closed before it was connected"))
