"""`a2c server --nats` as it is run: three processes that are one system."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.nats_server import NatsServer
from tests.server.cluster.test_membership_faults import ready
from tests.server.harness import AsyncPeer, eventually, heard
from tests.server.test_cli import Process, running


@contextlib.asynccontextmanager
async def three(nats: NatsServer, prefix: str) -> AsyncIterator[list[Process]]:
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(running("--nats", nats.url, "--nats-prefix", prefix)) for _ in range(3)]
        for process in processes:
            await ready(process.url)
        yield processes


@contextlib.asynccontextmanager
async def peers(processes: list[Process], count: int) -> AsyncIterator[list[AsyncPeer]]:
    """Peers that are spread over the processes."""
    made = [AsyncPeer() for _ in range(count)]
    try:
        for start in range(0, count, 20):
            await asyncio.gather(
                *(
                    peer.connect(processes[number % len(processes)].url, transports=["websocket"])
                    for number, peer in enumerate(made[start : start + 20], start)
                )
            )
        yield made
    finally:
        await asyncio.gather(*(peer.disconnect() for peer in made))


def joining(role: str, name: str, office_id: str) -> tuple[str, Any]:
    return "server:join_office", {"role": role, "name": name, "office_id": office_id}


async def answer_to(peer: AsyncPeer, role: str, name: str, office_id: str) -> Any:
    """The answer to a join, once NATS was in time for one."""
    async with asyncio.timeout(100):
        while (reply := await peer.call(*joining(role, name, office_id), timeout=100))[0] is False:
            if not reply[1].startswith("500 "):
                break
            await asyncio.sleep(0.2)
        return reply


@pytest.mark.timeout(240)
async def test_200_agents_go_to_20_offices_at_once_and_20_are_in(nats: NatsServer, prefix: str) -> None:
    async with three(nats, prefix) as processes, peers(processes, 200) as agents:
        outcomes = await asyncio.gather(
            *(answer_to(peer, "agent", f"a{n}", f"o{n % 20}") for n, peer in enumerate(agents))
        )
        inside = [n for n, (done, _) in enumerate(outcomes) if done]
        assert sorted(n % 20 for n in inside) == list(range(20))
        assert all(reason.startswith("4101 ") for done, reason in outcomes if not done)
        # Each of them sees its own office, through whichever process.
        rooms = await asyncio.gather(
            *(
                agents[n].call("server:list_room", {"agent": f"a{n}", "req_id": "1", "office_id": f"o{n % 20}"})
                for n in inside
            )
        )
        assert [[session["name"] for session in room["sessions"]] for room in rooms] == [[f"a{n}"] for n in inside]


async def test_a_process_that_stops_in_good_order_frees_its_names_and_the_others_tell_of_it(
    nats: NatsServer, prefix: str
) -> None:
    async with three(nats, prefix) as processes, peers(processes, 3) as (agent, computer, another):
        assert (await answer_to(agent, "agent", "a", "o"))[0]
        assert (await answer_to(computer, "computer", "c", "o"))[0]
        assert (await answer_to(another, "computer", "c", "o"))[1].startswith("4105 ")
        await eventually(lambda: heard(agent, "notify:enter_office"))
        code, rest = await asyncio.to_thread(processes[1].stop)
        assert code == 0 and "Traceback" not in rest
        await eventually(lambda: heard(agent, "notify:leave_office"))
        assert (await answer_to(another, "computer", "c", "o"))[0]
        await eventually(lambda: len(heard(agent, "notify:enter_office")) == 2)
