"""A Computer in an office, over real servers: it answers, remembers, cancels, announces, and comes back."""

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.computer.calls.memory import CallMemory
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.catalogue import with_server_names
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.resources.shown import ResourceTimings
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.computer.watching.events import CallStarted
from a2c_smcp.errors import NameTakenError, TooManyRequestsError
from a2c_smcp.link.interface import Joined, LinkEvent, RejoinFailed
from a2c_smcp.server import OpenAuthentication
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_EVENT,
    ENTER_OFFICE_NOTIFICATION,
    GET_CONFIG_EVENT,
    GET_TOOLS_EVENT,
    LEAVE_OFFICE_NOTIFICATION,
    TOOL_CALL_EVENT,
    UPDATE_CONFIG_NOTIFICATION,
    UPDATE_DESKTOP_NOTIFICATION,
    UPDATE_RESOURCES_NOTIFICATION,
    UPDATE_TOOL_LIST_EVENT,
    UPDATE_TOOL_LIST_NOTIFICATION,
)
from a2c_smcp.wire import Encoded, codec, parse_response
from tests.computer.fakes.cable import Cable
from tests.computer.fakes.computers import FAST, Record, names, recorded, server, state, text
from tests.computer.fakes.offices import Agent, new_office, options
from tests.computer.fakes.processes import nothing_left_over
from tests.server.conftest import LIMITS
from tests.server.harness import Running, async_server, eventually, heard

#: Windows that are listed late would be announced late, among what a test has done by then.
PATIENT = ResourceTimings(list=15, subscribe=15)


class World:
    """One computer, its client and an agent in one office."""

    def __init__(self, computer: Computer, client: SMCPComputerClient, agent: Agent, record: Record) -> None:
        self.computer, self.client, self.agent, self.record = computer, client, agent, record
        self.links: list[LinkEvent] = []
        self._asked = 0

    async def stats(self) -> Any:
        """What the server a counted; `started` are the calls besides these."""
        stats = json.loads((await self.agent.tool("a.stats"))["content"][0]["text"])
        self._asked += 1
        return {**stats, "started": stats["called"] - self._asked}

    async def counted(self, what: str, number: int) -> None:
        with anyio.fail_after(20):
            while (await self.stats())[what] < number:
                pass

    async def cut(self) -> None:
        """As a cable that is pulled."""
        assert self.client._link._connection is not None
        await self.client._link._connection.eio.ws.close()

    async def rejoined(self, times: int = 1) -> None:
        await eventually(lambda: len([e for e in self.links if isinstance(e, Joined) and e.again]) >= times)


@asynccontextmanager
async def world(
    url: str, *servers: dict[str, Any], hub: str | None = None, link: Any = None, **more: Any
) -> AsyncIterator[World]:
    """`hub` is where the agent connects, if not where the computer does."""
    defaults = {"timings": FAST, "resource_timings": PATIENT}
    computer = Computer("pc", mcp_servers=servers or [server("a")], **{**defaults, **more})
    agent = Agent()
    links: list[LinkEvent] = []
    client = SMCPComputerClient(computer, options(url, **(link or {})), on_event=links.append)
    async with recorded(computer) as record, computer, client:
        it = World(computer, client, agent, record)
        it.links = links
        office = new_office()
        try:
            await agent.join(hub or url, office)
            await client.join_office(office)
            yield it
        finally:
            await agent.disconnect()


# --- answering


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_it_answers_tools_config_and_calls(kind: str, request: pytest.FixtureRequest) -> None:
    hub: Running = request.getfixturevalue("hub" if kind == "async" else "sync_hub")
    async with world(hub.url) as it:
        tools = parse_response(GET_TOOLS_EVENT, await it.agent.ask(GET_TOOLS_EVENT, req_id="t1"))
        assert tools["req_id"] == "t1"
        assert [tool["name"] for tool in tools["tools"]] == names(it.computer)
        config = await it.agent.ask(GET_CONFIG_EVENT)
        assert config == it.computer.get_config()
        assert parse_response(GET_CONFIG_EVENT, config)
        result = await it.agent.tool("a.echo", text="你好")
        assert set(result) == {"meta", "content", "structuredContent", "isError"}
        assert result["content"] == [{"type": "text", "text": "你好"}]
        call = it.computer.ended_calls[-1].call
        assert (call.agent, call.office) == ("ag", it.client._calls.office)


