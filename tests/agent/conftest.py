"""Both servers, started once, and both agents; every test has an office and a computer of its own."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from a2c_smcp.agent import Deadlines, LinkOptions
from a2c_smcp.server import OpenAuthentication, SyncOpenAuthentication
from tests.agent.harness import Agent, Asyncio, Blocking, FakeComputer
from tests.forked import Commands, shared
from tests.server import conftest as servers
from tests.server.conftest import office
from tests.server.harness import Running, async_server, sync_server

__all__ = ["LIMITS", "office"]

#: A computer here shares its thread with a test: on a busy machine it does not always answer within two seconds.
LIMITS = replace(servers.LIMITS, relay_timeout=60.0)
#: For an answer, too. Of a connection half of it is for the websocket, after which it polls.
CONNECT_SECONDS = 60.0

MakeAgent = Callable[..., Awaitable[Agent]]
MakeComputer = Callable[..., Awaitable[FakeComputer]]


@pytest.fixture(scope="session")
def forked() -> Commands:
    return shared()


@pytest.fixture(scope="session")
def agents_async_server() -> Iterator[Running]:
    with async_server(OpenAuthentication(), LIMITS) as running:
        yield running


@pytest.fixture(scope="session")
def agents_sync_server() -> Iterator[Running]:
    with sync_server(SyncOpenAuthentication(), LIMITS) as running:
        yield running


@pytest.fixture
def server(agents_async_server: Running) -> Running:
    return agents_async_server


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def make_agent(stack: AsyncExitStack, server: Running, office: str) -> MakeAgent:
    async def make(kind: str = "async", *, join: bool = True, **options: Any) -> Agent:
        link = LinkOptions(
            server.url,
            backoff=(0.05, 0.2),
            rejoin_every=0.05,
            max_message=LIMITS.max_message,
            connect_timeout=CONNECT_SECONDS,
        )
        face: Any = Asyncio if kind == "async" else Blocking
        agent: Agent = await stack.enter_async_context(
            face(link, **{"name": "ada", "deadlines": Deadlines(reply=CONNECT_SECONDS), **options})
        )
        if join:
            await agent.join_office(office)
        return agent

    return make


@pytest.fixture
def make_computer(stack: AsyncExitStack, server: Running, office: str) -> MakeComputer:
    async def make(name: str = "laptop", setup: Callable[[FakeComputer], None] | None = None) -> FakeComputer:
        computer = FakeComputer(name)
        if setup:
            setup(computer)
        stack.push_async_callback(computer.peer.disconnect)
        stack.callback(computer.release.set)
        await computer.join(server.url, office)
        return computer

    return make
