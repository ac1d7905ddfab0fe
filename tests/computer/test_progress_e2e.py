"""Progress from real MCP servers of each era to both agents, through both servers."""

import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient, SMCPAgentClient
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.link.interface import Joined, LinkEvent
from a2c_smcp.mcp_server import ToolCall
from a2c_smcp.results import text_of
from a2c_smcp.smcp import CANCEL_TOOL_CALL_EVENT, TOOL_CALL_EVENT, TOOL_PROGRESS_NOTIFICATION, WAITING_FOR_PERSON
from a2c_smcp.testing import office
from tests.computer.fakes.computers import FAST, server
from tests.computer.fakes.offices import Agent, new_office, options, watched
from tests.server.harness import Running, eventually, heard

Report = tuple[float, float | None, str | None]
MODERN = "2026-07-28"


class Heard(list[Report]):
    def take(self, progress: float, total: float | None, message: str | None) -> None:
        self.append((progress, total, message))


@asynccontextmanager
async def calling(kind: str, url: str, *servers: dict[str, Any], **more: Any) -> AsyncIterator[Any]:
    """A computer in an office, and what calls its tools there, as an agent of this kind."""
    computer, office_id = Computer("pc", mcp_servers=servers, **{"timings": FAST, **more}), new_office()
    async with computer, SMCPComputerClient(computer, options(url)) as client:
        await client.join_office(office_id)
        if kind == "async":
            async with AsyncSMCPAgentClient(options(url), name="ada", live=False) as agent:
                await agent.join_office(office_id)
                yield agent.call_tool
            return
        blocking = SMCPAgentClient(options(url), name="ada", live=False)
        await anyio.to_thread.run_sync(blocking.open)
        try:
            await anyio.to_thread.run_sync(blocking.join_office, office_id)

            async def call_tool(*args: Any, **options: Any) -> Any:
                return await anyio.to_thread.run_sync(functools.partial(blocking.call_tool, *args, **options))

            yield call_tool
        finally:
            await anyio.to_thread.run_sync(blocking.close)


@pytest.mark.parametrize("hub_kind", ["async", "sync"])
@pytest.mark.parametrize("kind", ["async", "blocking"])
async def test_two_hundred_steps_in_a_second_reach_the_agent_at_a_pace_that_it_can_follow(
    kind: str, hub_kind: str, http_server: str, request: pytest.FixtureRequest
) -> None:
    hub: Running = request.getfixturevalue("hub" if hub_kind == "async" else "sync_hub")
    web = {
        "name": "web",
        "type": "streamable",
        "tool_prefix": "web.",
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"url": http_server + "/mcp"},
    }
    servers = (server("old"), server("new", protocol=MODERN), web)
    async with calling(kind, hub.url, *servers) as call_tool:

        async def call(name: str) -> None:
            reports = Heard()
            began = anyio.current_time()
            result = await call_tool(
                "pc", f"{name}.report", {"steps": 200, "seconds": 1}, timeout=60, on_progress=reports.take
            )
            seconds = anyio.current_time() - began
            assert text_of(result) == "reported"
            steps = [progress for progress, *_ in reports]
            assert steps[-1] == 200
            assert steps == sorted(set(steps))
            assert {total for _, total, _ in reports} == {200}
            assert 2 <= len(steps) <= 10 * (seconds + 1)

        async with anyio.create_task_group() as tasks:
            for name in ("old", "new", "web"):
                tasks.start_soon(call, name)


async def test_a_report_comes_before_the_result_in_the_order_of_the_wire(hub: Running) -> None:
    async with watched(hub.url, server("a")) as (agent, _):
        await agent.ask(TOOL_CALL_EVENT, tool_name="a.report", params={"steps": 3}, timeout=20, progress=True)
        told = heard(agent, TOOL_PROGRESS_NOTIFICATION)
        assert told[-1]["progress"] == 3
        before = len(told)
        await anyio.sleep(0.3)
        assert len(heard(agent, TOOL_PROGRESS_NOTIFICATION)) == before


