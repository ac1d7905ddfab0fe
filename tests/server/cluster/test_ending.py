import asyncio

from a2c_smcp.server.cluster.connection import end_tasks


async def test_a_task_that_misses_its_first_cancellation_is_cancelled_again() -> None:
    missed = 0

    async def deaf() -> None:
        nonlocal missed
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                missed += 1
                if missed == 2:
                    raise

    tasks = [asyncio.create_task(deaf()), asyncio.create_task(asyncio.sleep(0))]
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        await end_tasks(tasks)
    assert missed == 2 and all(task.done() for task in tasks)


async def test_there_may_be_nothing_to_end() -> None:
    await end_tasks([])
