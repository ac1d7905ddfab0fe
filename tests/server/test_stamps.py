"""Who asks, as the computer is told: both servers, and two processes; keys with names, without, and what changes."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from a2c_smcp.server import APIKeyAuthentication, SyncAPIKeyAuthentication
from a2c_smcp.server.auth import Key
from a2c_smcp.smcp import STAMP_FIELD
from tests.nats_server import NatsServer
from tests.server.cluster.processes import patience
from tests.server.conftest import PATIENT, PINGS, MakePeer
from tests.server.harness import Peer, Running, async_server, sync_server, two_servers
from tests.server.test_coming_back import come_back
from tests.server.test_scenarios import join, request_for

BOUND = Key(name="ci", key="bound-key", names=("planner", "planner-*"))
FREE = Key(name="desk", key="free-key")
STAR = Key(name="star", key="star-key", names=("*",))
KEYS = (BOUND, FREE, STAR)


@pytest.fixture(scope="module", params=["async", "sync", "two"])
def keyed(request: pytest.FixtureRequest, nats: NatsServer) -> Iterator[Running]:
    if request.param == "async":
        with async_server(APIKeyAuthentication(KEYS), PATIENT, **PINGS) as running:
            yield running
    elif request.param == "sync":
        with sync_server(SyncAPIKeyAuthentication(KEYS), PATIENT, **PINGS) as running:
            yield running
    else:
        ring = lambda: APIKeyAuthentication(KEYS)  # noqa: E731
        with patience(), two_servers(PATIENT, nats.url, "stamps", ring, **PINGS) as two:
            yield two


@dataclass
class Office:
    """An agent's and a computer's peers. With two processes each is at another one."""

    agent: Peer
    computer: Peer
    seen: list[Any] = field(default_factory=list)

    async def stamp(self, **more: Any) -> Any:
        """What the computer is told of the agent that asks it."""
        await self.agent.call("client:get_tools", request_for("client:get_tools", **more))
        return self.seen[-1].get(STAMP_FIELD)


@asynccontextmanager
async def in_office(
    keyed: Running, make_peer: MakePeer, office: str, key: str = "bound-key", name: str = "planner"
) -> AsyncIterator[Office]:
    seen: list[Any] = []

    def answer(data: Any) -> Any:
        seen.append(data)
        return {"tools": [], "req_id": "1"}

    agent = await make_peer(keyed, auth={"token": key})
    computer = await make_peer(
        keyed, auth={"token": "free-key"}, setup=lambda peer: peer.answer("client:get_tools", answer)
    )
    assert tuple(await join(agent, "agent", name, office)) == (True, None)
    assert tuple(await join(computer, "computer", "c", office)) == (True, None)
    yield Office(agent, computer, seen)


@pytest.mark.parametrize(
    ("key", "name", "stamp"),
    [
        ("bound-key", "planner", {"name": "planner", "key": "ci", "bound": True}),
        ("bound-key", "planner-7", {"name": "planner-7", "key": "ci", "bound": True}),
        ("free-key", "planner", {"name": "planner", "key": "desk", "bound": False}),
        ("star-key", "planner", {"name": "planner", "key": "star", "bound": False}),
    ],
)
async def test_a_computer_is_told_who_asks_whatever_the_agent_says(
    keyed: Running, make_peer: MakePeer, office: str, key: str, name: str, stamp: dict[str, Any]
) -> None:
    async with in_office(keyed, make_peer, office, key, name) as there:
        assert await there.stamp() == stamp
        forged = {"name": "librarian", "key": "root", "bound": True}
        assert await there.stamp(agent="librarian", a2c_from=forged) == stamp
        assert there.seen[-1]["agent"] == "librarian"


async def test_a_key_with_names_neither_joins_nor_renames_itself_outside_of_them(
    keyed: Running, make_peer: MakePeer, office: str
) -> None:
    stranger = await make_peer(keyed, auth={"token": "bound-key"})
    for role in ("agent", "computer"):
        refused = await join(stranger, role, "librarian", office)
        assert refused[0] is False and refused[1].startswith("403 ")
        assert "'planner', 'planner-*'" in refused[1] and "'librarian'" in refused[1]
    await stranger.disconnect()
    async with in_office(keyed, make_peer, office) as there:
        assert (await join(there.agent, "agent", "Planner", office))[1].startswith("403 ")
        assert await there.stamp() == {"name": "planner", "key": "ci", "bound": True}
        assert tuple(await join(there.agent, "agent", "planner-2", office)) == (True, None)
        assert await there.stamp() == {"name": "planner-2", "key": "ci", "bound": True}


async def test_a_name_is_the_one_of_the_moment_and_comes_along_when_the_session_does(
    keyed: Running, make_peer: MakePeer, office: str
) -> None:
    async with in_office(keyed, make_peer, office, "free-key") as there:
        assert tuple(await join(there.agent, "agent", "librarian", office)) == (True, None)
        assert (await there.stamp())["name"] == "librarian"
        assert tuple(await come_back(there.agent, "agent", "librarian", office)) == (True, None)
        newer = await make_peer(keyed, auth={"token": "star-key"})
        assert tuple(await come_back(newer, "agent", "clerk", office)) == (True, None)
        # What the older session had on its way is still served: under its own name.
        assert (await there.stamp())["name"] == "librarian"
        there.agent = newer
        assert await there.stamp() == {"name": "clerk", "key": "star", "bound": False}
