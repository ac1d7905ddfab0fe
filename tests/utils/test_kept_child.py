"""A kept child: many answers to one request, one that is too large among them, and what the child dies of.

The tests of VRL and of documents show the rest: deadlines, cancelled requests, and an owner that is killed.
"""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from a2c_smcp.utils.kept_child import ChildAnswerTooLargeError, ChildClosedError, ChildOutOfMemoryError, KeptChild
from a2c_smcp.utils.serving_child import ChildBounds
from tests.computer.fakes.processes import both_loops

PROGRAM = """
import sys
from a2c_smcp.utils.serving_child import serve

def answers(sizes):
    print("a library says something")
    for size in sizes:
        yield sys.argv[2] * size

serve(answers)
"""
#: The same, and a process that leaves the group and keeps the pipe.
LEAVES_SOMEBODY = PROGRAM.replace(
    "\nserve(",
    """
import subprocess
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=1, start_new_session=True)
open(f"{sys.argv[3]}/left-{left.pid}", "w").close()
serve(""",
)


@both_loops
async def test_answers_come_one_by_one_and_a_child_that_had_a_small_trouble_is_kept(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(PROGRAM)
    bounds = ChildBounds(memory_bytes=512 * 2**20, answer_seconds=60, answer_bytes=100)
    child = KeptChild([str(tmp_path / "child.py")], bounds, ["x"])
    async with asyncio.timeout(60):
        async with child.exchange([1, 99, 2]) as next_answer:
            assert await next_answer() == "x"
            with pytest.raises(ChildAnswerTooLargeError) as caught:
                await next_answer()
            assert caught.value.size == 101
            assert await next_answer() == "xx"
        pid = child.pid
        assert pid is not None
        async with child.exchange([3]) as next_answer:
            assert (await next_answer(), child.pid) == ("xxx", pid)
        with pytest.raises(ChildOutOfMemoryError):
            async with child.exchange([2**30]) as next_answer:
                await next_answer()
        assert child.pid is None
        await child.aclose()
        with pytest.raises(ChildClosedError):
            async with child.exchange([1]):
                pass
        assert child.pid is None


@pytest.mark.parametrize("is_asked_again", [True, False])
async def test_nothing_of_a_child_that_somebody_else_killed_stays_open(tmp_path: Path, is_asked_again: bool) -> None:
    (tmp_path / "child.py").write_text(LEAVES_SOMEBODY)
    bounds = ChildBounds(memory_bytes=512 * 2**20, answer_seconds=60, answer_bytes=100)
    child = KeptChild([str(tmp_path / "child.py")], bounds, ["x", str(tmp_path)])
    try:
        async with asyncio.timeout(60):
            async with child.exchange([1]) as next_answer:
                assert await next_answer() == "x"
            process = child._process
            assert process is not None
            os.kill(process.pid, signal.SIGKILL)
            while process.returncode is None:  # noqa: ASYNC110 - `wait` would wait for the pipe, too
                await asyncio.sleep(0.01)
            transport = process._transport  # type: ignore[attr-defined]
            assert not transport.is_closing()
            if is_asked_again:
                async with child.exchange([2]) as next_answer:  # another child answers
                    assert await next_answer() == "xx"
            else:
                await child.aclose()
            assert transport.is_closing()
    finally:
        await child.aclose()
        for left in os.listdir(tmp_path):
            if left.startswith("left-"):
                os.kill(int(left[5:]), signal.SIGKILL)


@both_loops
async def test_a_child_that_is_being_started_when_its_owner_closes_it_is_ended_before_that_returns(
    tmp_path: Path,
) -> None:
    (tmp_path / "child.py").write_text(PROGRAM)
    bounds = ChildBounds(memory_bytes=512 * 2**20, answer_seconds=60, answer_bytes=100)

    async def ask(child: KeptChild) -> None:
        async with child.exchange([1]) as next_answer:
            await next_answer()

    for turns in range(6):
        child = KeptChild([str(tmp_path / "child.py")], bounds, ["x"])
        asking = asyncio.create_task(ask(child))
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait_for(child.aclose(), 60)
        assert asking.done() or turns == 0
        await asyncio.wait({asking})
        assert children_running(tmp_path) == []


def children_running(folder: Path) -> list[str]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(folder / "child.py") in (line := each.read_text()):
                found.append(line)
    return found
