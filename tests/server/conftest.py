"""Both servers, started once; every test has offices of its own."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from a2c_smcp.server import Limits, OpenAuthentication, SyncOpenAuthentication
from tests.server.harness import AsyncPeer, Peer, Running, SyncPeer, async_server, sync_server

_names = itertools.count()
# python-engineio's blocking client may end before its last POST is sent; then only a ping tells that it has gone.
PINGS: dict[str, Any] = {"ping_interval": 3, "ping_timeout": 4}
LIMITS = Limits(relay_timeout=2.0, tool_call_grace=1.0, max_message=1_000_000)

MakePeer = Callable[..., Awaitable[Peer]]


@pytest.fixture(scope="session")
def open_async_server() -> Iterator[Running]:
    with async_server(OpenAuthentication(), LIMITS, **PINGS) as running:
        yield running


@pytest.fixture(scope="session")
def open_sync_server() -> Iterator[Running]:
    with sync_server(SyncOpenAuthentication(), LIMITS, **PINGS) as running:
        yield running


@pytest.fixture(params=["async-server", "sync-server"])
def server(request: pytest.FixtureRequest) -> Running:
    kind = request.param.split("-")[0]
    running: Running = request.getfixturevalue(f"open_{kind}_server")
    return running


@pytest.fixture
def office() -> str:
    return f"office-{next(_names)}"


@pytest.fixture
async def make_peer(request: pytest.FixtureRequest) -> AsyncIterator[MakePeer]:
    """Connects peers of a colour and a transport, and disconnects them all in the end."""
    peers: list[Peer] = []

    async def make(
        server: Running, kind: str = "async", transport: str = "websocket", *, setup: Any = None, **options: Any
    ) -> Peer:
        peer: Peer = AsyncPeer() if kind == "async" else SyncPeer()
        if setup:
            setup(peer)
        peers.append(peer)
        await peer.connect(server.url, transports=[transport], **options)
        return peer

    yield make
    for peer in peers:
        await peer.disconnect()