async def test_the_agent_hears_that_a_call_waits_for_its_confirmation() -> None:
    async def report(call: ToolCall) -> str:
        await call.progress(1, 1)
        return "reported"

    async def confirm(_: Any) -> bool:
        await eventually(lambda: reports)
        return True

    reports = Heard()
    async with office([report], approvals=confirm) as lab:
        result = await lab.agent.call_tool("pc", "report", timeout=60, on_progress=reports.take)
        assert text_of(result) == "reported"
        assert [reports[0], reports[-1]] == [(0, None, WAITING_FOR_PERSON), (1, 1, None)]


async def test_a_cancelled_call_reports_nothing_more(hub: Running) -> None:
    async with watched(hub.url, server("a")) as (agent, _):
        reply: list[Any] = []

        async def call() -> None:
            params = {"steps": 600, "seconds": 60}
            fields = {"tool_name": "a.report", "params": params, "timeout": 60, "progress": True, "req_id": "r"}
            reply.append(await agent.ask(TOOL_CALL_EVENT, **fields))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await eventually(lambda: heard(agent, TOOL_PROGRESS_NOTIFICATION))
            await agent.call(CANCEL_TOOL_CALL_EVENT, {"agent": "ag", "req_id": "r"})
        assert reply[0]["meta"]["a2c_cancelled"] is True
        before = len(heard(agent, TOOL_PROGRESS_NOTIFICATION))
        await anyio.sleep(0.3)
        assert len(heard(agent, TOOL_PROGRESS_NOTIFICATION)) == before


async def test_a_request_without_a_wish_for_progress_asks_no_server_for_it(hub: Running) -> None:
    async with watched(hub.url, server("a")) as (agent, _):
        result = await agent.tool("a.report", steps=1)
        assert result["content"][0]["text"] == "did not report"
        assert heard(agent, TOOL_PROGRESS_NOTIFICATION) == []


async def test_a_call_that_outlives_its_connection_reports_to_the_repeat_of_its_request(hub: Running) -> None:
    computer, office_id, agent = Computer("pc", mcp_servers=[server("a")], timings=FAST), new_office(), Agent()
    fields = {
        "tool_name": "a.report",
        "params": {"steps": 600, "seconds": 60},
        "timeout": 60,
        "req_id": "r",
        "progress": True,
    }
    links: list[LinkEvent] = []
    async with computer, SMCPComputerClient(computer, options(hub.url), on_event=links.append) as client:
        try:
            await agent.join(hub.url, office_id)
            await client.join_office(office_id)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(functools.partial(agent.ask, TOOL_CALL_EVENT, **fields))
                await eventually(lambda: heard(agent, TOOL_PROGRESS_NOTIFICATION))
                assert client._link._connection is not None
                await client._link._connection.eio.ws.close()
                await eventually(lambda: any(isinstance(event, Joined) and event.again for event in links))
                tasks.start_soon(functools.partial(agent.ask, TOOL_CALL_EVENT, **fields))
                before = len(heard(agent, TOOL_PROGRESS_NOTIFICATION))
                await eventually(lambda: len(heard(agent, TOOL_PROGRESS_NOTIFICATION)) > before + 1)
                await agent.call(CANCEL_TOOL_CALL_EVENT, {"agent": "ag", "req_id": "r"})
        finally:
            await agent.disconnect()


async def test_a_computer_that_has_moved_reports_nothing_of_the_other_office_s_calls(hub: Running) -> None:
    computer, before, after = Computer("pc", mcp_servers=[server("a")], timings=FAST), Agent(), Agent()
    report = {"tool_name": "a.report", "timeout": 60, "req_id": "r", "progress": True}
    async with computer, SMCPComputerClient(computer, options(hub.url)) as client:
        try:
            for agent in (before, after):
                await agent.join(hub.url, new_office())
            await client.join_office(before.office)
            async with anyio.create_task_group() as tasks:
                more = {"params": {"steps": 600, "seconds": 60}}
                tasks.start_soon(functools.partial(before.ask, TOOL_CALL_EVENT, **report, **more))
                await eventually(lambda: heard(before, TOOL_PROGRESS_NOTIFICATION))
                await client.join_office(after.office)
                await after.ask(TOOL_CALL_EVENT, **report, params={"steps": 3, "seconds": 0.6})
            reports = heard(after, TOOL_PROGRESS_NOTIFICATION)
            assert {report["total"] for report in reports} == {3}
        finally:
            for agent in (before, after):
                await agent.disconnect()
