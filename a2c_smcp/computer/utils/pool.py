"""Work on many items, a few at a time, so that other tasks can run in between."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

__all__ = ["for_each", "slices"]

_Item = TypeVar("_Item")


async def for_each(items: Sequence[_Item], work: Callable[[_Item], Awaitable[None]], workers: int) -> None:
    """Work on all items, `workers` at a time, in order. No task for each item: there may be a hundred thousand."""
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
    """The items in pieces of 100. Between two pieces other tasks can run: a piece takes a millisecond or two here."""
    for start in range(0, len(items), 100):
        if start:
            await asyncio.sleep(0)
        yield items[start : start + 100]
