"""Functions in threads. A cancelled call delays neither the answer nor the exit of the process."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import anyio

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(function: Callable[[], T], limiter: anyio.CapacityLimiter) -> T:
    """Run the function in a thread; return or raise its outcome.

    If this is cancelled, it ends at once and the thread goes on. The thread counts for the limit until it has ended.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    token = object()
    await limiter.acquire_on_behalf_of(token)

    def finish(value: T | None, error: BaseException | None) -> None:
        limiter.release_on_behalf_of(token)
        if outcome.done():
            return  # the caller no longer waits for it
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(value)  # type: ignore[arg-type]

    def run() -> None:
        value, error = None, None
        try:
            value = context.run(function)
        except BaseException as raised:  # any error belongs to the caller
            error = raised
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finish, value, error)

    context = contextvars.copy_context()
    threading.Thread(target=run, name="tool", daemon=True).start()
    return await outcome
