import asyncio

import pytest

from a2c_smcp.utils.light_queue import LightQueue


async def test_items_and_readers_keep_their_order() -> None:
    queue: LightQueue[int] = LightQueue()
    readers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for item in (1, 2, 3, 4):
        queue.put_nowait(item)
    assert await asyncio.gather(*readers) == [1, 2, 3]
    assert not queue.empty()
    assert queue.get_nowait() == 4
    with pytest.raises(asyncio.QueueEmpty):
        queue.get_nowait()


async def test_a_reader_that_is_cancelled_takes_no_item() -> None:
    queue: LightQueue[str] = LightQueue()
    early, woken, last = (asyncio.create_task(queue.get()) for _ in range(3))
    await asyncio.sleep(0)
    early.cancel()
    await asyncio.wait({early})
    queue.put_nowait("item")  # wakes the second reader, which is cancelled before it runs
    woken.cancel()
    assert await asyncio.wait_for(last, 5) == "item"
    assert early.cancelled()
    assert woken.cancelled()


async def test_a_reader_that_is_being_cancelled_is_passed_over() -> None:
    queue: LightQueue[str] = LightQueue()
    gone, there = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    gone.cancel()
    queue.put_nowait("item")
    assert await asyncio.wait_for(there, 5) == "item"
    assert gone.cancelled()
