"""Join, leave and disconnect of one session are serialised, also when the registry takes its time."""

import asyncio
import threading

import pytest

from a2c_smcp.server import OpenAuthentication
from a2c_smcp.server.offices import Transition
from a2c_smcp.server.registry import LocalRegistry
from a2c_smcp.smcp import EnterOfficeReq
from tests.server.conftest import MakePeer
from tests.server.harness import async_server, eventually, heard


class SlowRegistry(LocalRegistry):
    """As one behind a network: a join is decided, and its answer is on its way while other things happen."""

    def __init__(self) -> None:
        super().__init__()
        self.decided = threading.Event()
        self.answer = threading.Event()

    async def join(self, sid: str, request: EnterOfficeReq) -> Transition:  # type: ignore[override]  # as LocalRegistry does
        transition = super().join(sid, request)
        if request["name"] == "slow":
            await self._wait()
        return transition

    async def _wait(self) -> None:
        self.decided.set()
        while not self.answer.is_set():  # noqa: ASYNC110 - set from the test's thread
            await asyncio.sleep(0.005)


JOIN_SLOWLY = ("server:join_office", {"role": "computer", "name": "slow", "office_id": "o"})
LEAVE = ("server:leave_office", {"office_id": "o"})


async def test_a_join_that_finishes_after_its_session_has_gone_is_undone_before_anyone_hears_of_it(
    make_peer: MakePeer,
) -> None:
    registry = SlowRegistry()
    with async_server(OpenAuthentication(), registry=registry) as server:
        agent, computer, next_one = [await make_peer(server) for _ in range(3)]
        await agent.call("server:join_office", {"role": "agent", "name": "a", "office_id": "o"})
        await computer.emit("server:join_office", {"role": "computer", "name": "slow", "office_id": "o"})
        await eventually(registry.decided.is_set)
        await computer.disconnect()
        await eventually(lambda: len(server.namespace._clients) == 2)
        registry.answer.set()
        await eventually(lambda: registry.counts().computers == 0)
        done, _ = await next_one.call("server:join_office", {"role": "computer", "name": "slow", "office_id": "o"})
        assert done is True
        await eventually(lambda: heard(agent, "notify:enter_office"))
        assert [event for event, _ in agent.received] == ["notify:enter_office"]
        assert len(server.namespace.rooms.sessions("o")) == 2


async def test_a_leave_waits_for_the_join_before_it(make_peer: MakePeer) -> None:
    registry = SlowRegistry()
    with async_server(OpenAuthentication(), registry=registry) as server:
        computer = await make_peer(server)
        await computer.emit("server:join_office", {"role": "computer", "name": "slow", "office_id": "o"})
        await eventually(registry.decided.is_set)
        leaving = asyncio.create_task(computer.call("server:leave_office", {"office_id": "o"}))
        await asyncio.sleep(0.05)
        assert not leaving.done()
        registry.answer.set()
        assert tuple(await leaving) == (True, None)
        assert registry.counts().computers == 0
        assert not server.namespace.rooms.sessions("o")


async def test_a_session_whose_joins_and_leaves_pile_up_gets_429_until_they_are_done(make_peer: MakePeer) -> None:
    registry = SlowRegistry()
    with async_server(OpenAuthentication(), registry=registry) as server:
        computer, other = await make_peer(server), await make_peer(server)
        calls = [asyncio.create_task(computer.call(*change)) for change in (JOIN_SLOWLY, LEAVE) * 10]
        await eventually(lambda: sum(call.done() for call in calls) == 12)
        refused = [await call for call in calls if call.done()]
        assert {(done, reason[:4]) for done, reason in refused} == {(False, "429 ")}
        done, _ = await other.call("server:join_office", {"role": "computer", "name": "c", "office_id": "o"})
        assert done, "another session does not wait"
        registry.answer.set()
        assert [(await call)[0] for call in calls].count(True) == 8
        assert (await computer.call(*JOIN_SLOWLY))[0] is True


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("server:join_office", {"role": "computer", "name": "x" * 100_000, "office_id": "o"}),
        ("server:join_office", {"role": "computer", "name": "x", "office_id": "o" * 100_000}),
        ("server:leave_office", {"office_id": "o" * 100_000}),
    ],
)
async def test_a_name_that_is_too_long_is_refused_and_not_kept_until_the_join_before_it_is_done(
    event: str, data: dict[str, str], make_peer: MakePeer
) -> None:
    registry = SlowRegistry()
    with async_server(OpenAuthentication(), registry=registry) as server:
        computer = await make_peer(server)
        await computer.emit(*JOIN_SLOWLY)
        await eventually(registry.decided.is_set)
        done, reason = await computer.call(event, data)
        assert (done, reason[:4]) == (False, "400 ")
        registry.answer.set()
