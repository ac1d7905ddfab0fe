"""How much of a turn of the event loop one connection may use. Knows nothing of the work itself."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Final

__all__ = ["DEPARTURE_SECONDS", "OWN_SECONDS", "SHARED_SECONDS", "TASK_SECONDS", "OwnTurn", "SharedTurns"]

logger = logging.getLogger(__name__)

#: Seconds of one turn of the loop that all connections without a key share.
SHARED_SECONDS: Final = 0.005
#: Seconds of one turn of the loop for each connection with a key.
OWN_SECONDS: Final = 0.003
#: The estimated cost of a message in the task that it starts, which is not measured: an unknown event takes 0.15 ms.
TASK_SECONDS: Final = 0.0002
#: The estimated cost of the end of a connection in the tasks that it wakes, which is not measured.
DEPARTURE_SECONDS: Final = 0.0002


class OwnTurn:
    """The time that one connection has used since it last yielded."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used = 0.0

    async def used(self, seconds: float) -> None:
        """Count the time, and yield to other tasks when the limit is reached."""
        self._used += seconds
        if self._used >= OWN_SECONDS:
            self._used = 0.0
            await asyncio.sleep(0)


class SharedTurns:
    """A queue for all connections without a key. It gets a fixed part of each turn of the loop."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._waiting: deque[Callable[[], object]] = deque()
        self._scheduled = False
        self._typical = TASK_SECONDS
        self._debt = 0.0

    def call(self, work: Callable[[], object]) -> None:
        """Do this piece of work when its turn comes."""
        self._enqueue(work)

    async def wait(self) -> None:
        """Returns when the caller's turn comes. The caller then reports with `used` how long its work took."""
        turn = asyncio.get_running_loop().create_future()

        def go() -> None:
            if not turn.done():
                turn.set_result(None)
                self._debt += self._typical

        self._enqueue(go)
        await turn

    def used(self, seconds: float) -> None:
        """Count time that was not measured here. If it is more than expected, later turns are shorter."""
        seconds = min(seconds, SHARED_SECONDS)  # it may have waited for something meanwhile
        self._debt += max(0.0, seconds - self._typical)
        self._typical += (seconds - self._typical) / 8

    def owe(self, seconds: float) -> None:
        """Count time that the work of a `call` takes later, in a task that it starts."""
        self._debt += seconds

    def _enqueue(self, go: Callable[[], object]) -> None:
        self._waiting.append(go)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._debt -= SHARED_SECONDS
        while self._waiting and self._debt < 0:
            began = self._clock()
            try:
                self._waiting.popleft()()  # it may call `owe`
            except Exception:
                # A failure of one piece of work must not stop the others in this queue.
                logger.exception("failed in the turn of a connection")
            self._debt += max(self._clock() - began, 1e-6)
        self._debt = max(0.0, self._debt)  # unused time is not kept
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            asyncio.get_running_loop().call_soon(self._turn)
