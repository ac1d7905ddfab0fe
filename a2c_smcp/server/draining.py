"""How a server process ends without anybody noticing: clients move to other processes, calls are answered, names freed.

A process that is alone has nowhere to send its clients. It answers what runs, and says what it loses.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from a2c_smcp.server.switchboard import Switchboard

__all__ = ["DrainTimes", "Draining"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DrainTimes:
    """How long a process may take to end, in seconds."""

    seconds: float = 30.0
    """From the signal until the connections are closed, at most. It ends earlier when nobody is left."""
    announce: float = 5.0
    """Within this time the clients are told to move. A few hundred are told at once."""
    finish: float = 2.0
    """The last part of `seconds`. In it, new requests of clients that have not moved are refused, and running ones
    answered."""


_ALONE: Final = "stopping: %s; another Ctrl-C (or SIGTERM) ends it at once"
_MOVES: Final = "stopping: %d clients move to other processes; another Ctrl-C (or SIGTERM) ends it at once"


class Draining:
    """The end of one server process. `begun` makes it not ready; `hurry` ends every wait."""

    def __init__(self, switchboard: Switchboard) -> None:
        self._switchboard = switchboard
        self._hurried = asyncio.Event()
        self.begun = False

    def hurry(self) -> None:
        """Wait for nobody any more."""
        self._hurried.set()

    async def drain(self, times: DrainTimes, tell: Callable[[str], None]) -> None:
        """Let the clients go, and wait until what runs is answered. `tell` says to a person what is waited for."""
        self.begun = True
        now, board, registry = asyncio.get_running_loop().time, self._switchboard, self._switchboard.registry
        until = now() + times.seconds
        await registry.retire()
        if registry.has_others() and board.sessions:
            tell(_MOVES % board.sessions)
            await self._patiently(board.move_clients(max(0.0, until - times.finish - now()), times.announce))
        elif board.pending_relays:
            tell(_ALONE % f"{board.pending_relays} requests are still running, {times.seconds:g} s at most")
        # If the other processes stop too, nobody moves, and most of the time is left for what runs.
        await self._patiently(board.drain(max(0.0, until - now())))
        if lost := board.pending_relays:
            logger.warning("%d requests were lost: they were still running when this process ended", lost)
        # The clients connect to other processes. There, their names must be free at once.
        await registry.release()

    async def _patiently(self, work: Coroutine[Any, Any, None]) -> None:
        tasks = {asyncio.create_task(work), asyncio.create_task(self._hurried.wait())}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
