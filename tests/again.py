"""`python -m tests.again`: pytest, and what failed in it once more, alone.

The suite runs six workers on as few as two cores. A test that fails there and passes alone takes something for granted
that a busy machine does not grant. Such a test is listed: it is a defect with a cause, of the test or of the code, and
`make test-hard` finds it again. But it says nothing of the change that is being tested.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["FAILED_FILE", "main"]

#: The variable with the file that `tests/conftest.py` writes the names of failed tests to.
FAILED_FILE = "A2C_FAILED_TESTS_FILE"
#: With more of them something is wrong that is no accident.
_MOST = 5


def main(arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "failed.json"
        status = _pytest(*arguments, **{FAILED_FILE: str(file)})
        failed: list[str] = json.loads(file.read_text()) if file.exists() else []
    if status != 1 or not 0 < len(failed) <= _MOST:
        return status
    print(f"\n{len(failed)} failed. Once more, alone:", flush=True)
    status = _pytest("-n", "0", *failed)
    if status == 0:
        print("passed only alone, and to be looked at (make test-hard TESTS=…):", *failed, sep="\n  ")
    return status


def _pytest(*arguments: str, **variables: str) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, env={**os.environ, **variables}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
