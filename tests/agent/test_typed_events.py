"""The names and the payloads of events are typed, also for the type checker of many editors."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_overloads

import pytest

from a2c_smcp.agent.typed_events import TypedEvents
from a2c_smcp.agent.types import HAPPENINGS

ROOT = Path(__file__).parents[2]
PYRIGHT = ROOT / ".node-pyright" / "node_modules" / "pyright" / "index.js"


def test_every_event_has_a_type() -> None:
    typed = [get_args(each.__annotations__["name"]) for each in get_overloads(TypedEvents.on)]
    names = {name.removeprefix("notify:") for names in typed for name in names}
    assert names == set(HAPPENINGS)


def test_pyright_knows_the_payloads() -> None:
    if not PYRIGHT.exists() or shutil.which("node") is None:
        pytest.skip("pyright is not installed: install Node.js with npm, and type make test again")
    command = ["node", str(PYRIGHT), "--pythonpath", sys.executable, str(Path(__file__).with_name("typed_events.py"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
