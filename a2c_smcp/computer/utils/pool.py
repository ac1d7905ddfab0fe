"""Work on many items, a few at a time."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

__all__ = ["for_each"]

_Item = TypeVar("_Item")


async def for_each(items: Sequence[_Item], work: Callable[[_Item], Awaitable[None]], workers: int) -> None:
    """A few at a time, in order; not a task per item, of which there may be a hundred thousand."""
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