async def test_failures_have_their_codes_on_the_wire(hub: Running) -> None:
    async with world(hub.url, server("a", forbidden_tools=["echo"]), server("b", default_tool_meta=None)) as it:
        codes = {
            "nothing": 4001,
            "a.echo": 4002,
            "a.crash": 4003,
            "b.echo": 4005,
        }
        for tool, code in codes.items():
            result = await it.agent.tool(tool)
            assert (result["isError"], result["meta"]["error_code"]) == (True, code)
            assert result["content"][0]["text"]
        await it.record.reached("a", ServerState.RUNNING, 2)
        late = await it.agent.tool("a.sleep", 1, seconds=30)
        assert late["meta"] == {"error_code": 4004, "a2c_timeout": True}


async def test_a_request_for_another_computer_and_a_bad_one_are_refused(hub: Running) -> None:
    async with world(hub.url) as it:
        good = {"agent": "ag", "req_id": "1", "computer": "pc", "tool_name": "a.echo", "params": {}, "timeout": 5}

        async def send(event: str, data: Any) -> Any:
            """As if a server had passed this on; none would."""
            reply = await it.client._link._dispatch(event, (data,))
            return codec.loads(reply.text) if isinstance(reply, Encoded) else reply

        for event in (GET_TOOLS_EVENT, GET_CONFIG_EVENT, TOOL_CALL_EVENT):
            assert (await send(event, {**good, "computer": "other"}))["error"]["code"] == 404
            assert (await send(event, {**good, "req_id": 7}))["error"]["code"] == 400
            assert (await send(event, None))["error"]["code"] == 400
        refusal = await send(TOOL_CALL_EVENT, {**good, "timeout": 3601})
        assert "3600" in refusal["error"]["message"]
        assert refusal["isError"] is True
        assert refusal["content"][0]["text"] == refusal["error"]["message"]
        assert it.computer.history == ()


async def test_requests_that_are_refused_do_not_flood_the_log(hub: Running, caplog: pytest.LogCaptureFixture) -> None:
    async with world(hub.url) as it:
        began = time.monotonic()
        for event in (TOOL_CALL_EVENT, GET_CONFIG_EVENT):
            for number in range(500):
                bad = {
                    "agent": f"ag{number}",
                    "req_id": "a\nb",
                    "computer": "o\nther",
                    "tool_name": "t\n",
                    "params": {},
                }
                await it.client._link._dispatch(event, ({**bad, "timeout": 5},))
        most = 20 * (2 + time.monotonic() - began)
    for start in ("refused tool call", "refused client:get_config"):
        lines = [line for line in caplog.messages if line.startswith(start)]
        assert 20 <= len(lines) <= most
        assert not any("\n" in line for line in lines)


async def test_the_names_of_a_call_have_a_thousand_characters_at_most(hub: Running) -> None:
    async with world(hub.url) as it:
        good = {"req_id": "r" * 1000, "tool_name": "a.echo", "params": {"text": "x"}, "timeout": 20}
        assert not (await it.agent.ask(TOOL_CALL_EVENT, **good))["isError"]
        for field in ("req_id", "tool_name", "agent"):
            refused = await it.agent.ask(TOOL_CALL_EVENT, **{**good, field: "x" * 1001})
            assert (refused["error"]["code"], refused["error"]["details"]) == (400, {"field": field})
        assert len(it.computer.ended_calls) == 1


