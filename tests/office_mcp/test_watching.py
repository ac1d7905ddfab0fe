"""What is waited for, and for how long."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from a2c_smcp.agent.view import ComputerView
from a2c_smcp.office_mcp.agent import OfficeAgent
from a2c_smcp.office_mcp.watching import OfficeWaits, WatchedOffice
from tests.agent.harness import a_tool


class NeverSettled:
    """Stands in for an agent one of whose computers does not say which tools it has."""

    office_id, problem = "lab", None

    def __init__(self) -> None:
        self.computers = {"silent": ComputerView("silent")}
        self.handlers: dict[str, Callable[[Any], Any]] = {}

    async def settled(self, timeout: float = 20.0) -> None:
        await asyncio.sleep(timeout)

    def on(self, name: str) -> Callable[[Any], Any]:
        return lambda handler: self.handlers.setdefault(name, handler)


async def test_a_call_does_not_wait_for_a_computer_that_is_not_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2c_smcp.office_mcp.watching._WAITS", OfficeWaits(60.0, 60.0, 60.0))
    agent = NeverSettled()
    office = WatchedOffice(cast("OfficeAgent", agent))
    waiting = asyncio.create_task(office.knows(lambda: "laptop__echo" in office.directory.by_name))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    agent.computers["laptop"] = ComputerView("laptop", tools=[cast("Any", a_tool("echo"))])
    agent.handlers["enter_office"]({})
    async with asyncio.timeout(20):  # well before the 60 s that a list would wait
        await waiting
