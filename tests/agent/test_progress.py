"""Progress, as an agent's own code hears it: both agents, both servers, callbacks of every kind."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from a2c_smcp.agent.progress import ProgressListeners
from a2c_smcp.smcp import TOOL_CALL_EVENT, TOOL_PROGRESS_EVENT, ToolProgress
from tests.agent.conftest import MakeAgent, MakeComputer
from tests.agent.harness import FakeComputer
from tests.server.harness import Running, eventually

Report = tuple[float, float | None, str | None]
KINDS = pytest.mark.parametrize("kind", ["async", "blocking"])


@pytest.fixture(params=["async-server", "sync-server"])
def server(request: pytest.FixtureRequest) -> Running:
    running: Running = request.getfixturevalue(f"agents_{request.param.split('-')[0]}_server")
    return running


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a thread, or what it did, may not be there within the second that a result waits for it."""
    monkeypatch.setattr("a2c_smcp.agent.progress._LAST_SECONDS", 60.0)


class Heard:
    """A callback of either colour, and what it was told."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.threads: set[int] = set()

    def plain(self, progress: float, total: float | None, message: str | None) -> None:
        self.reports.append((progress, total, message))
        self.threads.add(threading.get_ident())

    async def coroutine(self, progress: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(0)
        self.plain(progress, total, message)


def reporting(computer: FakeComputer, reports: list[dict[str, Any]], wait: Callable[[int], Any]) -> None:
    """Have calls report these; `wait` waits until so many were heard, all but the last."""

    async def answer(data: dict[str, Any]) -> Any:
        ids = {"computer": computer.name, "agent": data["agent"], "req_id": data["req_id"]}
        for number, report in enumerate(reports):
            await wait(number)
            await computer.peer.emit(TOOL_PROGRESS_EVENT, {**ids, **report})
        return computer.result("done")

    computer.override[TOOL_CALL_EVENT] = answer


@KINDS
@pytest.mark.parametrize("colour", ["plain", "coroutine"])
@pytest.mark.usefixtures("patient")
async def test_a_callback_hears_every_report_before_the_call_returns(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str, colour: str
) -> None:
    heard = Heard()
    computer, agent = await make_computer(), await make_agent(kind)
    reports: list[dict[str, Any]] = [
        {"progress": 1},
        {"progress": 2, "total": 3, "message": "half"},
        {"progress": 3, "total": 3},
    ]
    reporting(computer, reports, lambda count: eventually(lambda: len(heard.reports) >= count))
    result = await agent.call_tool("laptop", "copy", timeout=60, on_progress=getattr(heard, colour))
    assert not result.is_error
    assert heard.reports == [(1, None, None), (2, 3, "half"), (3, 3, None)]
    [request] = computer.requests(TOOL_CALL_EVENT)
    assert request["progress"] is True
    if (kind, colour) == ("async", "coroutine"):
        assert heard.threads == {threading.get_ident()}
    else:
        assert threading.get_ident() not in heard.threads


@KINDS
async def test_without_a_callback_nothing_is_asked_for(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    computer, agent = await make_computer(), await make_agent(kind)
    await agent.call_tool("laptop", "echo", {"text": "x"})
    [request] = computer.requests(TOOL_CALL_EVENT)
    assert "progress" not in request


@KINDS
@pytest.mark.parametrize("colour", ["plain", "coroutine"])
@pytest.mark.usefixtures("patient")
async def test_a_callback_that_fails_is_logged_and_the_next_report_is_told(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str, colour: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()

    def plain(*report: Any) -> None:
        heard.plain(*report)
        raise ZeroDivisionError

    async def coroutine(*report: Any) -> None:
        plain(*report)

    computer, agent = await make_computer(), await make_agent(kind)
    reports: list[dict[str, Any]] = [{"progress": 1}, {"progress": 2}]
    reporting(computer, reports, lambda count: eventually(lambda: len(heard.reports) >= count))
    callback: Any = {"plain": plain, "coroutine": coroutine}[colour]
    with caplog.at_level(logging.ERROR, "a2c_smcp.agent.progress"):
        result = await agent.call_tool("laptop", "copy", timeout=60, on_progress=callback)
    assert not result.is_error
    assert [progress for progress, *_ in heard.reports] == [1, 2]
    assert caplog.text.count("the callback for the progress of") == 2


@KINDS
@pytest.mark.parametrize("colour", ["plain", "coroutine"])
async def test_a_callback_that_never_returns_holds_up_neither_its_call_nor_others(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str, colour: str
) -> None:
    entered, released, told = threading.Event(), threading.Event(), []

    def plain(progress: float, *_: Any) -> None:
        told.append(progress)
        entered.set()
        released.wait(60)

    async def coroutine(progress: float, *_: Any) -> None:
        told.append(progress)
        entered.set()
        while not released.is_set():  # noqa: ASYNC110 - it is set in another thread
            await asyncio.sleep(0.05)

    computer, agent = await make_computer(), await make_agent(kind)

    async def answer(data: dict[str, Any]) -> Any:
        ids = {"computer": "laptop", "agent": data["agent"], "req_id": data["req_id"]}
        if data.get("progress"):
            for number in range(5):
                await computer.peer.emit(TOOL_PROGRESS_EVENT, {**ids, "progress": number})
            await eventually(entered.is_set)
        return computer.result("done")

    computer.override[TOOL_CALL_EVENT] = answer
    callback: Any = {"plain": plain, "coroutine": coroutine}[colour]
    try:
        with anyio.fail_after(40):  # well before the callbacks return
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: agent.call_tool("laptop", "copy", timeout=60, on_progress=callback))
                await eventually(entered.is_set)
                assert not (await agent.call_tool("laptop", "other", timeout=60)).is_error
    finally:
        released.set()
    assert len(told) == 1


async def test_a_slow_callback_gets_the_first_three_and_the_latest_and_none_after_the_end() -> None:
    listeners, heard, gate = ProgressListeners(), Heard(), asyncio.Event()

    async def slow(*report: Any) -> None:
        heard.plain(*report)
        await gate.wait()

    async with listeners.listening("c", "1", slow):
        for number in range(10):
            listeners.take(report(number))
            await asyncio.sleep(0)
        gate.set()
    listeners.take(report(11))
    assert [progress for progress, *_ in heard.reports] == [0, 1, 2, 9]
    assert not listeners._listeners


async def test_reports_of_another_call_or_computer_are_not_heard() -> None:
    listeners, heard = ProgressListeners(), Heard()
    async with listeners.listening("c", "1", heard.coroutine):
        listeners.take(report(1, req_id="2"))
        listeners.take(report(2, computer="d"))
    assert heard.reports == []


async def test_what_a_computer_reports_backwards_does_not_decrease() -> None:
    listeners, heard = ProgressListeners(), Heard()
    async with listeners.listening("c", "1", heard.coroutine):
        for progress in (5, 3):
            listeners.take(report(progress))
            await eventually(lambda: heard.reports)
    assert [progress for progress, *_ in heard.reports] == [5, 5]


async def test_a_callback_that_swallows_its_cancellation_is_not_called_again() -> None:
    listeners, heard, gate = ProgressListeners(), Heard(), asyncio.Event()

    async def stubborn(*report: Any) -> None:
        heard.plain(*report)
        try:
            await gate.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)

    async def call() -> None:
        async with listeners.listening("c", "1", stubborn):
            listeners.take(report(1))
            await eventually(lambda: heard.reports)
            listeners.take(report(2))
            raise ZeroDivisionError  # an end without a result does not wait for the callback

    with pytest.raises(ZeroDivisionError):
        await call()
    await asyncio.sleep(0.05)
    assert [progress for progress, *_ in heard.reports] == [1]


def report(progress: float, **more: Any) -> ToolProgress:
    return {"computer": "c", "agent": "a", "req_id": "1", "progress": progress, **more}  # type: ignore[typeddict-item]
