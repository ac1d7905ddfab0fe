"""A queue for one event loop that needs almost no memory while it is empty."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

__all__ = ["LightQueue"]

T = TypeVar("T")


class LightQueue(Generic[T]):
    """An unbounded `asyncio.Queue` without `join`. asyncio's queue needs 2.5 KB, and each connection of a server has
    two.
    """

    __slots__ = ("_items", "_readers")

    def __init__(self) -> None:
        self._items: deque[T] | None = None
        self._readers: list[asyncio.Future[None]] = []

    def empty(self) -> bool:
        return not self._items

    def put_nowait(self, item: T) -> None:
        if self._items is None:
            self._items = deque()
        self._items.append(item)
        self._wake_reader()

    async def put(self, item: T) -> None:
        self.put_nowait(item)

    def get_nowait(self) -> T:
        """The oldest item, or `asyncio.QueueEmpty`."""
        if not self._items:
            raise asyncio.QueueEmpty
        item = self._items.popleft()
        if not self._items:
            self._items = None
        return item

    async def get(self) -> T:
        """The oldest item, as soon as there is one. Readers get items in the order in which the readers came."""
        while not self._items:
            turn = asyncio.get_running_loop().create_future()
            self._readers.append(turn)
            try:
                await turn
            except BaseException:
                if turn in self._readers:
                    self._readers.remove(turn)
                elif self._items and not turn.cancelled():
                    self._wake_reader()  # this reader was woken, but does not take the item
                raise
        return self.get_nowait()

    def _wake_reader(self) -> None:
        while self._readers:
            turn = self._readers.pop(0)
            if not turn.done():
                turn.set_result(None)
                return
