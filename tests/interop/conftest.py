"""The existing implementation, in its own virtual environment. Without it these tests fail; they never skip."""

from pathlib import Path

import pytest

_PYTHON = Path(__file__).parents[2] / ".venv-interop" / "bin" / "python"


@pytest.fixture(scope="session")
def interop_python() -> str:
    if not _PYTHON.exists():
        pytest.fail("the existing implementation is missing: run `make test`, which sets up .venv-interop")
    return str(_PYTHON)
