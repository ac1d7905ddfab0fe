"""How late the event loop is: everybody's calls wait as long as this."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

__all__ = ["measured_lag"]

#: Seconds between two looks.
_INTERVAL = 0.25


@asynccontextmanager
async def measured_lag(tell: Callable[[float], None]) -> AsyncIterator[None]:
    """Look four times a second, for the time of the block, how many seconds later than wanted the loop goes on."""
    task = asyncio.create_task(_measure(tell))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _measure(tell: Callable[[float], None]) -> None:
    now = asyncio.get_running_loop().time
    while True:
        due = now() + _INTERVAL
        await asyncio.sleep(_INTERVAL)
        tell(max(0.0, now() - due))
