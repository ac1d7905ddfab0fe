"""A rolling restart of what is shipped, under load: nobody notices."""

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import self_signed
from tests.deploy.rolling import Load, clients, stack
from tests.nats_server import NatsServer, running_nats

# aiohttp's sessions do not wait for the end of TLS, and a test's event loop may end before it has come.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What a test left to the garbage collector is its own, and warns under its filter."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with running_nats(tmp_path_factory.mktemp("nats")) as server:
        yield server


async def test_a_rolling_restart_behind_nginx_fails_no_call_of_our_clients(nats: NatsServer, tmp_path: Path) -> None:
    certificate = self_signed(tmp_path, "127.0.0.1")
    loads = [Load(0.01), Load(1.0)]
    with stack(tmp_path, nats.url, "rolling", certificate) as servers:
        async with clients(servers.url, certificate, ["lab", "plant", "desk"]) as agents:
            stopped = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                for agent in agents:
                    for load in loads:
                        tasks.create_task(load.call(agent, stopped))
                for number in range(2):
                    took = await asyncio.to_thread(servers.restart, number)
                    assert took < 20, "clients have moved long before the drain of 30 s ends"
                stopped.set()
    assert not any(load.failed for load in loads), loads
    assert all(load.done for load in loads)
