"""One NATS server for all tests here; every test has a prefix, and so a bucket, of its own."""

import itertools
import os
from collections.abc import Iterator

import pytest

from tests.nats_server import NatsServer, running_nats

_prefixes = itertools.count()


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A NATS server that no test may stop."""
    with running_nats(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture
def prefix() -> str:
    """What the names of this test's bucket and subjects begin with."""
    return f"t{os.getpid()}-{next(_prefixes)}"
