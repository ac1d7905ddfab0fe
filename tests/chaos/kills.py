"""Kills a computer many times, and counts what is left of its MCP servers: `python -m tests.chaos.kills [COUNT]`.

Each run of the computer has a mild server and a stubborn one, with children, sessions of their own and daemons.
Another computer of the same name runs beside it all the time and must lose nothing. In every fifth round the guardian
and its keepers are killed, too: then the next start ends what is left.
"""

import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.computer.fakes.processes import having, is_alive, parent_of
from tests.computer.test_guardian import DEADLINE, Run, guardians_of, leaving, started_by, wait_for_end


def main(count: int) -> int:
    with tempfile.TemporaryDirectory(prefix="a2c-kills-") as folder:
        beside = Run(Path(folder, "beside"), "pc", leaving(Path(folder, "beside.pids")))
        try:
            others = started_by(Path(folder, "beside.pids"))
            seconds = [killed(Path(folder, "pc"), with_guardian=number % 5 == 4) for number in range(count)]
            last = Run(Path(folder, "pc"), "pc")
            wait_for_end(str(Path(folder, "pc.")))
            last.ends(signal.SIGTERM)
            lost = [kind for kind, pid in others.items() if not is_alive(pid)]
        finally:
            beside.ends(signal.SIGTERM)
        left = having(folder)
    alone = [each for number, each in enumerate(seconds) if number % 5 != 4]
    print(f"{count} kills, {len(left)} processes left, {len(lost)} lost by the computer beside it")
    print(f"gone after {statistics.median(alone):.2f} s, at most {max(alone):.2f} s")
    return 1 if left or lost else 0


def killed(folder: Path, *, with_guardian: bool) -> float:
    """Start the computer, kill it, and return after how many seconds nothing was left, if its guardian lived."""
    files = [folder.with_suffix(f".{name}") for name in ("mild", "stubborn")]
    for file in files:
        file.unlink(missing_ok=True)
    run = Run(folder, "pc", leaving(files[0], name="mild"), leaving(files[1], "stubborn", "scrub", name="stubborn"))
    servers = [started_by(file) for file in files]
    print(f"{'with' if with_guardian else 'without'} its guardian: {servers}", flush=True)
    victims = [run.process.pid]
    if with_guardian:
        os.kill(run.process.pid, signal.SIGSTOP)
        victims = [guardians_of(servers[0]["server"])["guardian"], *(parent_of(each["server"]) for each in servers)]
        victims.append(run.process.pid)
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    run.process.wait(DEADLINE)
    if with_guardian:
        os.kill(servers[1]["daemon"], signal.SIGKILL)  # it has no mark: nobody can know it
    else:
        wait_for_end(f"{folder}.")
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
