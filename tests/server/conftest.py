"""The servers, started once, the two on NATS once a file; every test has offices of its own."""

import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from a2c_smcp.server import Limits, OpenAuthentication, SyncOpenAuthentication
from tests.nats_server import NatsServer, running_nats
from tests.server.cluster.processes import patience
from tests.server.harness import (
    AsyncPeer,
    Peer,
    Running,
    SyncPeer,
    Two,
    async_server,
    mounted_server,
    sync_server,
    two_servers,
)

_names = itertools.count()
# python-engineio's blocking client may end before its last POST is sent; then only a ping tells that it has gone.
# On a busy machine either end may stand still for seconds; nobody is to be disconnected for that.
PINGS: dict[str, Any] = {"ping_interval": 3, "ping_timeout": 10}
LIMITS = Limits(relay_timeout=2.0, tool_call_grace=1.0, max_message=1_000_000)
# What is asked of the shared servers is to be answered, however slowly.
PATIENT = replace(LIMITS, relay_timeout=25.0, tool_call_grace=20.0)

MakePeer = Callable[..., Awaitable[Peer]]


@pytest.fixture(scope="session")
def open_async_server() -> Iterator[Running]:
    with async_server(OpenAuthentication(), PATIENT, **PINGS) as running:
        yield running


@pytest.fixture(scope="session")
def open_mounted_server() -> Iterator[Running]:
    with mounted_server(OpenAuthentication(), PATIENT, **PINGS) as running:
        yield running


@pytest.fixture(scope="session")
def open_sync_server() -> Iterator[Running]:
    with sync_server(SyncOpenAuthentication(), PATIENT, **PINGS) as running:
        yield running


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A NATS server that no test may stop."""
    with running_nats(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture
def prefix() -> str:
    """What the names of this test's bucket and subjects begin with."""
    return f"t{os.getpid()}-{next(_names)}"


@pytest.fixture(scope="module")  # and not longer: the patience is not for those that have NATS fail
def open_two_servers(nats: NatsServer) -> Iterator[Two]:
    prefix = f"scenarios{os.getpid()}-{next(_names)}"
    with patience(), two_servers(PATIENT, nats.url, prefix, **PINGS) as running:
        yield running


_SERVERS = {
    "async-server": "open_async_server",
    "sync-server": "open_sync_server",
    "mounted-server": "open_mounted_server",
    "two-processes": "open_two_servers",
}


@pytest.fixture(params=_SERVERS)
def server(request: pytest.FixtureRequest) -> Running:
    running: Running = request.getfixturevalue(_SERVERS[request.param])
    return running


@pytest.fixture(params=["async-server", "two-processes"])
def own_server(request: pytest.FixtureRequest) -> Running:
    """A server with connections of ours. What a mounted namespace does not guard is tested on these."""
    running: Running = request.getfixturevalue(_SERVERS[request.param])
    return running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What crosses between two processes does not depend on the client's colour: one is enough there."""
    items[:] = [item for item in items if not _is_needless(item)]


def _is_needless(item: pytest.Item) -> bool:
    params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    if params.get("server") == "mounted-server":
        return params.get("kind") == "sync" or params.get("transport") == "polling"
    return params.get("server") == "two-processes" and params.get("kind") == "sync"


@pytest.fixture
def office() -> str:
    return f"office-{next(_names)}"


@pytest.fixture
async def make_peer(request: pytest.FixtureRequest) -> AsyncIterator[MakePeer]:
    """Connects peers of a colour and a transport, and disconnects them all in the end."""
    peers: list[Peer] = []

    async def make(
        server: Running,
        kind: str = "async",
        transport: str = "websocket",
        *,
        url: str | None = None,
        setup: Any = None,
        **options: Any,
    ) -> Peer:
        peer: Peer = AsyncPeer() if kind == "async" else SyncPeer()
        if setup:
            setup(peer)
        peers.append(peer)
        peer.server = server  # type: ignore[attr-defined]
        await peer.connect(url or server.url_for(len(peers) - 1), transports=[transport], **options)
        return peer

    yield make
    for peer in peers:
        await peer.disconnect()
