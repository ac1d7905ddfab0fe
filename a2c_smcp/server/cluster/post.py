"""Sends what leaves this process for others, in the order in which it was posted. Knows bytes and subjects."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError

from a2c_smcp.server.cluster import tuning

__all__ = ["ChunkWindow", "Letter", "Post", "Publisher"]

logger = logging.getLogger(__name__)


class Publisher(Protocol):
    """The part of a connection to NATS that this module uses."""

    @property
    def is_connected(self) -> bool: ...
    @property
    def pending_data_size(self) -> int: ...
    async def publish(self, subject: str, payload: bytes = b"", reply: str = "") -> None: ...


@dataclass(slots=True, eq=False)
class Letter:
    subject: str
    payload: bytes
    reply: str
    keep_until: float = 0.0
    """How long it may wait for NATS, in seconds of the loop's clock."""
    undelivered: Callable[[], None] | None = None
    """Called when it cannot be sent."""


class Post:
    """Publishes letters from one task, so that any code may post without waiting and the order is kept.

    While NATS is out of reach, letters that may wait are kept. The others are dropped at once, because publishing them
    late would be worse.
    """

    def __init__(self, client: Publisher) -> None:
        self._client = client
        self._letters: deque[Letter] = deque()
        self._size = 0
        self._posted = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def unsent(self) -> int:
        """Bytes that wait here or in nats-py, which takes any amount while NATS does not read."""
        return self._size + self._client.pending_data_size

    def post(self, letter: Letter) -> None:
        self._letters.append(letter)
        self._size += len(letter.payload)
        self._empty.clear()
        self._posted.set()

    async def run(self) -> None:
        """Publish what is posted, until cancelled."""
        while True:
            await self._posted.wait()
            self._posted.clear()
            while self._letters:
                if self._client.is_connected:
                    letter = self._letters.popleft()
                    self._size -= len(letter.payload)
                    await self._publish(letter)
                else:
                    self._give_up_what_cannot_wait()
                    if self._letters:
                        await asyncio.sleep(tuning.TIMES.look_for_room)
            self._empty.set()

    async def drained(self, seconds: float) -> None:
        """Wait until everything is handed to NATS, for this long at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._empty.wait()

    async def _publish(self, letter: Letter) -> None:
        try:
            await self._client.publish(letter.subject, letter.payload, letter.reply)
        except MaxPayloadError:
            # Another attempt would fail in the same way.
            logger.warning("a message to another server process is too large for NATS; raise its max_payload")
            self._drop(letter)
        except Exception as error:
            # nats-py may raise anything. This task must not end, and one letter must not hold up the others.
            if not isinstance(error, NatsError | OSError):
                logger.exception("failed to publish")
            if letter.keep_until > asyncio.get_running_loop().time():
                self._letters.appendleft(letter)
                self._size += len(letter.payload)
                await asyncio.sleep(tuning.TIMES.look_for_room)
            else:
                self._drop(letter)

    def _give_up_what_cannot_wait(self) -> None:
        now = asyncio.get_running_loop().time()
        letters, self._letters = self._letters, deque()
        for letter in letters:
            if letter.keep_until > now:
                self._letters.append(letter)
            else:
                self._size -= len(letter.payload)
                self._drop(letter)

    @staticmethod
    def _drop(letter: Letter) -> None:
        if letter.undelivered is not None:
            letter.undelivered()


class ChunkWindow:
    """Limits the chunks that are on their way to one process, because a small frame waits for those before it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._free = size
        self._arrived = 0
        self._waiting: deque[asyncio.Future[bool]] = deque()

    async def take(self) -> bool:
        """Wait for a place. Returns `False` if the receiver counts as gone, or nothing arrives there any more."""
        if self._free and not self._waiting:
            self._free -= 1
            return True
        place: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            while not place.done():
                arrived = self._arrived
                await asyncio.wait((place,), timeout=tuning.TIMES.chunk)
                if not place.done() and arrived == self._arrived:
                    # The message that a chunk has arrived was lost between two NATS servers, and nobody was cut off.
                    self.close()
            return place.result()
        except asyncio.CancelledError:
            if not place.done():
                place.cancel()
            elif place.result():
                self.give()
            raise

    def give(self) -> None:
        """A chunk has arrived."""
        self._arrived += 1
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(True)
                return
        self._free = min(self._size, self._free + 1)

    def close(self) -> None:
        """End all waits, and begin anew."""
        self._free = self._size
        waiting, self._waiting = self._waiting, deque()
        for place in waiting:
            if not place.done():
                place.set_result(False)
