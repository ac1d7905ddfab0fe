"""Connections without a key share a part of each turn of the loop; others give way after a while."""

import asyncio
from typing import Any

import pytest

from a2c_smcp.utils.loop_turns import OWN_SECONDS, SHARED_SECONDS, OwnTurn, SharedTurns


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def turns_until(done: Any) -> int:
    count = 0
    while not done():
        await asyncio.sleep(0)
        count += 1
        assert count < 10_000
    return count


async def test_work_that_takes_long_is_spread_over_turns_and_nobody_is_first_twice() -> None:
    clock = Clock()
    shared = SharedTurns(clock)
    order: list[str] = []

    def work(name: str) -> None:
        clock.now += 0.6 * SHARED_SECONDS
        order.append(name)
        if order.count(name) < 3:
            shared.call(lambda: work(name))

    for name in "abcd":
        shared.call(lambda name=name: work(name))  # type: ignore[misc]
    per_turn = []
    while len(order) < 12:
        before = len(order)
        await asyncio.sleep(0)
        per_turn.append(len(order) - before)
    assert max(per_turn) == 2
    assert order == list("abcd" * 3)


async def test_what_a_piece_of_work_begins_counts_in_the_same_turn_however_often_it_comes() -> None:
    shared = SharedTurns(Clock())
    done: list[int] = []

    def work(n: int) -> None:
        done.append(n)
        shared.owe(0.3 * SHARED_SECONDS)

    for n in range(100):
        shared.call(lambda n=n: work(n))  # type: ignore[misc]
    per_turn = []
    while len(done) < 100:
        before = len(done)
        await asyncio.sleep(0)
        per_turn.append(len(done) - before)
    assert max(per_turn) == 4 and len(per_turn) >= 30


async def test_a_piece_of_work_that_fails_does_not_hold_up_the_others(caplog: pytest.LogCaptureFixture) -> None:
    shared = SharedTurns()
    done: list[int] = []
    shared.call(lambda: 1 / 0)
    shared.call(lambda: done.append(1))
    await turns_until(lambda: done)
    assert "ZeroDivisionError" in caplog.text


async def test_what_took_longer_than_expected_is_kept_back_later() -> None:
    shared = SharedTurns()
    granted: list[int] = []

    async def wait(n: int) -> None:
        await shared.wait()
        granted.append(n)
        shared.used(SHARED_SECONDS)

    async with asyncio.TaskGroup() as tasks:
        for n in range(100):
            tasks.create_task(wait(n))
        took = await turns_until(lambda: len(granted) == 100)
    # At the expected cost it would be 25 a turn.
    assert took > 40
    assert granted == list(range(100))


async def test_who_gives_up_waiting_takes_nobodys_turn() -> None:
    shared = SharedTurns()
    waiting = [asyncio.ensure_future(shared.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    async with asyncio.timeout(20):
        await asyncio.wait(waiting)
    assert [task.cancelled() for task in waiting] == [True, False, False]


async def test_a_connection_lets_others_in_after_a_few_milliseconds() -> None:
    turn = OwnTurn()
    others = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(other())
    for _ in range(10):
        await turn.used(0.21 * OWN_SECONDS)
    assert others == 2
    task.cancel()
