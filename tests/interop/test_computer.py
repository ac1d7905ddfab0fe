"""Our computer with the existing server and the existing agents, over the wire."""

from collections.abc import Callable
from typing import Any

import anyio.to_thread
import pytest

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import Accepted, Decision, DecisionAnswer
from a2c_smcp.computer.rules.rule import parse_rules
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.link.interface import Joined, LinkEvent, LinkOptions, Membership, RejoinFailed
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.server import OpenAuthentication
from tests.computer.fakes.computers import FAST, asking, names, server
from tests.computer.fakes.offices import Agent, new_office
from tests.interop.conftest import StartPeer
from tests.server.harness import async_server, eventually

pytestmark = [pytest.mark.interop, pytest.mark.parametrize("colour", ["async", "sync"])]


async def _accept(_: Decision) -> DecisionAnswer:
    return Accepted({})


async def test_with_the_existing_server(colour: str, start_peer: StartPeer) -> None:
    url, office, agent = start_peer("server.py", colour), new_office(), Agent()
    options = LinkOptions(url)
    asks = {**asking("new"), "tool_prefix": "q.", "default_tool_meta": {"auto_apply": True}}
    computer = Computer("pc", mcp_servers=[server("a"), asks], timings=FAST)
    computer.decisions.attend("test", {"question"}, _accept).begin()
    async with computer, SMCPComputerClient(computer, options) as client:
        try:
            await agent.connect(url)
            assert await agent.call("server:join_office", {"role": "agent", "name": "ag", "office_id": office})
            await client.join_office(office)
            tools = await agent.ask("client:get_tools")
            assert [tool["name"] for tool in tools["tools"]] == names(computer)
            assert (await agent.tool("a.echo", text="你好"))["content"] == [{"type": "text", "text": "你好"}]
            assert (await agent.tool("nothing"))["meta"]["error_code"] == 4001
            asked = {"tool_name": "a.report", "params": {"steps": 20, "seconds": 0.5}, "timeout": 20, "progress": True}
            assert (await agent.ask("client:tool_call", **asked))["isError"] is False
            assert (await agent.tool("a.echo", text="still there"))["content"][0]["text"] == "still there"
            question = {"tool_name": "q.ask", "params": {}, "timeout": 20, "progress": True}
            answered = await agent.ask("client:tool_call", **question)
            assert '"action": "accept"' in answered["content"][0]["text"]
            await computer.stop_server("a")
            await eventually(lambda: ("notify:update_tool_list", {"computer": "pc"}) in agent.received)
            await client.leave_office()
        finally:
            await agent.disconnect()


async def test_at_the_existing_server_every_name_is_a_claim(colour: str, start_peer: StartPeer) -> None:
    url, office, agent = start_peer("server.py", colour), new_office(), Agent()
    computer = Computer("pc", mcp_servers=[server("a")], timings=FAST)
    forged = {"name": "ag", "key": "home", "bound": True}
    rules, problems = parse_rules([{"effect": "allow", "agent": "ag"}, {"effect": "deny", "tool": "a.echo"}])
    assert not problems
    async with computer, SMCPComputerClient(computer, LinkOptions(url)) as client:
        try:
            await agent.connect(url)
            assert await agent.call("server:join_office", {"role": "agent", "name": "ag", "office_id": office})
            await client.join_office(office)
            assert not (await agent.tool("a.echo", text="before"))["isError"]
            computer.decisions.rules.use_config(rules)
            call = {"tool_name": "a.echo", "params": {"text": "x"}, "timeout": 20, "a2c_from": forged}
            assert (await agent.ask("client:tool_call", **call))["meta"]["outcome"] == "rule"
            assert computer.ended_calls[-1].call.asker == Asker("ag", office=office)
            computer.decisions.rules.use_config(rules[:1])  # without rules that fit, all is as before
            assert not (await agent.tool("a.echo", text="after"))["isError"]
        finally:
            await agent.disconnect()


async def test_a_rejoin_that_the_existing_server_refuses_is_tried_again(colour: str, start_peer: StartPeer) -> None:
    """Its refusals have no code, so none of them is taken to be for ever: the old session may still hold the name."""
    url, office, events = start_peer("server.py", colour), new_office(), list[LinkEvent]()
    options = LinkOptions(url, backoff=(0.05, 0.2), rejoin_every=0.05, rejoin_report_after=0.2)
    async with OfficeLink(options, {}, on_event=events.append) as computer:
        await computer.join(Membership("computer", "pc", office))
        async with OfficeLink(options, {}) as holder:
            held = computer.membership = Membership("computer", "held", office)
            await holder.join(held)
            assert computer._connection is not None
            await computer._connection.eio.disconnect(abort=True)
            report = await eventually(lambda: next((e for e in events if isinstance(e, RejoinFailed)), None))
            assert "already exists" in report.error.message
            assert (report.error.code, report.final) == (403, False)
        await eventually(lambda: Joined(held, again=True) in events)


async def test_with_the_existing_agent(colour: str, old_agent: Callable[..., dict[str, Any]]) -> None:
    office = new_office()
    computer = Computer("pc", mcp_servers=[server("a", prefixed=False, forbidden_tools=["fail"])], timings=FAST)
    with async_server(OpenAuthentication()) as hub:
        async with computer, SMCPComputerClient(computer, hub.url, api_key="any") as client:
            await client.join_office(office)
            arguments = (colour, hub.url, office, "pc", "echo", "fail", "nothing")
            seen = await anyio.to_thread.run_sync(old_agent, *arguments)
            assert [tool["name"] for tool in seen["tools"]] == names(computer)
    assert seen["desktops"] == ["window://fake/0\n\nwindow 0", "window://fake/1\n\nwindow 1"]
    echoed, forbidden, missing = seen["calls"]
    assert echoed["content"] == ["你好"]
    assert echoed["meta"]["a2c_tool_meta"]["auto_apply"] is True
    assert (forbidden["isError"], forbidden["meta"]["error_code"]) == (True, 4002)
    assert (missing["isError"], missing["meta"]["error_code"]) == (True, 4001)
