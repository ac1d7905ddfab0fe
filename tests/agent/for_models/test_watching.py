"""What is waited for, and for how long."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from a2c_smcp.agent.for_models.office_agent import OfficeAgent
from a2c_smcp.agent.for_models.remembered_office import RememberedOffice
from a2c_smcp.agent.for_models.watching import OfficeWaits, WatchedOffice
from a2c_smcp.agent.view import ComputerView
from tests.agent.harness import a_tool


class NeverSettled:
    """Stands in for an agent one of whose computers does not say which tools it has."""

    office_id = "lab"

    def __init__(self, problem: str | None = None, *, is_entering: bool = False) -> None:
        self.problem = problem
        self.is_entering = is_entering
        self.computers = {"silent": ComputerView("silent")}
        self.handlers: dict[str, Callable[[Any], Any]] = {}

    async def settled(self, timeout: float = 20.0) -> None:
        await asyncio.sleep(timeout)

    def on(self, name: str) -> Callable[[Any], Any]:
        return lambda handler: self.handlers.setdefault(name, handler)

    def enter(self) -> None:
        """Come into the office, and find the tool `laptop__echo` there."""
        self.problem, self.is_entering = None, False
        self.computers["laptop"] = ComputerView("laptop", tools=[cast("Any", a_tool("echo"))])
        self.handlers["connection"](None)


YET = "not connected to the server yet"


async def test_a_call_does_not_wait_for_a_computer_that_is_not_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2c_smcp.agent.for_models.watching._WAITS", OfficeWaits(60.0, 60.0, 60.0))
    agent = NeverSettled()
    office = WatchedOffice(cast("OfficeAgent", agent))
    waiting = asyncio.create_task(office.knows(lambda: "laptop__echo" in office.directory.by_name))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    agent.computers["laptop"] = ComputerView("laptop", tools=[cast("Any", a_tool("echo"))])
    agent.handlers["enter_office"]({})
    async with asyncio.timeout(20):  # well before the 60 s that a list would wait
        await waiting


async def test_a_list_that_would_be_empty_waits_longer_while_the_agent_enters_the_office(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("a2c_smcp.agent.for_models.watching._WAITS", OfficeWaits(list_away=0.01, list_here=60.0))
    agent = NeverSettled(YET, is_entering=True)
    office = WatchedOffice(cast("OfficeAgent", agent))
    waiting = asyncio.create_task(office.ready())
    await asyncio.sleep(0.1)  # longer than `list_away`
    assert not waiting.done()
    monkeypatch.setattr(agent, "settled", lambda _: asyncio.sleep(0))
    agent.enter()
    async with asyncio.timeout(20):
        await waiting
    assert "laptop__echo" in office.directory.by_name


async def test_a_list_does_not_wait_longer_once_something_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2c_smcp.agent.for_models.watching._WAITS", OfficeWaits(list_away=0.01, list_here=60.0))
    agent = NeverSettled(YET, is_entering=True)
    waiting = asyncio.create_task(WatchedOffice(cast("OfficeAgent", agent)).ready())
    await asyncio.sleep(0)
    agent.problem, agent.is_entering = "cannot connect", False  # no event says so
    async with asyncio.timeout(20):
        await waiting


async def test_a_list_of_the_last_time_is_not_held_back_as_long_as_a_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("a2c_smcp.agent.for_models.watching._WAITS", OfficeWaits(0.01, 60.0, 60.0))
    memory = RememberedOffice(tmp_path / "lab.json")
    memory.save({"laptop": [cast("Any", a_tool("echo"))]})
    agent = NeverSettled(YET, is_entering=True)
    office = WatchedOffice(cast("OfficeAgent", agent), memory=memory)
    office.look()
    call = asyncio.create_task(office.usable())
    async with asyncio.timeout(20):
        await office.ready()
    assert "laptop__echo" in office.directory.by_name
    assert not call.done()
    call.cancel()
