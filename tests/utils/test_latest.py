"""The pace at which the reports of a call leave the computer."""

import asyncio
from typing import Any

import pytest

from a2c_smcp.computer.calls.progress import PROGRESS_SECONDS
from a2c_smcp.utils.latest import LatestOnly


class Sent(list[tuple[float, float]]):
    """When a report was sent, and its progress."""

    async def send(self, progress: float, total: float | None, message: str | None) -> None:
        self.append((asyncio.get_running_loop().time(), progress))

    @property
    def progress(self) -> list[float]:
        return [progress for _, progress in self]


async def test_at_most_ten_leave_in_any_second_and_the_last_always() -> None:
    sent = Sent()
    paced = LatestOnly(sent.send, PROGRESS_SECONDS)
    for step in range(1, 201):
        paced.put(step, 200, None)
        await asyncio.sleep(0.01)
    await paced.end()
    assert sent.progress[-1] == 200
    assert sent.progress == sorted(set(sent.progress))
    for began, _ in sent:
        assert sum(began <= when < began + 1 for when, _ in sent) <= 10
    assert len(sent) > 10


async def test_the_first_leaves_at_once_and_of_those_that_wait_the_first_three_and_the_latest() -> None:
    sent = Sent()
    paced = LatestOnly(sent.send, PROGRESS_SECONDS)
    paced.put(1, None, None)
    await asyncio.sleep(0)
    assert sent.progress == [1]
    for step in (2, 3, 4, 5, 6):
        paced.put(step, None, None)
    while len(sent) < 4:  # noqa: ASYNC110 - until it is their turn
        await asyncio.sleep(0.01)
    assert sent.progress == [1, 2, 3, 6]
    paced.stop()


async def test_the_end_hands_on_all_that_is_left_of_the_first_three() -> None:
    sent = Sent()
    paced = LatestOnly(sent.send, PROGRESS_SECONDS)
    for step in (1, 2, 3, 4, 5):
        paced.put(step, None, None)
    await paced.end()
    assert sent.progress == [1, 2, 3, 5]


async def test_nothing_leaves_after_the_end() -> None:
    sent = Sent()
    paced = LatestOnly(sent.send, PROGRESS_SECONDS)
    paced.put(1, None, None)
    await asyncio.sleep(0)
    paced.put(2, None, None)
    await paced.end()
    await paced.end()
    await asyncio.sleep(0.3)
    assert sent.progress == [1, 2]


@pytest.mark.parametrize("waits", [True, False])
async def test_a_connection_that_takes_nothing_collects_nothing(waits: bool) -> None:
    """While one report waits to be sent, the others make way for the latest."""
    sent, gate = Sent(), asyncio.Event()

    async def send(*report: Any) -> None:
        await sent.send(*report)
        if waits:
            await gate.wait()

    paced = LatestOnly(send, PROGRESS_SECONDS)
    for step in range(1000):
        paced.put(step, None, None)
        await asyncio.sleep(0)
    gate.set()
    await paced.end()
    assert sent.progress[0] == 0
    assert sent.progress[-1] == 999
    assert len(sent) < 20
