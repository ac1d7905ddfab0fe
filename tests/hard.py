"""The tests, several times, each time in another order and beside busy processes; what failed even once is listed.

    python -m tests.hard [--runs N] [--busy N] [--workers N] [--seed SEED] [TEST …]

A failure that comes with an order is seen again with `pytest -n 4 --dist loadfile --order SEED`. Exits with 1 when
anything failed.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.busy import busy_processes

__all__ = ["failed_tests", "main"]

#: How long one run may take, and its busy processes with it, in seconds.
_LONGEST_RUN = 3600
#: What pytest's exit status says when all tests passed, and when some failed.
_PASSED, _FAILED = 0, 1


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hard", description="Run the tests under bad conditions.")
    parser.add_argument("tests", nargs="*", default=["tests"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--busy", type=int, default=2, help="how many processes compute for nothing")
    parser.add_argument("--workers", type=int, default=4, help="how many processes run tests; 0 for this one alone")
    parser.add_argument("--seed", type=int, default=None, help="of the first run; the others follow it")
    options = parser.parse_args(arguments)
    first = random.randrange(100_000) if options.seed is None else options.seed
    failures: dict[str, list[int]] = {}
    for seed in range(first, first + options.runs):
        print(f"\n=== run {seed - first + 1} of {options.runs}, --order {seed}, beside {options.busy} busy processes")
        started = time.monotonic()
        failed = _run(options.tests, seed, options.busy, options.workers)
        print(f"=== {len(failed)} failed in {time.monotonic() - started:.0f} s", flush=True)
        for name in failed:
            failures.setdefault(name, []).append(seed)
    print(f"\nFailed in {options.runs} runs:" if failures else f"\nNothing failed in {options.runs} runs.")
    for name, seeds in sorted(failures.items()):
        print(f"  {name}  --order {', '.join(map(str, seeds))}")
    return 1 if failures else 0


def _run(tests: list[str], seed: int, busy: int, workers: int) -> list[str]:
    """What failed; a run that broke off counts as a failure of its own."""
    with tempfile.TemporaryDirectory(prefix="a2c-hard-") as folder, busy_processes(busy, _LONGEST_RUN):
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--dist", "loadfile", "--order", str(seed)]
        try:
            # Some proofs are longer in a hard run.
            env = {**os.environ, "A2C_HARD": "1"}
            status = subprocess.run(
                [*command, f"--junit-xml={report}", *tests], timeout=_LONGEST_RUN, env=env
            ).returncode
        except subprocess.TimeoutExpired:
            return [f"(the run took more than {_LONGEST_RUN} s)"]
        failed = failed_tests(report.read_text()) if report.exists() else []
    if status == _PASSED or (status == _FAILED and failed):
        return failed
    return [*failed, f"(pytest ended with {status})"]


def failed_tests(report: str) -> list[str]:
    """The tests that failed, or broke before or after they ran, by a JUnit report."""
    return [
        f"{case.get('classname')}::{case.get('name')}"
        for case in ET.fromstring(report).iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
