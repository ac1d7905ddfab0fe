"""A desktop from real servers: read together, late and broken ones left out."""

import time

import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.desktop import reading
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.smcp import GET_DESKTOP_EVENT
from tests.computer.fakes.computers import FAST, call, running, server
from tests.computer.fakes.offices import Agent, new_office, options
from tests.server.harness import Running


def window(number: int) -> str:
    return f"window://fake/{number}\n\nwindow {number}"


async def test_windows_of_all_servers_the_last_used_first() -> None:
    async with running(server("a"), server("b", resources=1), server("c", bare=1)) as (computer, _):
        assert await computer.get_desktop() == [window(0), window(1), window(0)]
        await call(computer, "b.set_resource", uri="window://b/new?priority=50", text="fresh")
        assert await computer.get_desktop() == ["window://b/new?priority=50\n\nfresh", window(0), window(0), window(1)]
        assert await computer.get_desktop(size=2) == ["window://b/new?priority=50\n\nfresh", window(0)]
        assert await computer.get_desktop(size=0) == []
        assert await computer.get_desktop(window="window://fake/1") == [window(1)]
        assert await computer.get_desktop(window="window://fake/7") == []
        await computer.stop_server("a")
        assert await computer.get_desktop(window="window://fake/1") == []


async def test_a_server_that_is_late_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "WINDOW_SECONDS", 0.3)
    async with running(server("late", "slow", delay=0.6), server("good")) as (computer, _):
        started = time.monotonic()
        assert await computer.get_desktop() == [window(0), window(1)]
        assert time.monotonic() - started < 5


async def test_over_the_wire(hub: Running) -> None:
    office, agent = new_office(), Agent()
    await agent.join(hub.url, office)
    computer = Computer("pc", mcp_servers=[server("a")], timings=FAST)
    async with computer, SMCPComputerClient(computer, options(hub.url)) as client:
        await client.join_office(office)
        reply = await agent.ask(GET_DESKTOP_EVENT, req_id="d", desktop_size=1)
        assert reply == {"desktops": [window(0)], "req_id": "d"}
    await agent.disconnect()
