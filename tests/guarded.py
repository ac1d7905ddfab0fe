"""Runs a command, and leaves no process of it behind, whatever ends it.

    python -m tests.guarded COMMAND …

The workers of pytest do not come to the end of their fixtures when somebody types Ctrl-C, and servers under test are in
sessions of their own, where Ctrl-C does not reach them. Here everything that loses its parent becomes a child of this
process, which kills what is left. Linux only; elsewhere this runs the command and nothing more. Needs the standard
library only.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

__all__ = ["main"]

_PR_SET_CHILD_SUBREAPER = 36
#: Seconds that a command has after Ctrl-C to end by itself: pytest writes its summary.
PATIENCE = 20.0


def main(command: list[str]) -> int:
    """Run the command, and return its exit status; 130 after Ctrl-C."""
    can_guard = sys.platform == "linux" and not ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    stopped: list[int] = []
    children: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.append(number)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        # A terminal sends Ctrl-C to the command, too; whoever ends this process alone does not.
        for pid in children if number != signal.SIGINT else ():
            os.kill(pid, signal.SIGTERM)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    signal.signal(signal.SIGALRM, lambda number, frame: _kill(_descendants(os.getpid())))
    child = subprocess.Popen(command)
    children.append(child.pid)
    # Whatever ends is reaped at once: a test that looks whether a process has gone would find its remains.
    while (ended := os.waitpid(-1, 0))[0] != child.pid:
        pass
    if can_guard:
        _kill_the_rest()
    status = child.returncode = os.waitstatus_to_exitcode(ended[1])
    return 130 if stopped else status if status >= 0 else 128 - status


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _kill_the_rest() -> None:
    while below := _descendants(os.getpid()):
        _kill(below)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def _descendants(pid: int) -> set[int]:
    children: dict[int, set[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), set()).add(int(stat.parent.name))
    found, todo = set[int](), [pid]
    while todo:
        below = children.get(todo.pop(), set()) - found
        found |= below
        todo += below
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
