"""The offices and the scripted computers of the agents' tests."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from a2c_smcp.server import OpenAuthentication
from tests.agent.conftest import make_agent, make_computer, office, server, stack
from tests.server.conftest import LIMITS
from tests.server.harness import Running, async_server

__all__ = ["PATIENT", "make_agent", "make_computer", "office", "server", "stack"]

#: What is asked here has to be answered, however late a busy machine lets a computer do it.
PATIENT = replace(LIMITS, relay_timeout=15.0)


@pytest.fixture(scope="session")
def agents_async_server() -> Iterator[Running]:
    with async_server(OpenAuthentication(), PATIENT) as running:
        yield running
