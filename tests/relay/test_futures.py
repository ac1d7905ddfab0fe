"""Asks that coroutines wait for."""

import asyncio

import pytest

from a2c_smcp.relay.asks import Ask, AskTable
from a2c_smcp.relay.futures import reject, reject_all, resolve


async def test_every_ask_ends_with_what_came_first_and_one_that_nobody_waits_for_with_nothing() -> None:
    asks: AskTable[int, asyncio.Future[str]] = AskTable()
    futures: list[asyncio.Future[str]] = [asyncio.get_running_loop().create_future() for _ in range(4)]
    for number, future in enumerate(futures):
        asks.ask(Ask(number, future))
    futures[3].cancel()
    resolve(asks, 0, "answer")
    resolve(asks, 0, "second answer")
    reject(asks, 1, ValueError("refused"))
    reject_all(asks, lambda: ConnectionError("gone"))
    assert await futures[0] == "answer"
    for future, error in ((futures[1], ValueError), (futures[2], ConnectionError)):
        with pytest.raises(error):
            await future
    assert futures[3].cancelled() and not asks
