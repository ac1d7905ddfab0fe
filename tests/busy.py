"""Processes that keep a machine busy while something else runs, and never for longer than they are told.

    python -m tests.busy SECONDS

A busy process ends with the one that started it, whatever happens to that.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["busy_processes"]


@contextmanager
def busy_processes(count: int = 2, seconds: float = 300) -> Iterator[list[int]]:
    """So many processes that compute for nothing, until the block ends; yields their pids."""
    command = [sys.executable, str(Path(__file__)), str(seconds)]
    processes = [subprocess.Popen(command, stdin=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _compute(seconds: float) -> None:
    parent, end = os.getppid(), time.monotonic() + seconds
    while time.monotonic() < end and os.getppid() == parent:
        sum(range(100_000))


if __name__ == "__main__":
    _compute(float(sys.argv[1]))
