"""Changes leave a computer at a pace, the first at once and the last always; nothing else waits."""

import asyncio

import pytest

from a2c_smcp.computer import Computer
from a2c_smcp.computer.watching.events import (
    ComputerEvent,
    ConfigChanged,
    DesktopChanged,
    FinderChanged,
    RestartOffered,
    ToolListChanged,
)
from a2c_smcp.computer.watching.paced_events import ANNOUNCE_SECONDS, PacedEvents
from tests.computer.fakes.computers import recorded
from tests.server.harness import eventually

CHANGES = (ToolListChanged(), ConfigChanged(), DesktopChanged(), FinderChanged())


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
async def test_a_burst_is_one_change_at_once_and_one_in_the_end(change: ComputerEvent) -> None:
    heard: list[ComputerEvent] = []
    paced = PacedEvents(heard.append)
    began = asyncio.get_running_loop().time()
    for _ in range(1000):
        paced(change)
    if asyncio.get_running_loop().time() < began + ANNOUNCE_SECONDS:
        assert heard == [change]
    await eventually(lambda: not paced.is_waiting, 30)
    assert heard == [change] * 2


async def test_kinds_do_not_wait_for_each_other_and_other_events_do_not_wait() -> None:
    heard: list[ComputerEvent] = []
    paced = PacedEvents(heard.append)
    for change in CHANGES:
        paced(change)
    other = RestartOffered("a", "why")
    for _ in range(3):
        paced(other)
    assert heard == [*CHANGES, other, other, other]


async def test_what_waits_is_said_in_the_end() -> None:
    heard: list[ComputerEvent] = []
    paced = PacedEvents(heard.append)
    for _ in range(3):
        paced(ToolListChanged())
    paced.flush()
    assert heard == [ToolListChanged()] * 2
    assert not paced.is_waiting
    paced(ToolListChanged())
    assert heard == [ToolListChanged()] * 3
    paced.flush()


def test_without_a_loop_it_is_said_at_once() -> None:
    heard: list[ComputerEvent] = []
    PacedEvents(heard.append)(ConfigChanged())
    assert heard == [ConfigChanged()]


async def test_a_config_that_changes_all_the_time_is_announced_at_a_pace() -> None:
    config = {"name": "a", "type": "stdio", "disabled": True, "server_parameters": {"command": "true", "args": []}}
    computer = Computer("pc")
    async with recorded(computer) as record, computer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(100):
            await computer.add_or_update_server({**config, "forbidden_tools": [str(number)]})
        await record.until(lambda: not computer._happened.is_waiting)
        assert len(record.now(ConfigChanged)) <= 2 + (loop.time() - began) / ANNOUNCE_SECONDS
        assert record.now(ConfigChanged)
