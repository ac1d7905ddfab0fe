"""Offices for commands that run as processes of their own."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from a2c_smcp.server import OpenAuthentication
from tests.server.conftest import LIMITS
from tests.server.harness import Running, async_server


@pytest.fixture(scope="session")
def hub() -> Iterator[Running]:
    """Nobody pulls a cable here, so pings may take their time: a process that has no turn for 3 s has not gone.
    A call that nobody confirms in time is answered by the computer, however late that comes, and not by the server.
    """
    with async_server(OpenAuthentication(), replace(LIMITS, relay_timeout=20.0, tool_call_grace=20.0)) as running:
        yield running
