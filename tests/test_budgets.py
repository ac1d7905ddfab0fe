"""What can be counted is within `budgets.toml`. A change that needs more raises a number there, and says for what."""

import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent
_BUDGETS = tomllib.loads((_ROOT / "budgets.toml").read_text("utf-8"))


@pytest.mark.skipif(not hasattr(signal, "SIGUSR2"), reason="the other roles are told by a signal when to count")
@pytest.mark.timeout(300)  # three processes start, and a signal goes to and fro 24 times
def test_a_call_passes_no_more_than_its_budget(tmp_path: Path) -> None:
    figures = tmp_path / "passed.json"
    # In a process of its own: other tests leave their hooks in this one.
    command = [sys.executable, "-m", "tests.passed", "--json", str(figures)]
    run = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads(figures.read_text())
    over = {name: f"{found[name]}, not {most}" for name, most in _BUDGETS["call"].items() if found[name] > most}
    assert not over, f"`python -m tests.passed` shows what a call passes: {over}"
