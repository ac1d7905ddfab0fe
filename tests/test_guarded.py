"""`tests/guarded.py`: Ctrl-C of `make test` leaves no process."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is guarded")
#: A test that starts two processes which ignore Ctrl-C, in sessions of their own. One has lost its parent.
TEST = """
import subprocess, sys, time
SERVER = "import signal, time; signal.signal(2, signal.SIG_IGN); signal.signal(15, signal.SIG_IGN); time.sleep(100)"
STARTER = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {SERVER!r}]).pid, flush=True)"

def test_that_waits():
    starter = subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, start_new_session=True)
    orphan = int(starter.stdout.readline())
    own = subprocess.Popen([sys.executable, "-c", SERVER], start_new_session=True)
    with open(%r, "w") as file:
        print(orphan, own.pid, "all", file=file)
    time.sleep(100)
"""


def test_ctrl_c_leaves_nothing_of_a_test_run_and_its_status_says_so(tmp_path: Path) -> None:
    said = tmp_path / "said"
    said.touch()
    (tmp_path / "test_it.py").write_text(TEST % str(said))
    pytest_run = [sys.executable, "-m", "pytest", "-n", "2", "-q", "-c", os.devnull, str(tmp_path)]
    run = subprocess.Popen([sys.executable, "-m", "tests.guarded", *pytest_run], cwd=ROOT, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while "all" not in said.read_text():
            assert run.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        pids = said.read_text().split()[:2]
        os.killpg(run.pid, signal.SIGINT)
        assert run.wait(60) == 130
        assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    finally:
        run.terminate()
        run.wait(60)


def test_the_status_of_the_command_is_passed_on() -> None:
    for code, status in (("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137)):
        command = [sys.executable, "-m", "tests.guarded", sys.executable, "-c", code]
        assert subprocess.run(command, cwd=ROOT, timeout=60).returncode == status


def test_make_test_is_guarded_in_each_of_its_steps() -> None:
    recipe = re.search(r"^test:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None and all("$(GUARDED)" in line for line in recipe[1].splitlines())
