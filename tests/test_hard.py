"""`make test-hard`: what failed even once is listed, whatever the order; and its busy processes end."""

import subprocess
import sys
from pathlib import Path

from tests.busy import busy_processes
from tests.hard import failed_tests

ROOT = Path(__file__).parent.parent

#: One fails when it is not the first to run, one always, one never.
TESTS = """
import pytest

ran = []

def test_first():
    ran.append(1)

def test_alone():
    assert not ran
    ran.append(1)

def test_broken():
    assert False

@pytest.fixture
def odd():
    yield
    raise RuntimeError("too late")

def test_odd(odd):
    pass
"""

#: The suite's own option, for tests that are not in its folder: what a killed run leaves there would be collected.
ORDER = "from tests.conftest import pytest_addoption, pytest_collection_modifyitems\n"


def hard(tests: Path, runs: int) -> subprocess.CompletedProcess[str]:
    options = ["--runs", str(runs), "--busy", "1", "--workers", "0", "--seed", "1"]
    command = [sys.executable, "-m", "tests.hard", *options, str(tests)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)


def test_what_fails_is_listed_with_its_order_and_makes_the_exit_status(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(ORDER)
    file = tmp_path / "test_some.py"
    file.write_text(TESTS)
    done = hard(file, 2)
    assert done.returncode == 1, done.stdout + done.stderr
    listed = done.stdout.partition("Failed in 2 runs:")[2]
    assert "test_broken  --order 1, 2" in listed
    assert "test_odd  --order 1, 2" in listed
    assert "test_first" not in listed
    file.write_text("def test_fine():\n    pass\n")
    done = hard(file, 1)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Nothing failed in 1 runs.")
    file.write_text("import nothing_that_exists\n")
    assert "(pytest ended with" in hard(file, 1).stdout


def test_a_report_names_what_failed_and_what_broke_around_it() -> None:
    report = """<testsuites><testsuite>
        <testcase classname="tests.a" name="test_ok"/>
        <testcase classname="tests.a" name="test_skipped"><skipped/></testcase>
        <testcase classname="tests.a" name="test_bad"><failure/></testcase>
        <testcase classname="tests.b" name="test_torn"><error/></testcase>
    </testsuite></testsuites>"""
    assert failed_tests(report) == ["tests.a::test_bad", "tests.b::test_torn"]


def test_busy_processes_end_with_the_block_with_their_parent_and_in_time() -> None:
    with busy_processes(2) as pids:
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    alone = subprocess.run([sys.executable, str(ROOT / "tests" / "busy.py"), "0.1"], timeout=60)
    assert alone.returncode == 0
