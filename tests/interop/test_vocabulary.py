"""Both implementations call the same things by the same names."""

import json
import subprocess

import pytest

from a2c_smcp import smcp

pytestmark = pytest.mark.interop

_PRINT_EVENTS = """
import json
from a2c_smcp import smcp
names = [n for n in dir(smcp) if n.endswith(("_EVENT", "_NOTIFICATION", "_NAMESPACE"))]
print(json.dumps({n: getattr(smcp, n) for n in names}))
"""


def test_every_event_it_knows_has_the_same_name_here(interop_python: str) -> None:
    result = subprocess.run(
        [interop_python, "-I", "-c", _PRINT_EVENTS], capture_output=True, text=True, timeout=60, check=True
    )
    theirs = json.loads(result.stdout)
    assert len(theirs) > 10
    assert {name: getattr(smcp, name, None) for name in theirs} == theirs
