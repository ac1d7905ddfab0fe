"""Work on many items, a few at a time, so that other tasks get their turns in between."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeVar

import anyio

__all__ = ["for_each", "slices"]

#: How many items are worked on before others have their turn: a millisecond or two of what is done with them here.
_SLICE: Final = 100

_Item = TypeVar("_Item")


async def for_each(items: Sequence[_Item], work: Callable[[_Item], Awaitable[None]], workers: int) -> None:
    """Work on a few items at a time, in order. There is no task per item: there may be a hundred thousand items."""
    waiting = iter(items)

    async def keep_working() -> None:
        for item in waiting:
            await work(item)

    try:
        async with anyio.create_task_group() as tasks:
            for _ in range(min(workers, len(items))):
                tasks.start_soon(keep_working)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def slices(items: Sequence[_Item]) -> AsyncIterator[Sequence[_Item]]:
    """The items in pieces, with a turn of the loop for other tasks between two of them."""
    for start in range(0, len(items), _SLICE):
        if start:
            await asyncio.sleep(0)
        yield items[start : start + _SLICE]
