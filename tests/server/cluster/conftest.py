"""Fixtures for two processes that know each other."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.nats_server import NatsServer
from tests.server.cluster.processes import patience
from tests.server.cluster.sides import ASKED, ASKER, Side


@pytest.fixture
def patient() -> Iterator[None]:
    with patience():
        yield


@pytest.fixture
async def asked(nats: NatsServer, prefix: str) -> AsyncIterator[Side]:
    async with Side(ASKED, nats.url, prefix).open() as side:
        yield side


@pytest.fixture
async def asker(nats: NatsServer, prefix: str, asked: Side) -> AsyncIterator[Side]:
    async with Side(ASKER, nats.url, prefix).open() as side:
        yield side
