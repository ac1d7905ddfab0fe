import asyncio
import signal
import sys

import pytest

from a2c_smcp.utils.children import kill_group, start_group
from a2c_smcp.utils.system import IS_UNIX

#: Starts a process that leaves the group and keeps the pipe, says its id, and stays.
_LEAVES_SOMEBODY = """
import subprocess, sys, time
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
print(left.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not IS_UNIX, reason="groups of processes")
async def test_a_pipe_that_another_process_holds_does_not_hold_up_the_end() -> None:
    import os

    child = await start_group(sys.executable, "-c", _LEAVES_SOMEBODY, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    left = int(await child.stdout.readline())
    try:
        assert callable(child._transport.close)  # type: ignore[attr-defined]  # what we use beyond the documentation
        await asyncio.wait_for(kill_group(child), 4)
        assert child.returncode == -signal.SIGKILL
    finally:
        os.kill(left, signal.SIGKILL)


@pytest.mark.skipif(not IS_UNIX, reason="groups of processes")
async def test_a_cancellation_does_not_stop_the_end_and_nothing_stays_open() -> None:
    """Nobody has read what it printed: then asyncio does not close the pipe by itself."""
    child = await start_group(sys.executable, "-c", "while True: print('x' * 100)", stdout=asyncio.subprocess.PIPE)
    transport = child._transport  # type: ignore[attr-defined]
    assert child.stdout is not None
    async with asyncio.timeout(60):
        await child.stdout.readline()
        ending = asyncio.create_task(kill_group(child))
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
    assert (child.returncode, transport.is_closing()) == (-signal.SIGKILL, True)


@pytest.mark.skipif(not IS_UNIX, reason="groups of processes")
async def test_an_end_that_is_cancelled_again_and_again_leaves_nothing_open() -> None:
    child = await start_group(sys.executable, "-c", "while True: print('x' * 100)", stdout=asyncio.subprocess.PIPE)
    transport = child._transport  # type: ignore[attr-defined]
    ending = asyncio.create_task(kill_group(child))
    while not ending.done():
        await asyncio.sleep(0)
        ending.cancel()
    assert ending.cancelled() and transport.is_closing()
    async with asyncio.timeout(60):
        await child.wait()