async def test_a_fault_of_ours_is_a_500_and_shows_nothing(hub: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(hub.url) as it:

        async def broken(*_: Any) -> None:
            raise RuntimeError("secret detail")

        monkeypatch.setattr(it.computer.tool_calls, "run", broken)
        result = await it.agent.tool("a.echo", 20, "same")
        assert result["error"]["code"] == 500
        assert "secret" not in str(result)
        monkeypatch.undo()
        assert (await it.agent.tool("a.echo", 20, "same", text="x"))["isError"] is False


async def test_a_result_that_is_too_large_is_413_and_the_connection_lives(hub: Running) -> None:
    async with world(hub.url) as it:
        for _ in range(2):
            result = await it.agent.tool("a.huge", 20, "big", size=LIMITS.max_message)
            assert result["meta"] == {"error_code": 413}
            assert result["isError"] is True
        assert (await it.agent.tool("a.huge", size=LIMITS.max_message - 2000))["isError"] is False
        assert it.links == [event for event in it.links if not isinstance(event, Joined) or not event.again]
        assert (await it.stats())["started"] == 2


async def test_our_own_agent_uses_it_and_takes_back_what_it_gave_up(hub: Running) -> None:
    office = new_office()
    computer = Computer("pc", mcp_servers=[server("a")], timings=FAST, resource_timings=PATIENT)
    async with (
        computer,
        SMCPComputerClient(computer, options(hub.url)) as client,
        AsyncSMCPAgentClient(options(hub.url), name="ag") as agent,
    ):
        await client.join_office(office)
        await agent.join_office(office)
        assert await agent.get_tools("pc") == with_server_names(computer.get_available_tools(), computer.tool_servers)
        assert await agent.get_config("pc") == computer.get_config()
        assert await agent.get_desktop("pc") == await computer.get_desktop()
        assert text(await agent.call_tool("pc", "a.echo", {"text": "你好"})) == "你好"
        waiting = asyncio.create_task(agent.call_tool("pc", "a.sleep", {"seconds": 30}))
        await eventually(lambda: client._calls.tasks)
        waiting.cancel()
        await asyncio.wait({waiting})
        await eventually(lambda: not client._calls.tasks)
        assert computer.history[-1]["success"] is False


# --- many, repeated, cancelled


async def test_a_killed_server_fails_fifty_calls_at_once_and_the_next_call_works(hub: Running) -> None:
    async with world(hub.url) as it:
        process = (await it.stats())["pid"]
        results: list[Any] = []

        async def call() -> None:
            results.append(await it.agent.tool("a.sleep", 30, seconds=30))

        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(call)
            await it.counted("started", 50)
            killed = time.monotonic()
            os.kill(process, signal.SIGKILL)
        assert time.monotonic() - killed < 20
        assert [result["meta"]["error_code"] for result in results] == [4003] * 50
        await it.record.reached("a", ServerState.RUNNING, 2)
        assert (await it.stats())["pid"] != process


async def test_a_request_that_arrives_twice_runs_once(hub: Running) -> None:
    async with world(hub.url) as it:
        results: list[Any] = []

        async def call() -> None:
            results.append(await it.agent.tool("a.sleep", 20, "twice", seconds=0.3))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            tasks.start_soon(call)
        await call()
        assert results == [results[0]] * 3
        assert (await it.stats())["started"] == 1
        assert len([record for record in it.computer.history if record["tool"] == "sleep"]) == 1
        for other in ({"tool_name": "a.echo"}, {"params": {"seconds": 1}}):
            request = {"tool_name": "a.sleep", "params": {"seconds": 0.3}, "timeout": 5, "req_id": "twice", **other}
            assert (await it.agent.ask(TOOL_CALL_EVENT, **request))["error"]["code"] == 400


async def test_a_repeat_of_a_call_whose_result_did_not_fit_is_told_so_and_runs_nothing(hub: Running) -> None:
    async with world(hub.url) as it:
        it.client._calls._memory = CallMemory(max_bytes=1000)
        first = await it.agent.tool("a.echo", 20, "large", text="x" * 1000)
        assert first["isError"] is False
        again = await it.agent.tool("a.echo", 20, "large", text="x" * 1000)
        assert (again["error"]["code"], again["error"]["details"]) == (500, {"may_have_run": True})
        other = await it.agent.tool("a.echo", 20, "large", text="y" * 1000)
        assert other["error"]["code"] == 400
        assert (await it.stats())["started"] == 1


async def test_a_repeat_on_a_connection_that_takes_less_gets_413_and_the_connection_stays(hub: Running) -> None:
    async with world(hub.url) as it:
        await it.agent.tool("a.echo", 20, "large", text="x" * 3000)
        connection = it.client._link._connection
        assert connection is not None
        connection.max_message, before = 2000, connection.max_message
        again = await it.agent.tool("a.echo", 20, "large", text="x" * 3000)
        assert again["error"]["code"] == 413
        connection.max_message = before
        assert (await it.agent.tool("a.echo", 20, "large", text="x" * 3000))["isError"] is False
        assert (await it.stats())["started"] == 1


async def test_a_repeat_that_waits_keeps_no_params(hub: Running) -> None:
    async with world(hub.url) as it:
        call = {"agent": "ag", "req_id": "1", "computer": "pc", "tool_name": "a.sleep", "timeout": 30}
        first, repeat = ({**call, "params": {"seconds": 30, "more": "x" * 2_000}} for _ in range(2))
        asked = [asyncio.create_task(it.client._link._dispatch(TOOL_CALL_EVENT, (data,))) for data in (first, repeat)]
        await eventually(lambda: repeat["params"] is None)
        assert first["params"]
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


async def test_a_call_that_outlives_its_connection_is_found_by_its_repeat(hub: Running) -> None:
    async with world(hub.url) as it:
        first: list[Any] = []
        process = (await it.stats())["pid"]

        async def call() -> None:
            first.append(await it.agent.tool("a.sleep", 20, "kept", seconds=1))

        async with anyio.create_task_group() as tasks:
            os.kill(process, signal.SIGSTOP)  # it has no result before the connection is cut
            tasks.start_soon(call)
            await eventually(lambda: it.client._calls.tasks)
            await it.cut()
        os.kill(process, signal.SIGCONT)
        assert first[0]["error"]["code"] == 404
        await it.rejoined()
        again = await it.agent.tool("a.sleep", 20, "kept", seconds=1)
        assert again["content"] == [{"type": "text", "text": "slept"}]
        assert (await it.stats())["started"] == 1


async def test_a_cancelled_call_stops_the_tool(hub: Running) -> None:
    async with world(hub.url) as it:
        results: list[Any] = []

        async def call() -> None:
            results.append(await it.agent.tool("a.sleep", 30, "mine", seconds=30))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await eventually(lambda: it.client._calls.tasks)
            assert await it.agent.call(CANCEL_TOOL_CALL_EVENT, {"agent": "ag", "req_id": "another"}) == {}
            assert await it.agent.call(CANCEL_TOOL_CALL_EVENT, {"agent": "ag", "req_id": "mine"}) == {}
        assert results[0]["meta"] == {"a2c_cancelled": True}
        assert results[0]["isError"] is True
        await it.counted("cancelled", 1)
        assert (await it.agent.tool("a.sleep", 30, "mine", seconds=30)) == results[0]


async def test_a_call_that_the_person_cancels_is_answered_so_and_runs_no_second_time(hub: Running) -> None:
    async with world(hub.url) as it:
        request = {"req_id": "once", "tool_name": "a.sleep", "params": {"seconds": 30}, "timeout": 20}
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await it.agent.ask(TOOL_CALL_EVENT, **request))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            (started,) = await it.record.of(CallStarted)
            assert (started.call.agent, started.call.req_id) == ("ag", "once")
            await it.counted("called", 2)
            assert it.computer.cancel_call(started.call.id, by="browser")
        await ask()
        assert answers[0] == answers[1]
        assert answers[0]["meta"] == {"a2c_cancelled": True}
        await it.counted("cancelled", 1)
        assert len([event for event in it.record.now(CallStarted) if event.call.req_id == "once"]) == 1


