"""Reports of progress: to the one caller that asked, at a bounded rate, and to nobody else."""

import itertools
import json
from typing import Any

import anyio
import pytest

from a2c_smcp.relay.asks import Ask
from a2c_smcp.server.relays import Relay, RelayAsk, relay_table, reported_by
from a2c_smcp.server.reports import ReportLimit
from a2c_smcp.smcp import TOOL_CALL_EVENT, TOOL_PROGRESS_EVENT, TOOL_PROGRESS_NOTIFICATION, ToolProgress
from tests.server.conftest import MakePeer
from tests.server.harness import Peer, Running, eventually, heard
from tests.server.test_scenarios import join, request_for

# --- decisions


def report(progress: float = 1, **more: Any) -> ToolProgress:
    return {"computer": "c", "agent": "a", "req_id": "1", "progress": progress, **more}  # type: ignore[typeddict-item]


_NUMBERS = itertools.count()


def relay(target: str = "computer-sid", *, wants: bool = True) -> RelayAsk:
    waiter = Relay(TOOL_CALL_EVENT, "a", "1", "c", lambda *_: None)
    return Ask(next(_NUMBERS), waiter, "agent-sid", target, (target, "a", "1") if wants else None)


def test_a_report_is_about_the_relay_to_its_sender_with_its_ids() -> None:
    table = relay_table(10)
    wanted, unwanted, elsewhere = relay(), relay(wants=False), relay("another-sid")
    for each in (unwanted, elsewhere, wanted):
        table.ask(each)
    assert reported_by(table, "computer-sid", report()) is wanted
    assert reported_by(table, "computer-sid", report(req_id="2")) is None
    assert reported_by(table, "computer-sid", report(agent="b")) is None
    assert reported_by(table, "computer-sid", report(computer="d")) is None
    assert reported_by(table, "agent-sid", report()) is None
    table.end(wanted.id)
    assert reported_by(table, "computer-sid", report()) is None
    assert reported_by(table, "another-sid", report()) is elsewhere
    table.end(elsewhere.id)


def test_a_repeated_request_is_reported_on_until_the_last_of_its_relays_ends() -> None:
    table = relay_table(10)
    first, second = relay(), relay()
    table.ask(first)
    table.ask(second)
    assert reported_by(table, "computer-sid", report()) is first
    table.end(first.id)
    assert reported_by(table, "computer-sid", report()) is second


def test_a_flood_of_reports_is_thinned_out_and_long_messages_are_dropped() -> None:
    passed: list[str] = []
    now = 0.0
    limit = ReportLimit(passed.append, lambda: now)
    for number in range(1000):
        limit(report(number))
    assert len(passed) == 20
    now = 1.0
    limit(report(1000, message="x" * 1001))
    assert len(passed) == 20
    limit(report(1001, message="x" * 1000))
    assert [json.loads(each)["progress"] for each in passed[20:]] == [1001]


def test_the_last_report_is_delivered_at_the_end_if_it_came_too_fast() -> None:
    passed: list[str] = []
    limit = ReportLimit(passed.append, lambda: 0.0)
    for number in range(100):
        limit(report(number))
    assert len(passed) == 20
    limit.end()
    limit.end()
    assert [json.loads(each)["progress"] for each in passed[20:]] == [99]


def test_a_pace_that_the_protocol_allows_loses_nothing() -> None:
    passed: list[str] = []
    now = 0.0
    limit = ReportLimit(passed.append, lambda: now)
    for number in range(100):
        now = number // 10  # a second's worth at a time
        limit(report(number))
    assert len(passed) == 100


# --- over real sockets


class Scene:
    """A call that runs until it is released, and everybody who might hear of its progress."""

    def __init__(self, agent: Peer, computer: Peer, others: list[Peer]) -> None:
        self.agent = agent
        self.computer = computer
        self.others = others
        self.release = anyio.Event()
        self.arrived = anyio.Event()

    @property
    def told(self) -> list[Any]:
        return heard(self.agent, TOOL_PROGRESS_NOTIFICATION)

    async def has_told(self, count: int) -> None:
        await eventually(lambda: len(self.told) == count)

    async def answer(self, data: Any) -> Any:
        self.arrived.set()
        await self.release.wait()
        return {"content": [], "isError": False}

    async def call(self, **more: Any) -> None:
        await self.agent.call(TOOL_CALL_EVENT, request_for(TOOL_CALL_EVENT, timeout=60, **more))

    def nobody_else_heard(self) -> None:
        for peer in (self.computer, *self.others):
            assert heard(peer, TOOL_PROGRESS_NOTIFICATION) == []


