"""Our computer with the existing server and the existing agent, over the wire."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.server import OpenAuthentication
from a2c_smcp.utils.link import LinkOptions
from tests.computer.fakes.computers import FAST, names, server
from tests.computer.fakes.offices import Agent, new_office
from tests.server.harness import async_server, eventually

pytestmark = pytest.mark.interop

_PEERS = Path(__file__).with_name("peers")


@contextmanager
def existing_server(python: str, kind: str) -> Iterator[str]:
    """Its URL."""
    with subprocess.Popen(
        [python, "-I", str(_PEERS / "server.py"), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            ready, url = process.stdout.readline().split()
            assert ready == "READY"
            yield url
        finally:
            process.kill()


async def existing_agent(python: str, kind: str, url: str, office: str, *tools: str) -> Any:
    """What it saw."""
    with anyio.fail_after(60):
        result = await anyio.run_process([python, "-I", str(_PEERS / "agent.py"), kind, url, office, "pc", *tools])
    line = next(line for line in result.stdout.decode().splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT "))


@pytest.fixture(params=["async", "sync"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_with_the_existing_server(interop_python: str, kind: str) -> None:
    with existing_server(interop_python, kind) as url:
        await with_server(url)


async def with_server(url: str) -> None:
    office, agent = new_office(), Agent()
    # The existing threaded server speaks polling only.
    options = LinkOptions(url, transports=("polling", "websocket"))
    async with (
        Computer("pc", mcp_servers=[server("a")], timings=FAST) as computer,
        SMCPComputerClient(computer, options) as client,
    ):
        try:
            await agent.connect(url)
            assert await agent.call("server:join_office", {"role": "agent", "name": "ag", "office_id": office})
            await client.join_office(office)
            tools = await agent.ask("client:get_tools")
            assert [tool["name"] for tool in tools["tools"]] == names(computer)
            assert (await agent.tool("a.echo", text="你好"))["content"] == [{"type": "text", "text": "你好"}]
            assert (await agent.tool("nothing"))["meta"]["error_code"] == 4001
            await computer.stop_server("a")
            await eventually(lambda: ("notify:update_tool_list", {"computer": "pc"}) in agent.received)
            await client.leave_office()
        finally:
            await agent.disconnect()


async def test_with_the_existing_agent(interop_python: str, kind: str) -> None:
    office = new_office()
    with async_server(OpenAuthentication()) as hub:
        async with (
            Computer(
                "pc", mcp_servers=[server("a", prefixed=False, forbidden_tools=["fail"])], timings=FAST
            ) as computer,
            SMCPComputerClient(computer, LinkOptions(hub.url)) as client,
        ):
            await client.join_office(office)
            seen = await existing_agent(interop_python, kind, hub.url, office, "echo", "fail", "nothing")
    assert [tool["name"] for tool in seen["tools"]] == names(computer)
    echoed, forbidden, missing = seen["calls"]
    assert echoed["content"] == ["你好"]
    assert echoed["meta"]["a2c_tool_meta"]["auto_apply"] is True
    assert (forbidden["isError"], forbidden["meta"]["error_code"]) == (True, 4002)
    assert (missing["isError"], missing["meta"]["error_code"]) == (True, 4001)