async def test_when_the_agent_goes_its_calls_are_cancelled(hub: Running) -> None:
    async with world(hub.url) as it:
        task = asyncio.create_task(it.agent.tool("a.sleep", 30, seconds=30))
        await eventually(lambda: it.client._calls.tasks)
        await it.agent.drop()
        await eventually(lambda: not it.client._calls.tasks)
        task.cancel()
        await asyncio.wait({task})
        assert it.computer.history[-1]["success"] is False


# --- announcing


async def announced(it: World, change: Callable[[], Awaitable[Any]]) -> set[str]:
    """What a change announces; a call behind it shows that there is no more to come."""
    kinds = {"tools": UPDATE_TOOL_LIST_NOTIFICATION, "config": UPDATE_CONFIG_NOTIFICATION}

    async def all_said() -> None:
        await eventually(lambda: not it.computer._happened.is_waiting)
        await anyio.wait_all_tasks_blocked()
        await eventually(lambda: not it.client._to_announce)
        await it.stats()

    await all_said()
    it.agent.received.clear()
    await change()
    await all_said()
    return {name for name, kind in kinds.items() if heard(it.agent, kind)}


async def test_it_announces_exactly_what_changed(hub: Running) -> None:
    inputs = [parse_input({"id": "i", "type": "promptString", "default": "x"})]
    async with world(hub.url, inputs=inputs) as it:
        computer = it.computer

        async def nothing() -> None:
            await computer.add_or_update_server(server("a"))
            computer.inputs.set_value("i", "value")

        async def add_tool() -> None:
            await it.agent.tool("a.add_tool", name="fresh")
            await it.record.until(lambda: "fresh" in names(computer))

        async def define() -> None:
            computer.inputs.put(parse_input({"id": "j", "type": "promptString"}))

        assert await announced(it, nothing) == set()
        assert await announced(it, define) == {"config"}
        assert await announced(it, lambda: computer.add_or_update_server(server("off", disabled=True))) == {"config"}
        assert await announced(it, lambda: computer.add_or_update_server(server("b"))) == {"tools", "config"}
        assert await announced(it, lambda: computer.stop_server("b")) == {"tools", "config"}
        assert await announced(it, lambda: computer.remove_server("b")) == {"config"}
        assert await announced(it, add_tool) == {"tools"}
        assert heard(it.agent, UPDATE_TOOL_LIST_NOTIFICATION) == [{"computer": "pc"}]


