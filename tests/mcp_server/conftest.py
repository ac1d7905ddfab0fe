"""Offices for the kit's servers."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from a2c_smcp.server import OpenAuthentication
from tests.server.conftest import LIMITS
from tests.server.harness import Running, async_server


@pytest.fixture(scope="session")
def hub() -> Iterator[Running]:
    """Not that of the computers' tests: no cable is pulled here, and its quick pings end what stands still for 3 s."""
    with async_server(OpenAuthentication(), replace(LIMITS, relay_timeout=20.0)) as running:
        yield running
