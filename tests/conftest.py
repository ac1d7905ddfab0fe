"""What every test stands on: loopback only, one event loop kind, deterministic Hypothesis."""

import sys
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")

_LOOPBACK = ("127.", "::1", "localhost", "::ffff:127.")


def _loopback_only(event: str, args: tuple[Any, ...]) -> None:
    """No test talks to anything but loopback: a connection elsewhere fails at its source, with the address."""
    if event == "socket.connect" and isinstance(args[1], tuple) and not str(args[1][0]).startswith(_LOOPBACK):
        raise PermissionError(f"a test tried to connect to {args[1]}")


sys.addaudithook(_loopback_only)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