async def test_an_announcement_that_is_one_too_many_is_made_again(
    hub: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(hub.url, server("a")) as it:
        request, refused = it.client._link.request, list[str]()

        async def refuse_once(event: str, data: Any, timeout: float) -> Any:
            # The windows may be announced just as well, before and after: they were read when the server had begun.
            if event == UPDATE_TOOL_LIST_EVENT and not refused:
                refused.append(event)
                return (TooManyRequestsError("later").payload(),)
            return await request(event, data, timeout)

        monkeypatch.setattr(it.client._link, "request", refuse_once)
        await it.computer.stop_server("a")
        await eventually(lambda: heard(it.agent, UPDATE_TOOL_LIST_NOTIFICATION))
        assert refused


async def test_what_changed_before_it_joined_is_not_announced(hub: Running) -> None:
    computer = Computer("pc", mcp_servers=[server("a")], timings=FAST, resource_timings=PATIENT)
    agent = Agent()
    office = new_office()
    await agent.join(hub.url, office)
    async with SMCPComputerClient(computer, options(hub.url)) as client, computer:
        await client.join_office(office)
        await agent.tool("a.echo")
        received = [name for name, _ in agent.received]
        assert received[0] == ENTER_OFFICE_NOTIFICATION
        # Changes are paced: the last one of the windows may still be on its way when the computer enters.
        assert set(received[1:]) <= {UPDATE_DESKTOP_NOTIFICATION, UPDATE_RESOURCES_NOTIFICATION}
        await client.leave_office()
        await eventually(lambda: heard(agent, LEAVE_OFFICE_NOTIFICATION))
    await agent.disconnect()


# --- coming back


async def test_after_a_cut_it_is_back_and_callable(hub: Running) -> None:
    async with world(hub.url) as it:
        await eventually(lambda: heard(it.agent, ENTER_OFFICE_NOTIFICATION))
        it.agent.received.clear()
        await it.cut()
        await it.rejoined()
        assert (await it.agent.tool("a.echo", text="x"))["isError"] is False
        assert [name for name, _ in it.agent.received] == [LEAVE_OFFICE_NOTIFICATION, ENTER_OFFICE_NOTIFICATION]


async def test_after_a_restart_of_the_server_it_is_back_and_callable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    computer = Computer("pc", mcp_servers=[server("a")], timings=FAST)
    events: list[LinkEvent] = []
    async with computer:
        with async_server(OpenAuthentication(), LIMITS, port=port) as first:
            client = SMCPComputerClient(computer, options(first.url), on_event=events.append)
            await client.connect()
            await client.join_office("restarted")
        try:
            with async_server(OpenAuthentication(), LIMITS, port=port) as second:
                await eventually(lambda: any(isinstance(e, Joined) and e.again for e in events))
                agent = Agent()
                await agent.join(second.url, "restarted")
                assert (await agent.tool("a.echo", text="back"))["content"][0]["text"] == "back"
                await agent.disconnect()
                await client.disconnect()
        finally:
            await client.disconnect()


async def test_a_name_that_is_held_is_tried_for_again_and_what_changed_meanwhile_is_said(hub: Running) -> None:
    async with Cable(hub.url) as cable, world(cable.url, hub=hub.url, link={"rejoin_report_after": 0.2}) as it:
        # As its own old session would hold the name.
        other = SMCPComputerClient(Computer("pc"), options(hub.url))
        await other.connect()
        with pytest.raises(NameTakenError):
            await other.join_office(it.agent.office)
        await cable.pull()
        await eventually(lambda: heard(it.agent, LEAVE_OFFICE_NOTIFICATION))
        await other.join_office(it.agent.office)
        await cable.plug_in()
        await eventually(lambda: any(isinstance(event, RejoinFailed) for event in it.links))
        await it.computer.add_or_update_server(server("b"))
        assert heard(it.agent, UPDATE_TOOL_LIST_NOTIFICATION) == []
        await other.disconnect()
        await it.rejoined()
        await eventually(lambda: heard(it.agent, UPDATE_TOOL_LIST_NOTIFICATION))
        assert (await it.agent.tool("b.echo", text="x"))["isError"] is False


# --- the end


@pytest.mark.parametrize("how", ["leaves", "moves"])
async def test_a_computer_that_leaves_its_office_cancels_the_calls_of_the_agent_there(hub: Running, how: str) -> None:
    async with world(hub.url) as it:
        task = asyncio.create_task(it.agent.tool("a.sleep", 30, seconds=30))
        await eventually(lambda: it.computer.running_calls)
        await it.client.join_office(it.agent.office)  # where it is already
        assert it.computer.running_calls
        await (it.client.leave_office() if how == "leaves" else it.client.join_office(new_office()))
        assert (await task)["error"]["code"] == 404
        await eventually(lambda: not it.computer.running_calls)
        assert it.computer.ended_calls[-1].cancelled


async def test_disconnecting_cancels_what_runs_and_leaves_nothing(hub: Running) -> None:
    with nothing_left_over(processes=False):
        async with world(hub.url) as it:
            task = asyncio.create_task(it.agent.tool("a.sleep", 30, seconds=30))
            await eventually(lambda: it.client._calls.tasks)
            await it.client.disconnect()
            await it.client.disconnect()
            assert (await task)["error"]["code"] == 404
            assert it.client._calls.tasks == []
            assert state(it.computer, "a") is ServerState.RUNNING
