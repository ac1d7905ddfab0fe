"""A task that keeps a connection up, and those who wait until it is there for the first time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from a2c_smcp.errors import ConnectionLostError

__all__ = ["First", "Supervisor"]

First = asyncio.Future[None]
"""Has a result once there was a connection, or the error when the first attempt failed."""


class Supervisor:
    """`work` runs until it is closed, and sets the future that it is given."""

    def __init__(self, work: Callable[[First], Coroutine[Any, Any, None]], name: str) -> None:
        self._work = work
        self._name = name
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def open(self) -> None:
        """Begin, and wait for the first connection; raises what the work says, and has ended then."""
        if self.is_running:
            return
        first = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(first), name=self._name)
        try:
            await asyncio.shield(first)
        except BaseException:
            first.cancel()  # or asyncio complains of an exception that was never retrieved
            await self.close()
            raise

    def begin(self) -> None:
        """Begin, and wait for nothing: the work has no first attempt that may fail."""
        assert not self.is_running, "it is called instead of open, once"
        first = asyncio.get_running_loop().create_future()
        first.set_result(None)
        self._task = asyncio.create_task(self._run(first), name=self._name)

    async def close(self) -> None:
        """Cancel the work and wait for its end. Safe to call twice, and from any task."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _run(self, first: First) -> None:
        try:
            await self._work(first)
        finally:
            if not first.done():
                first.set_exception(ConnectionLostError("closed before it was connected"))
