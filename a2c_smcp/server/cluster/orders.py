"""What an operator asks of other server processes: one frame there, one frame back, within a deadline."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeAlias

from a2c_smcp.errors import InternalError, RequestTimeoutError
from a2c_smcp.relay.asks import Ask, AskTable
from a2c_smcp.relay.futures import resolve
from a2c_smcp.server.cluster.bus_frames import OrderedFrame, OrderFrame
from a2c_smcp.server.cluster.line import ProcessLine

__all__ = ["Obey", "Orders"]

logger = logging.getLogger(__name__)

#: Bytes of an order or of its answer. NATS takes 1 MiB.
_MOST_BYTES: Final = 900 * 1024
#: Orders of other processes that are under way here.
_MOST_RUNNING: Final = 16

Obey: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Carries an order out. Takes its JSON, and returns the JSON of the answer."""


class Orders:
    """Gives orders to other processes, and carries theirs out. `line_to` gives the way to a process."""

    def __init__(
        self, line_to: Callable[[str], ProcessLine], start: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._line_to = line_to
        self._start = start
        self._numbers = itertools.count(1)
        self._asks: AskTable[int, asyncio.Future[bytes]] = AskTable()
        self._running = 0
        self.obey: Obey | None = None

    async def give(self, process: str, order: bytes, seconds: float) -> bytes:
        """The answer of another process. Raises `RequestTimeoutError` if it does not come in time, and `InternalError`
        if NATS is out of reach.
        """
        number = next(self._numbers)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asks.ask(Ask(number, answer, target=process, was_sent=True))
        try:
            async with asyncio.timeout(seconds):
                self._line_to(process).send(OrderFrame(number), order)
                return await answer
        except TimeoutError:
            raise RequestTimeoutError(f"it did not answer within {seconds:g} s") from None
        finally:
            self._asks.end(number)

    def take_answer(self, process: str, frame: OrderedFrame, text: bytes) -> None:
        if (ask := self._asks.get(frame.id)) is not None and ask.target == process:
            resolve(self._asks, frame.id, text)

    def take(self, line: ProcessLine, frame: OrderFrame, text: bytes) -> None:
        """Carry out an order of another process. When too many are under way, it gets no answer."""
        if self.obey is not None and self._running < _MOST_RUNNING:
            self._running += 1
            self._start(self._carry_out(line, frame, text, self.obey))

    async def _carry_out(self, line: ProcessLine, frame: OrderFrame, text: bytes, obey: Obey) -> None:
        try:
            answer = await obey(text)
            if len(answer) > _MOST_BYTES:
                raise InternalError(f"the answer to an order has {len(answer)} bytes")
            line.send(OrderedFrame(frame.id), answer)
        except Exception:
            # A fault must not end the bus. The process that gave the order says that there was no answer.
            logger.exception("failed to carry out an order of server process %s", line.process)
        finally:
            self._running -= 1
