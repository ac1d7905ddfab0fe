"""`a2c demo`: no prompt, exit code 0, nothing left behind."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.busy import busy_processes

A2C = str(Path(sys.executable).parent / "a2c")


def descendants(pid: int) -> set[int]:
    """Every process below this one, read from /proc."""
    children: dict[int, set[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        children.setdefault(int(fields[1]), set()).add(int(stat.parent.name))
    found: set[int] = set()
    todo = [pid]
    while todo:
        below = children.get(todo.pop(), set()) - found
        found |= below
        todo += below
    return found


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


def test_the_tour_ends_well_and_shows_every_station_also_on_a_busy_machine() -> None:
    with busy_processes():
        result = subprocess.run(
            [A2C, "demo"], capture_output=True, text=True, timeout=100, check=False, stdin=subprocess.DEVNULL
        )
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(re.findall(r"^\d\. ", result.stdout, re.MULTILINE)) == 7
    for word in (
        "Hello, world!",
        "notify:update_desktop",
        "年度报告",
        "Q4",
        "basil",
        "mushrooms",
        "cancelled",
        "4003",
        "Hello, again!",
    ):
        assert word in result.stdout


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are counted in /proc")
def test_keep_says_how_to_join_and_ctrl_c_leaves_nothing() -> None:
    tour = subprocess.Popen([A2C, "demo", "--keep"], stdout=subprocess.PIPE, text=True, start_new_session=True)
    watchdog = threading.Timer(90, tour.kill)
    watchdog.start()
    try:
        assert tour.stdout is not None
        line = next(line for line in tour.stdout if "agent tools" in line)
        words = line.split()
        env = {**os.environ, **dict(word.split("=", 1) for word in words if word.startswith("A2C_"))}
        listing = subprocess.run(
            [A2C, "agent", "call", "laptop", "greet", "text=you"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=env,
        )
        assert "Hello, you!" in listing.stdout, listing.stderr
        started = descendants(tour.pid)
        assert len(started) >= 3
        tour.send_signal(signal.SIGINT)
        tour.stdout.read()
        assert tour.wait(30) == 0
    finally:
        watchdog.cancel()
        if tour.poll() is None:
            tour.kill()
        tour.communicate()
    assert alive(started) == set()
