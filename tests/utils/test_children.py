import asyncio
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
    import signal

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
async def test_the_exit_status_is_not_lost_when_the_process_ends_before_this_one_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import os
    import signal
    import time

    kill = os.killpg

    def slowly(group: int, number: int) -> None:
        kill(group, number)
        time.sleep(0.3)  # as on a busy machine: this process gets its next turn when the other one has ended

    monkeypatch.setattr("a2c_smcp.utils.children.os.killpg", slowly)
    child = await start_group(sys.executable, "-c", "import time; time.sleep(60)", stdout=asyncio.subprocess.PIPE)
    await asyncio.wait_for(kill_group(child), 30)
    assert child.returncode == -signal.SIGKILL
