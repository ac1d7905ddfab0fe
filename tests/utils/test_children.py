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
