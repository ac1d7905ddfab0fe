"""One reading at a time, and one more for whatever changes meanwhile."""

import asyncio

import pytest

from a2c_smcp.computer.utils.refresher import Refresher


async def test_what_changes_during_a_reading_is_read_once_more() -> None:
    refresher, gate, begun = Refresher(), asyncio.Event(), list[bool]()

    async def read() -> None:
        begun.append(refresher.is_stale)
        await gate.wait()

    task = refresher.soon(read, "reading")
    await asyncio.sleep(0)
    assert [refresher.soon(read, "reading") for _ in range(5)] == [task] * 5
    assert begun == [False] and refresher.is_stale
    gate.set()
    await task
    assert begun == [False, False]
    assert refresher.running is None and not refresher.is_stale


async def test_after_a_failed_reading_the_next_one_is_made() -> None:
    refresher, made = Refresher(), list[int]()

    async def fail() -> None:
        raise LookupError

    async def read() -> None:
        made.append(1)

    with pytest.raises(LookupError):
        await refresher.soon(fail, "reading")
    await refresher.soon(read, "reading")
    assert made == [1]


async def test_what_changes_all_the_time_is_left_alone_for_as_long_as_its_reading_took() -> None:
    refresher, times = Refresher(), list[float]()
    loop = asyncio.get_running_loop()

    async def read() -> None:
        times.append(loop.time())
        await asyncio.sleep(0.05)
        times.append(loop.time())
        refresher.is_stale = len(times) < 8

    await refresher.soon(read, "reading")
    readings = [end - begun for begun, end in zip(times[::2], times[1::2], strict=True)]
    pauses = [begun - end for end, begun in zip(times[1::2], times[2::2], strict=False)]
    assert all(pause >= reading for reading, pause in zip(readings, pauses, strict=False))