@pytest.fixture(params=["websocket", "polling"])
async def scene(server: Running, office: str, make_peer: MakePeer, request: pytest.FixtureRequest) -> Scene:
    transport: str = request.param
    if server.is_mounted and transport == "polling":
        pytest.skip("python-socketio makes a task of each packet of a POST, and they may overtake each other")
    agent, stranger, second = [await make_peer(server, transport=transport) for _ in range(3)]
    scenes: list[Scene] = []
    computer = await make_peer(
        server,
        transport=transport,
        setup=lambda peer: peer.answer(TOOL_CALL_EVENT, lambda data: scenes[0].answer(data)),
    )
    it = Scene(agent, computer, [second, stranger])
    scenes.append(it)
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    await join(second, "computer", "d", office)
    await join(stranger, "agent", "a", office + "-other")
    return it


async def test_the_caller_hears_reports_in_order_before_the_result_and_nobody_else_does(scene: Scene) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: scene.call(progress=True))
        await scene.arrived.wait()
        for number in range(3):
            await scene.computer.emit(TOOL_PROGRESS_EVENT, report(number, total=3, message="on", unknown=1))
            await scene.has_told(number + 1)  # one that still waits would give way to the next
        await scene.computer.emit(TOOL_PROGRESS_EVENT, report(3, total=3, message="on"))
        scene.release.set()
    expected = {"computer": "c", "agent": "a", "req_id": "1", "total": 3, "message": "on"}
    assert scene.told == [{**expected, "progress": number} for number in range(4)]
    scene.nobody_else_heard()


@pytest.mark.parametrize(
    ("asked", "sender", "sent"),
    [
        pytest.param(False, "computer", {}, id="not-asked-for"),
        pytest.param(True, "computer", {"req_id": "2"}, id="not-pending"),
        pytest.param(True, "computer", {"agent": "b"}, id="of-another-agent"),
        pytest.param(True, "computer", {"computer": "d"}, id="for-another-computer"),
        pytest.param(True, "computer", {"message": "x" * 1001}, id="too-long"),
        pytest.param(True, "second", {}, id="by-another-computer"),
        pytest.param(True, "second", {"computer": "d"}, id="by-another-computer-for-itself"),
        pytest.param(True, "agent", {}, id="by-the-agent"),
        pytest.param(True, "stranger", {}, id="by-an-agent-elsewhere"),
    ],
)
async def test_any_other_report_is_dropped_and_nobody_hears_it(
    scene: Scene, asked: bool, sender: str, sent: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    peers = {"computer": scene.computer, "agent": scene.agent, "second": scene.others[0], "stranger": scene.others[1]}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: scene.call(progress=True) if asked else scene.call())
        await scene.arrived.wait()
        caplog.clear()
        # Whoever asks for an ack gets one that says nothing.
        assert await peers[sender].call(TOOL_PROGRESS_EVENT, report(**sent)) == {}
        scene.release.set()
    assert scene.told == []
    assert "progress" not in caplog.text
    scene.nobody_else_heard()


async def test_a_report_after_the_result_is_dropped(scene: Scene) -> None:
    scene.release.set()
    await scene.call(progress=True)
    assert await scene.computer.call(TOOL_PROGRESS_EVENT, report()) == {}
    assert scene.told == []


async def test_a_report_that_breaks_the_protocol_is_400(scene: Scene) -> None:
    payloads: list[Any] = [{**report(), "progress": "1"}, {"computer": "c"}, {**report(), "message": 1}, [], None]
    for bad in payloads:
        reply = await scene.computer.call(TOOL_PROGRESS_EVENT, bad)
        assert reply["error"]["code"] == 400


async def test_a_request_whose_wish_for_progress_is_no_boolean_is_400(scene: Scene) -> None:
    reply = await scene.agent.call(TOOL_CALL_EVENT, request_for(TOOL_CALL_EVENT, progress="yes"))
    assert reply["error"]["details"] == {"field": "progress"}


async def test_a_computer_that_floods_reports_is_heard_now_and_then_and_stays(scene: Scene) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: scene.call(progress=True))
        await scene.arrived.wait()
        began = anyio.current_time()
        for number in range(2000):
            await scene.computer.emit(TOOL_PROGRESS_EVENT, report(number))
        assert await scene.computer.call(TOOL_PROGRESS_EVENT, report(2000)) == {}
        seconds = anyio.current_time() - began
        await eventually(lambda: scene.told)
        scene.release.set()
    assert len(scene.told) <= 22 + 20 * seconds
    assert scene.told[-1]["progress"] == 2000
    assert scene.computer.connected
    assert scene.agent.connected
