"""Asks whose waiter is a future of asyncio: what an adapter does when one of them ends."""

import asyncio
from collections.abc import Callable, Hashable
from typing import TypeVar

from a2c_smcp.relay.asks import AskTable

__all__ = ["reject", "reject_all", "reject_lost", "resolve"]

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

# A future may be done while its ask still waits: the task that awaited it was cancelled, and has not run since.


def resolve(asks: AskTable[K, asyncio.Future[R]], ask_id: K, answer: R) -> None:
    """Give an ask its answer, unless it has ended."""
    if (ask := asks.answer(ask_id)) is not None and not ask.waiter.done():
        ask.waiter.set_result(answer)


def reject(asks: AskTable[K, asyncio.Future[R]], ask_id: K, error: Exception) -> None:
    """Fail an ask, unless it has ended."""
    if (ask := asks.fail(ask_id)) is not None and not ask.waiter.done():
        ask.waiter.set_exception(error)


def reject_all(asks: AskTable[K, asyncio.Future[R]], error: Callable[[], Exception]) -> None:
    """The only target has gone: fail everything that waits, each ask with an error of its own."""
    for ask in asks.lost_all():
        if not ask.waiter.done():
            ask.waiter.set_exception(error())


def reject_lost(asks: AskTable[K, asyncio.Future[R]], target: str, error: Callable[[], Exception]) -> None:
    """A target has gone: fail everything that waits for it, each ask with an error of its own."""
    for ask in asks.lost(target).unanswered:
        if not ask.waiter.done():
            ask.waiter.set_exception(error())
