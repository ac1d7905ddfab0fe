"""Worker processes: limits of time and memory, replaced when they die, and never all of them busy in the background."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from a2c_smcp.docs.limits import DocumentLimits
from a2c_smcp.docs.workers import Workers
from tests.docs.libraries import DEADLINE


def request(path: Path) -> list[Any]:
    about = path.stat()
    return [str(path.parent), path.name, about.st_size, about.st_mtime_ns]


def alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


async def gone(*pids: int) -> None:
    """Until these processes have ended and were waited for: who kills one does not wait for that for ever."""
    while any(map(alive, pids)):  # noqa: ASYNC110 - a process has no event
        await asyncio.sleep(0.01)


def slow(folder: Path) -> Path:
    """A file that takes a worker seconds to describe."""
    path = folder / "slow.csv"
    path.write_text("a,b\n" + "1,2\n" * 4_000_000)
    return path


async def test_a_file_that_takes_too_long_is_given_up_and_the_worker_replaced(tmp_path: Path) -> None:
    quick = tmp_path / "quick.md"
    quick.write_text("# Quick")
    async with asyncio.timeout(DEADLINE), Workers(DocumentLimits(seconds=0.3)) as workers:
        files = [request(quick), request(slow(tmp_path)), request(quick)]
        # By a new worker, which is given the time to start: an old one may need more than 0.3 s for any file.
        describing = asyncio.create_task(workers.describe(files))
        while not workers.pids:  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(0.01)
        [old] = workers.pids
        first, late, last = await describing
        assert (first["facts"]["title"], last["facts"]["title"]) == ("Quick", "Quick")
        assert late["problem"]["code"] == 408
        await gone(old)
        left = workers.pids
    async with asyncio.timeout(DEADLINE):
        await gone(*left)


async def test_a_file_that_needs_too_much_memory_is_given_up(tmp_path: Path) -> None:
    large = tmp_path / "large.txt"
    large.write_bytes("x".encode("utf-16") + "y".encode("utf-16-le") * 60_000_000)
    quick = tmp_path / "quick.md"
    quick.write_text("# Quick")
    async with asyncio.timeout(DEADLINE), Workers(DocumentLimits(memory_bytes=150 * 2**20)) as workers:
        large_answer, quick_answer = await workers.describe([request(large), request(quick)])
    assert large_answer["problem"]["code"] == 413
    assert quick_answer["facts"]["title"] == "Quick"


async def test_a_worker_that_died_meanwhile_is_not_the_fault_of_the_next_file(tmp_path: Path) -> None:
    quick = tmp_path / "quick.md"
    quick.write_text("# Quick")
    async with asyncio.timeout(DEADLINE), Workers(DocumentLimits()) as workers:
        await workers.describe([request(quick)])
        os.kill(workers.pids[0], signal.SIGKILL)
        [answer] = await workers.describe([request(quick)])
        assert answer["facts"]["title"] == "Quick"


async def test_background_work_leaves_a_worker_for_those_who_wait(tmp_path: Path) -> None:
    quick = tmp_path / "quick.md"
    quick.write_text("# Quick")
    async with asyncio.timeout(DEADLINE), Workers(DocumentLimits(seconds=30)) as workers:
        late = request(slow(tmp_path))
        await workers.describe([request(quick)], background=True)
        # So that it is not done before the other one has started, however long that takes.
        os.kill(workers.pids[0], signal.SIGSTOP)
        busy = [asyncio.create_task(workers.describe([late], background=True)) for _ in range(3)]
        await asyncio.sleep(0)
        [answer] = await workers.read("page", request(quick), 0)
        assert answer["page"]["title"] == "Quick"
        assert not any(task.done() for task in busy)
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)


async def test_a_cancelled_request_leaves_no_answer_behind(tmp_path: Path) -> None:
    quick = tmp_path / "quick.md"
    quick.write_text("# Quick")
    async with asyncio.timeout(DEADLINE), Workers(DocumentLimits(seconds=30)) as workers:
        late = asyncio.create_task(workers.describe([request(slow(tmp_path))]))
        while not workers.pids:  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(0.01)
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)
        for _ in range(3):
            [answer] = await workers.describe([request(quick)])
            assert answer["facts"]["title"] == "Quick"


async def test_a_file_that_is_another_one_by_now_is_said_to_be(tmp_path: Path) -> None:
    quick = tmp_path / "quick.md"
    quick.write_text("# Quick")
    old = request(quick)
    quick.write_text("# Quicker")
    async with asyncio.timeout(DEADLINE), Workers(DocumentLimits()) as workers:
        changed, gone = await workers.describe([old, [str(tmp_path), "none.md", 1, 1]])
        assert "changed" in changed and "changed" in gone
        [beyond] = await workers.read("page", request(quick), 7)
        assert "changed" in beyond
