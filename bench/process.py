"""Contestants as processes: start one, read what it costs, stop it."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
INTEROP = ROOT / ".venv-interop" / "bin" / "python"
PEERS = ROOT / "tests" / "interop" / "peers"
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Server:
    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """User and system time of the process so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE


COMMANDS = {
    "ours": [str(Path(sys.executable).parent / "a2c"), "server", "--port", "0", "--log-level", "error"],
    "existing": [str(INTEROP), "-I", str(PEERS / "server.py"), "async"],
}


@contextmanager
def server(contestant: str) -> Iterator[Server]:
    """A server of the contestant, on a port the system picks, for the length of the block."""
    if contestant == "existing" and not INTEROP.exists():
        raise SystemExit("the existing implementation is missing: run `make bench`, which sets up .venv-interop")
    process = subprocess.Popen(
        COMMANDS[contestant], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if match := re.search(r"(http://127\.0\.0\.1:\d+)", line):
                break
        else:
            raise SystemExit(f"{contestant}: the server did not start")
        watchdog.cancel()
        # Nobody reads on: what it still says must not fill the pipe.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield Server(match[1], process.pid)
    finally:
        watchdog.cancel()
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
