"""Processes that a test starts, talks to and ends by their id; what they say is kept in a file."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["A2C", "DEADLINE", "Started", "started"]

A2C = str(Path(sys.executable).parent / "a2c")
#: A process on a busy machine may need this long for what usually takes a second.
DEADLINE = 60.0


class Started:
    """A process whose output, stdout and stderr alike, is in `log`."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT)
        self.pid = self._popen.pid

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def says(self, pattern: str, seconds: float = DEADLINE, *, after: int = 0) -> re.Match[str]:
        """Wait until its output, from this character on, has the pattern."""
        deadline = time.monotonic() + seconds
        while True:
            ended = not self.alive
            text = self.log.read_text(errors="replace")
            if match := re.compile(pattern).search(text, after):
                return match
            if ended or time.monotonic() > deadline:
                what = f"ended with {self._popen.returncode}" if ended else f"did not within {seconds:g} s"
                raise AssertionError(f"waiting for it to say {pattern!r}: it {what}\n{text[-3000:]}")
            time.sleep(0.02)

    def tell(self, line: str) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(line.encode() + b"\n")
        self._popen.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        if self.alive:
            os.kill(self.pid, number)

    def ended(self, seconds: float = DEADLINE) -> int:
        """Wait for its end and return its status."""
        return self._popen.wait(seconds)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for one that does not take it."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self._popen.wait(15)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        if self._popen.stdin is not None:
            self._popen.stdin.close()


@contextmanager
def started(command: Sequence[str], log: Path) -> Iterator[Started]:
    process = Started(command, log)
    try:
        yield process
    finally:
        process.stop()
