"""Hands on the latest of values that come faster than the receiver takes them."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, ParamSpec

from a2c_smcp.utils.pace import Pace

__all__ = ["LatestOnly"]

P = ParamSpec("P")


class LatestOnly(Generic[P]):
    """Hands values on in a task, one after the other, at least `apart` seconds apart. If values come faster, only
    the latest is handed on, but the first three always are: a call with a few reports loses none. `end` waits for the
    values that are left; `stop` drops them.
    """

    def __init__(self, send: Callable[P, Awaitable[None]], apart: float = 0.0) -> None:
        self._send = send
        self._pace = Pace(apart)
        self._waiting: deque[Callable[[], Awaitable[None]]] = deque()
        self._to_keep = 3
        self._is_last_kept = True
        self._task: asyncio.Task[None] | None = None
        self._is_pausing = False

    def put(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Hand these values on, unless newer ones come first."""
        if self._waiting and not self._is_last_kept:
            self._waiting.pop()
        self._waiting.append(partial(self._send, *args, **kwargs))
        self._is_last_kept = self._to_keep > 0
        self._to_keep -= self._is_last_kept
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Hand on at once what still waits. Nothing is handed on after this."""
        self._pace = Pace(0.0)
        if self._task is not None and not self._is_pausing:
            await asyncio.wait({self._task})
        elif self._task is not None:
            self._task.cancel()
        while self._waiting:
            await self._waiting.popleft()()

    def stop(self) -> None:
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            self._pace = self._pace.change(loop.time())
            assert self._pace.due is not None
            if (pause := self._pace.due - loop.time()) > 0:
                self._is_pausing = True
                await asyncio.sleep(pause)
                self._is_pausing = False
            send = self._waiting.popleft()
            self._pace = self._pace.sent(loop.time())
            await send()
