"""A forked command is like one that is started by its name, and ends when it takes too long."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.forked import A2C, Commands, shared


@pytest.fixture
def forked() -> Commands:
    return shared()


@pytest.mark.parametrize(
    "words", [["--version"], ["agent", "--help"], ["agent", "call", "pc"], ["computer", "validate", "no-such-file"]]
)
def test_it_says_and_ends_like_one_that_is_started_by_its_name(forked: Commands, words: list[str]) -> None:
    env = {**os.environ, "COLUMNS": "100"}
    named = subprocess.run([A2C, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    done = forked.run(words, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (named.returncode, named.stdout, named.stderr)


def test_it_is_killed_when_it_takes_too_long(forked: Commands, tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        forked.run(["server", "--port", "0", "--api-key", str(tmp_path)], env=os.environ, timeout=2)
    assert forked.run(["--version"], env=os.environ).returncode == 0
