"""Connections that a client has left for a newer one: they stay until what is on its way there is answered."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final

from a2c_smcp.errors import ConnectionLostError
from a2c_smcp.link.connection import Connection
from a2c_smcp.relay.asks import AskTable
from a2c_smcp.relay.futures import reject_lost

__all__ = ["MOVING", "MovingTimes", "RetiredConnections"]


@dataclass(frozen=True, slots=True)
class MovingTimes:
    """All in seconds."""

    linger: float = 1.0
    """How long the old connection stays in any case. Requests that were sent there before the move arrive later."""
    longest_pause: float = 1.0
    """Clients of one server do not move at the same moment. This is the longest pause before a move."""
    after: float = 2.0
    """How much longer than announced the old connection may stay. Then the server has closed it."""


MOVING: Final = MovingTimes()


class RetiredConnections:
    """Closes each connection when nothing waits for an answer there, at this side or at the other."""

    def __init__(self, asks: AskTable[int, asyncio.Future[str]]) -> None:
        self._asks = asks
        self._closing: set[asyncio.Task[None]] = set()

    def add(self, connection: Connection, until: float) -> None:
        """Close this connection when it is idle, and at this time of the loop at the latest."""
        task = asyncio.create_task(self._close_when_idle(connection, until))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close all of them now."""
        for task in (tasks := set(self._closing)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _close_when_idle(self, connection: Connection, until: float) -> None:
        pause = MOVING.linger
        try:
            async with asyncio.timeout_at(until):
                while True:
                    await asyncio.wait({connection.dropped}, timeout=pause)
                    if connection.dropped.done() or not (
                        self._asks.concerns(connection.name) or connection.is_answering
                    ):
                        break
                    pause = 0.05
        except TimeoutError:
            pass  # the server has stopped by now
        finally:
            reject_lost(self._asks, connection.name, partial(ConnectionLostError, "the server has stopped"))
            await connection.dispose()
