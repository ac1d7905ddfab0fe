"""What fails in the suite and passes alone is listed, and what fails alone, or with many others, is a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: Fails in its first run, and always if it is told so.
_SUITE = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(int(os.environ["MANY"])))
def test_shaky(number):
    mark = pathlib.Path(os.environ["MARKS"], f"{number}")
    seen = mark.exists()
    mark.touch()
    assert seen and not os.environ.get("ALWAYS")
"""


@pytest.mark.parametrize(
    ("variables", "status", "said"),
    [
        ({"MANY": "2"}, 0, "passed only alone"),
        ({"MANY": "1", "ALWAYS": "1"}, 1, "Once more"),
        ({"MANY": "6"}, 1, "6 failed"),
    ],
    ids=["shaky", "broken", "many"],
)
def test_what_passes_alone_is_listed(tmp_path: Path, variables: dict[str, str], status: int, said: str) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text("utf-8"))
    (tmp_path / "test_made.py").write_text(_SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "tests.again", "-q", "-n", "2", "test_made.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MARKS": str(tmp_path), **variables},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout
