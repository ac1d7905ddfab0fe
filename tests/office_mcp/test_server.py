"""The office as an MCP server, in memory, in both eras: what hosts list, call, read and hear."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from a2c_smcp.agent import AsyncSMCPAgentClient, LinkOptions
from a2c_smcp.agent.for_models.remembered_office import RememberedOffice
from a2c_smcp.agent.for_models.sizing import MODEL_SIZE
from a2c_smcp.agent.for_models.watching import OfficeWaits
from a2c_smcp.computer import Computer, SMCPComputerClient
from a2c_smcp.errors import SMCPError, ToolConfirmationError
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.office_mcp import office_server
from a2c_smcp.server import APIKeyAuthentication
from a2c_smcp.smcp import (
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_PROMPTS_EVENT,
    GET_RESOURCES_EVENT,
    READ_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
    TOOL_PROGRESS_EVENT,
    UPDATE_DESKTOP_EVENT,
    UPDATE_FINDER_EVENT,
    UPDATE_TOOL_LIST_EVENT,
)
from tests.agent.conftest import MakeAgent, MakeComputer
from tests.agent.harness import DOCUMENT, FakeComputer, a_document, a_tool
from tests.computer.fakes.computers import FAST
from tests.computer.fakes.computers import server as fake_server
from tests.computer.fakes.offices import options as fast_options
from tests.mcp_server import clients
from tests.mcp_server.clients import ERAS, Listening, connected, watching
from tests.server.conftest import LIMITS
from tests.server.harness import Running, async_server, eventually

OWN = ["list_computers", "see_desktop", "find_documents", "read_document"]
SEARCH = ["search_tools", "call_tool"]
both_eras = pytest.mark.parametrize("era", ERAS)
TRACED: Any = {"traceparent": "00-1", "com.example/x": {"y": [1]}}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer than a list waits; the tests of that waiting set their own time."""
    monkeypatch.setattr("a2c_smcp.agent.for_models.watching._WAITS", OfficeWaits(25.0, 25.0, 25.0))


@asynccontextmanager
async def host(
    agent: AsyncSMCPAgentClient, era: str = ERAS[0], /, **options: Any
) -> AsyncIterator[tuple[Client, Listening]]:
    async with connected(office_server(agent, **options).mcp, era) as (client, listening):
        yield client, listening


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def say(client: Client, tool: str, /, **arguments: Any) -> str:
    """What a tool says, also when it says what went wrong."""
    result = await client.call_tool(tool, arguments)
    assert result.meta is None or set(result.meta) <= {"io.modelcontextprotocol/serverInfo"}
    return "\n".join(item.text for item in result.content if item.type == "text")


def answering(reply: Any) -> Callable[[FakeComputer], None]:
    def setup(computer: FakeComputer) -> None:
        computer.override[TOOL_CALL_EVENT] = reply if callable(reply) else lambda _: reply

    return setup


# --- tools


@both_eras
async def test_the_tools_of_every_computer_are_listed_with_its_name(
    make_agent: MakeAgent, make_computer: MakeComputer, era: str
) -> None:
    annotated = {
        **a_tool("read.file"),
        "return_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "meta": {
            "MCP_TOOL_TITLE": "Read a file",
            "MCP_TOOL_ANNOTATION": json.dumps({"readOnlyHint": True, "title": "old"}),
            "a2c_tool_meta": "{}",
            "inner": "secret",
        },
    }
    await make_computer("laptop")
    await make_computer("书房", lambda computer: setattr(computer, "tools", [annotated]))
    async with host(await make_agent(), era) as (client, _):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools)[:4] == OWN
    assert not set(SEARCH) & set(tools)
    echo, read = tools["laptop__echo"], next(tools[name] for name in tools if name.startswith("pc-"))
    assert (echo.title, echo.description) == ("echo (laptop)", "On laptop: echos")
    assert echo.input_schema == a_tool("echo")["params_schema"]
    assert read.title == "Read a file (书房)"
    assert read.annotations is not None
    assert read.annotations.read_only_hint is True
    assert read.output_schema == annotated["return_schema"]
    assert [tool.meta for tool in tools.values()] == [None] * len(tools)


@both_eras
async def test_a_call_reaches_its_computer_and_everything_comes_back(
    make_agent: MakeAgent, make_computer: MakeComputer, era: str
) -> None:
    content = [
        {"type": "text", "text": "hello", "_meta": {"inner": 1}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "x://y", "text": "inside", "_meta": {"inner": 1}}},
    ]
    meta = {"inner": 1, "a2c_tool_meta": {}, "io.modelcontextprotocol/serverInfo": {"name": "x", "version": "1"}}
    reply = {"meta": meta, "content": content, "structuredContent": {"n": 1}, "isError": False}
    desk = await make_computer("desk", answering(reply))
    await make_computer("laptop")
    async with host(await make_agent(), era) as (client, _):
        result = await client.call_tool("desk__echo", {"text": "hi"}, meta=TRACED)
        assert await say(client, "laptop__echo", text="other") == "other"
    [asked] = desk.requests(TOOL_CALL_EVENT)
    assert (asked["tool_name"], asked["params"], asked["timeout"]) == ("echo", {"text": "hi"}, 300)
    assert [item.type for item in result.content] == ["text", "image", "audio", "resource"]
    assert result.structured_content == {"n": 1}
    assert not result.is_error
    # What the MCP server says is passed on, and what it or we say to our own clients is not.
    assert asked["meta"] == TRACED
    assert result.meta is not None
    assert result.meta["inner"] == 1
    assert set(result.meta) <= {"inner", "io.modelcontextprotocol/serverInfo"}
    assert "a2c-office" in str(result.meta) or len(result.meta) == 1
    text, *_, resource = result.content
    assert text.meta == {"inner": 1}
    assert isinstance(resource, types.EmbeddedResource)
    assert resource.resource.meta == {"inner": 1}


async def test_one_computer_only_keeps_the_names_of_its_tools(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    tools = [a_tool("echo"), a_tool("read_document")]
    await make_computer("laptop", lambda computer: setattr(computer, "tools", tools))
    await make_computer("desk")
    async with host(await make_agent(), computer="laptop") as (client, _):
        listed = await names(client)
        assert listed[:5] == [*OWN, "echo"]
        assert listed[5].startswith("read_document-")  # ours keeps its name
        assert len(listed) == 6
        assert await say(client, "echo", text="hi") == "hi"
        assert "In the office" in await say(client, "list_computers")
        assert "desk" not in await say(client, "list_computers")
        uris = [resource.uri for resource in (await client.list_resources()).resources]
        assert {"a2c://laptop/desktop", DOCUMENT} <= set(uris)
        assert (await client.read_resource(DOCUMENT)).contents
        with pytest.raises(MCPError):
            await client.read_resource("a2c://desk/desktop")


async def test_a_short_name_stands_for_a_computer(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    await make_computer("书房的电脑")
    async with host(await make_agent(), short_names={"书房的电脑": "study"}) as (client, _):
        assert "study__echo" in await names(client)
        assert "called study__…" in await say(client, "list_computers")


async def test_servers_that_do_not_run_are_told_of(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    computer = await make_computer("laptop")
    infos: dict[str, Any] = {f"s{n}": {"state": "failed", "reason": "HTTP 401" + "x" * 9000} for n in range(30)}
    computer.override[GET_CONFIG_EVENT] = lambda _: {"servers": {}, "inputs": None, "server_info": infos}
    async with host(await make_agent()) as (client, _):
        said = await say(client, "list_computers")
        assert "its MCP server s0 is failed: HTTP 401" in said
        assert "and 10 more" in said
        assert len(said) < 20 * 400
        infos.clear()
        infos["odd"] = {}
        assert "its MCP server odd is unknown" in await say(client, "list_computers")
        computer.override[GET_CONFIG_EVENT] = lambda _: {"servers": {}, "server_info": ["odd"]}
        assert "its MCP server" not in await say(client, "list_computers")


@pytest.mark.parametrize("short", [{"a": "no blanks"}, {"a": "x__y"}, {"a": "same", "b": "same"}])
async def test_short_names_that_cannot_be_are_refused(make_agent: MakeAgent, short: dict[str, str]) -> None:
    agent = await make_agent()
    with pytest.raises(ValueError, match="short name"):
        office_server(agent, short_names=short)


async def test_a_tool_with_a_schema_that_hosts_cannot_read_is_shown_and_called_with_any_arguments(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    odd = {**a_tool("odd"), "return_schema": {"type": "object", "properties": 7}, "params_schema": {"type": 7}}

    def setup(computer: FakeComputer) -> None:
        computer.tools = [odd, a_tool("echo")]
        answering(lambda request: FakeComputer.result(str(request["params"])))(computer)

    await make_computer("laptop", setup)
    async with host(await make_agent()) as (client, _):
        assert {"laptop__odd", "laptop__echo"} <= set(await names(client))
        assert await say(client, "laptop__odd", type=[7]) == "{'type': [7]}"
        said = await say(client, "list_computers")
        assert "schemas that are shown without what some hosts cannot read: odd (" in said
        assert "echo" not in said


# --- failures that a model can read


@both_eras
async def test_failures_are_results_that_say_what_to_do(
    make_agent: MakeAgent, make_computer: MakeComputer, era: str
) -> None:
    replies = {
        "down": FakeComputer.result("it broke", isError=True, meta={"error_code": 4003}),
        "slow": FakeComputer.result("too slow", isError=True, meta={"error_code": 4004, "a2c_timeout": True}),
        "ask": ToolConfirmationError("ask").payload(),
        "soon": FakeComputer.result("no tool", isError=True, meta={"error_code": 4001, "starting": ["s"]}),
        "own": FakeComputer.result("its own words", isError=True),
    }

    def setup(computer: FakeComputer) -> None:
        computer.tools = [a_tool(name) for name in replies]
        computer.override[TOOL_CALL_EVENT] = lambda data: replies[data["tool_name"]]

    computer = await make_computer("laptop", setup)
    async with host(await make_agent(), era, timeout=7) as (client, _):
        await names(client)  # after a list, no call waits for an empty office
        said = {name: await client.call_tool(f"laptop__{name}", {}) for name in replies}
        texts = {
            name: "\n".join(item.text for item in result.content if item.type == "text")
            for name, result in said.items()
        }
        assert all(result.is_error for result in said.values())
        assert "Try once more" in texts["down"]
        assert "after 7 s" in texts["slow"]
        assert "OpenAI Agents" in texts["slow"]
        assert "A person at laptop has to agree" in texts["ask"]
        assert "still starting" in texts["soon"]
        assert texts["own"] == "its own words"
        await computer.peer.disconnect()
        gone = await client.call_tool("laptop__own", {})
        assert gone.is_error
        assert "not in the office" in str(gone.content)


async def test_a_name_that_never_was_is_answered_too(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    await make_computer()
    async with host(await make_agent()) as (client, _):
        result = await client.call_tool("laptop__nothing", {})
        assert result.is_error
        assert "laptop has no such tool now" in str(result.content)
        assert "list_computers" in await say(client, "desk__nothing")


@both_eras
async def test_links_lead_through_the_office(make_agent: MakeAgent, make_computer: MakeComputer, era: str) -> None:
    links = [DOCUMENT, "window://h/main", "https://example.org/x", "file:///etc/passwd"]
    content = [{"type": "resource_link", "name": "n", "uri": uri} for uri in links]
    reply = {"meta": None, "content": content, "structuredContent": None, "isError": False}
    await make_computer("my pc", answering(reply))
    async with host(await make_agent(), era) as (client, _):
        [name] = [name for name in await names(client) if name not in OWN]
        document, window, web, file = (await client.call_tool(name, {})).content
        assert isinstance(document, types.ResourceLink)
        assert document.uri == "a2c://my%20pc/dpe/com.example.docs/report"
        assert (await client.read_resource(document.uri)).contents
        assert isinstance(window, types.ResourceLink)
        assert window.uri == "a2c://my%20pc/window/h/main"
        assert isinstance(web, types.ResourceLink)
        assert web.uri == "https://example.org/x"
        assert isinstance(file, types.ResourceLink)
        assert file.uri == "a2c://my%20pc/file//etc/passwd"


async def test_a_server_that_allows_less_time_is_obeyed(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    computer, agent = await make_computer(), await make_agent()
    async with host(agent, timeout=1_000_000) as (client, _):
        assert await say(client, "laptop__echo", text="hi") == "hi"
    async with host(agent, timeout=60, approval_timeout=1_000_000) as (client, _):
        assert await say(client, "laptop__echo", text="hi") == "hi"
    once, twice = computer.requests(TOOL_CALL_EVENT)
    assert 1 <= once["timeout"] < 1_000_000
    assert "approval_timeout" not in once
    assert (twice["timeout"], twice["approval_timeout"]) == (60, once["timeout"] - 60), "the sum is what it allows"


# --- who is there


@both_eras
async def test_computers_come_and_go_and_the_list_follows(
    make_agent: MakeAgent, make_computer: MakeComputer, era: str
) -> None:
    laptop = await make_computer("laptop")
    async with host(await make_agent(), era) as (client, listening), watching(client, listening):
        assert "laptop__echo" in await names(client)
        desk = await make_computer("desk")
        await listening.of("tools")
        await eventually_listed(client, "desk__echo")
        laptop.tools = [a_tool("new")]
        await laptop.announce(UPDATE_TOOL_LIST_EVENT)
        await listening.of("tools")
        await eventually_listed(client, "laptop__new")
        await desk.peer.disconnect()
        await listening.of("tools")
        await eventually_listed(client, "desk__echo", listed=False)


async def eventually_listed(client: Client, name: str, *, listed: bool = True) -> None:
    async def is_so() -> bool:
        return (name in await names(client)) is listed

    await clients.eventually(is_so)


async def test_a_computer_that_left_during_a_disconnection_is_missed(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    await make_computer("laptop")
    desk = await make_computer("desk")
    agent = await make_agent()
    async with host(agent) as (client, listening):
        assert "desk__echo" in await names(client)
        listening.heard.clear()
        await agent.cut()
        await desk.peer.disconnect()
        await listening.until(lambda: "tools" in listening.heard)
        await eventually_listed(client, "desk__echo", listed=False)


async def test_an_empty_office_is_said_to_be_empty(make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2c_smcp.agent.for_models.watching._WAITS", OfficeWaits(0.2, 0.2, 0.2))
    async with host(await make_agent()) as (client, _):
        assert await names(client) == OWN
        assert "is empty: no computer is in it" in await say(client, "list_computers")
        assert "empty" in await say(client, "see_desktop")


async def test_a_list_waits_for_computers_that_are_about_to_come(
    make_agent: MakeAgent, make_computer: MakeComputer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2c_smcp.agent.for_models.watching._WAITS", OfficeWaits(30.0, 30.0, 30.0))

    async def come() -> None:
        await make_computer("laptop")

    async with host(await make_agent()) as (client, _), anyio.create_task_group() as tasks:
        tasks.start_soon(come)
        with anyio.fail_after(25):
            assert "laptop__echo" in await names(client)


async def test_no_server_is_an_answer_and_later_there_is_one(
    make_computer: MakeComputer, server: Running, office: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2c_smcp.agent.for_models.watching._WAITS", OfficeWaits(0.2, 0.2, 0.2))
    agent = AsyncSMCPAgentClient("http://127.0.0.1:1", name="ada")
    agent.attend(office)
    try:
        await eventually(lambda: "yet" not in str(agent.problem))  # it has tried
        async with host(agent) as (client, listening):
            assert await names(client) == OWN
            assert "cannot connect to http://127.0.0.1:1" in await say(client, "list_computers")
            assert "cannot be used right now" in await say(client, "laptop__echo")
            await make_computer("laptop")
            cast("OfficeLink", agent._link).options = LinkOptions(server.url)  # as if the server had come up there
            await listening.of("tools")
            await eventually_listed(client, "laptop__echo")
            assert await say(client, "laptop__echo", text="hi") == "hi"
    finally:
        await agent.close()


async def test_the_tools_of_the_last_time_are_listed_until_the_office_tells_its_own(
    make_computer: MakeComputer, server: Running, office: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("a2c_smcp.agent.for_models.watching._WAITS", OfficeWaits(0.2, 25.0, 0.2))
    memory = RememberedOffice(tmp_path / "lab.json")
    memory.save({"laptop": cast("Any", [a_tool("echo")]), "sold": cast("Any", [a_tool("echo")])})
    agent = AsyncSMCPAgentClient("http://127.0.0.1:1", name="ada")
    agent.attend(office)
    try:
        await eventually(lambda: "yet" not in str(agent.problem))
        async with host(agent, memory=memory) as (client, listening):
            assert await names(client) == [*OWN, "laptop__echo", "sold__echo"]
            assert "those of the last time (laptop: 1 tools, sold: 1 tools)" in await say(client, "list_computers")
            assert "cannot connect to http://127.0.0.1:1" in await say(client, "laptop__echo", text="hi")
            await make_computer("laptop")
            cast("OfficeLink", agent._link).options = LinkOptions(server.url)
            await listening.of("tools")
            await eventually_listed(client, "sold__echo", listed=False)
            assert await say(client, "laptop__echo", text="hi") == "hi"
            await eventually(lambda: set(memory.load()) == {"laptop"})
    finally:
        await agent.close()


async def test_a_wrong_key_is_said_and_not_shown(office: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2c_smcp.agent.for_models.watching._WAITS", OfficeWaits(0.2, 0.2, 0.2))
    with async_server(APIKeyAuthentication(["right"]), LIMITS) as running:
        agent = AsyncSMCPAgentClient(running.url, name="ada", api_key="wrong-key")
        agent.attend(office)
        try:
            await eventually(lambda: "yet" not in str(agent.problem))
            async with host(agent) as (client, _):
                assert await names(client) == OWN
                said = await say(client, "list_computers")
                assert "cannot be used right now" in said
                assert "key" in said
                assert "wrong-key" not in said
        finally:
            await agent.close()


# --- cancellation, progress


@both_eras
async def test_one_host_cancels_and_the_other_does_not(
    make_agent: MakeAgent, make_computer: MakeComputer, era: str
) -> None:
    computer = await make_computer("laptop", lambda computer: setattr(computer, "tools", [a_tool("slow")]))
    office = office_server(await make_agent())
    async with connected(office.mcp, era) as (one, _), connected(office.mcp, era) as (other, _):
        staying = asyncio.create_task(other.call_tool("laptop__slow", {"text": "other"}))
        await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 1)
        leaving = asyncio.create_task(one.call_tool("laptop__slow", {"text": "mine"}))
        await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 2)
        kept, taken_back = (data["req_id"] for data in computer.requests(TOOL_CALL_EVENT))
        leaving.cancel()
        await eventually(lambda: computer.cancelled(taken_back))
        assert not computer.cancelled(kept)
        staying.cancel()
        await eventually(lambda: computer.cancelled(kept))


async def test_progress_comes_through(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    """Not in the newer era: in memory its requests carry no token that would say that progress is wanted."""
    computer = await make_computer("laptop", lambda computer: setattr(computer, "tools", [a_tool("held")]))

    async def report() -> None:
        await eventually(lambda: computer.requests(TOOL_CALL_EVENT))
        [data] = computer.requests(TOOL_CALL_EVENT)
        assert data["progress"] is True
        about = {"computer": "laptop", "agent": data["agent"], "req_id": data["req_id"]}
        waiting = {"progress": 0.0, "message": "waiting for the person at the computer"}
        await computer.peer.emit(TOOL_PROGRESS_EVENT, {**about, **waiting})
        await eventually(lambda: heard)
        await computer.peer.emit(TOOL_PROGRESS_EVENT, {**about, "progress": 2.0, "total": 4.0})
        await eventually(lambda: len(heard) == 2)
        computer.release.set()

    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with host(await make_agent()) as (client, _), anyio.create_task_group() as tasks:
        tasks.start_soon(report)
        result = await client.call_tool("laptop__held", {}, progress_callback=hear)
        assert not result.is_error
    assert heard == [(0.0, None, "waiting for the person at the computer"), (2.0, 4.0, None)]


async def test_a_call_that_waits_for_a_person_says_so_as_progress(
    make_agent: MakeAgent, server: Running, office: str
) -> None:
    agreed = anyio.Event()

    async def confirm(*_: Any) -> bool:
        await agreed.wait()
        return True

    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)
        agreed.set()

    config = fake_server("fake", prefixed=False, default_tool_meta={"auto_apply": False})
    computer = Computer("desk", mcp_servers=[config], timings=FAST, confirm_callback=confirm)
    async with computer, SMCPComputerClient(computer, fast_options(server.url)) as member:
        await member.join_office(office)
        async with host(await make_agent()) as (client, _):
            await eventually_listed(client, "desk__echo")
            result = await client.call_tool("desk__echo", {"text": "hi"}, progress_callback=hear)
            assert not result.is_error
    assert heard == ["waiting for the person at the computer"]


# --- search


def many(computer: FakeComputer) -> None:
    computer.tools = [a_tool(f"tool{number}") for number in range(50)]
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    computer.tools.append({**a_tool("forecast"), "description": "Tells the weather.", "params_schema": schema})


@both_eras
async def test_many_tools_are_searched_for_and_called_by_one(
    make_agent: MakeAgent, make_computer: MakeComputer, era: str
) -> None:
    def setup(computer: FakeComputer) -> None:
        many(computer)
        computer.override[TOOL_CALL_EVENT] = lambda data: computer.result(f"in {data['params']['city']}: rain")

    computer = await make_computer("laptop", setup)
    async with host(await make_agent(), era) as (client, _):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == [*OWN, *SEARCH]
        assert (tools["call_tool"].annotations or types.ToolAnnotations()).destructive_hint is True
        assert (tools["search_tools"].annotations or types.ToolAnnotations()).read_only_hint is True
        head, first, *_ = (await say(client, "search_tools", query="what is the weather?")).splitlines()
        assert "call_tool" in head
        found = json.loads(first)
        assert (found["computer"], found["tool"]) == ("laptop", "forecast")
        assert found["arguments"]["required"] == ["city"]

        call = {"computer": "laptop", "tool": "forecast"}
        assert await say(client, "call_tool", **call, arguments={"city": "Bern"}) == "in Bern: rain"
        assert await say(client, "call_tool", **call, arguments='{"city": "Bern"}') == "in Bern: rain"
        # It can be called by the name that a list would have had.
        assert await say(client, "laptop__forecast", city="Bern") == "in Bern: rain"

        asked = len(computer.requests(TOOL_CALL_EVENT))
        for misfit in ({}, {"city": 7}, "no object", None):
            said = await say(client, "call_tool", **call, arguments=misfit)
            assert "do not fit" in said
            assert '"required": ["city"]' in said
        said = await say(client, "call_tool", computer="laptop", tool="forcast")
        assert said.startswith("laptop has no tool 'forcast'. It has forecast")
        assert '"properties"' not in said
        assert "Did you mean laptop__forecast?" in await say(client, "laptop__forcast")
        assert "no computer 'desk'" in await say(client, "call_tool", computer="desk", tool="forecast")
        assert "do not fit call_tool" in await say(client, "call_tool", tool=7)
        assert len(computer.requests(TOOL_CALL_EVENT)) == asked


async def test_a_search_without_a_hit_names_what_there_is(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    await make_computer("laptop", many)
    async with host(await make_agent()) as (client, _):
        said = await say(client, "search_tools", query="海象")
        assert "laptop: tool0, tool1" in said
        assert "The descriptions are in English" in said


async def test_a_host_that_searches_is_not_told_of_every_tool(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    laptop = await make_computer("laptop", many)
    async with host(await make_agent()) as (client, listening):
        assert "search_tools" in await names(client)
        listening.heard.clear()
        laptop.tools = [{**a_tool("walrus"), "description": "Walrus."}, *laptop.tools]
        await laptop.announce(UPDATE_TOOL_LIST_EVENT)

        async def is_found() -> bool:
            return '"walrus"' in await say(client, "search_tools", query="walrus")

        await clients.eventually(is_found)
        assert "tools" not in listening.heard


async def test_schemas_that_do_not_fit_are_left_out(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    def setup(computer: FakeComputer) -> None:
        large = {"type": "object", "properties": {"x": {"type": "integer", "description": "y" * 15_000}}}
        computer.tools = [{**a_tool(f"tool{number}"), "params_schema": large} for number in range(3)]

    await make_computer("laptop", setup)
    async with host(await make_agent(), search="always") as (client, _):
        said = await say(client, "search_tools", query="tool")
        assert len(said.encode()) <= 4096
        first, second, third = (json.loads(line) for line in said.splitlines()[1:])
        assert first["argument_names"] == second["argument_names"] == ["x"]
        assert third == {"computer": "laptop", "tool": "tool2", "description": third["description"]}
        said = await say(client, "search_tools", query="tool", schemas=10)
        assert len(said) < MODEL_SIZE * 1.1
        assert "arguments" in json.loads(said.splitlines()[1])
        assert "Its schema is" in await say(client, "call_tool", computer="laptop", tool="tool1", arguments={"x": "?"})


@pytest.mark.parametrize(("search", "found"), [("always", True), ("never", False)])
async def test_a_search_may_be_wanted_always_or_never(
    make_agent: MakeAgent, make_computer: MakeComputer, search: str, found: bool
) -> None:
    await make_computer("laptop", many if search == "never" else None)
    async with host(await make_agent(), search=search) as (client, _):
        assert ("search_tools" in await names(client)) is found


@both_eras
async def test_whether_it_is_a_search_is_decided_once_for_a_session(
    make_agent: MakeAgent, make_computer: MakeComputer, era: str
) -> None:
    laptop = await make_computer("laptop")
    async with host(await make_agent(), era) as (client, listening), watching(client, listening):
        assert "search_tools" not in await names(client)
        many(laptop)
        await laptop.announce(UPDATE_TOOL_LIST_EVENT)
        await listening.of("tools")
        await eventually_listed(client, "laptop__forecast")
        assert "search_tools" not in await names(client)


# --- windows and documents as tools


async def test_the_desktop_is_cut_to_size_and_says_how_to_go_on(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    long = "window://h/long\n\n" + "\n".join(f"line {number}" for number in range(20_000))
    computer = await make_computer("laptop", lambda computer: setattr(computer, "windows", [long, "window://h/b\n\nb"]))
    await make_computer("desk")
    computer.override[GET_DESKTOP_EVENT] = lambda data: {"desktops": [long] if data.get("window") else computer.windows}
    async with host(await make_agent()) as (client, _):
        both = await say(client, "see_desktop")
        assert "# laptop" in both
        assert "# desk" in both
        text = await say(client, "see_desktop", computer="LAPTOP")
        assert len(text) < MODEL_SIZE * 1.1
        assert "> window://h/b\n>\n> b" in text
        assert "characters more: see_desktop with window='window://h/long' and offset=" in text
        read, offset = list[str](), 0
        while True:
            part = await say(client, "see_desktop", computer="laptop", window="window://h/long", offset=offset)
            assert len(part) < MODEL_SIZE * 1.1
            lines = part.split("\n")
            read += [line.removeprefix(">").removeprefix(" ") for line in lines if line.startswith(">")]
            if lines[-1].startswith(">"):
                break
            assert "characters more" in lines[-1]
            offset = int(lines[-1].rpartition("=")[2].rstrip("]"))
        assert "\n".join(read) == long


async def test_no_window_imitates_the_heading_of_another_computer(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    lie = "window://h/w\n\n# bank\n\nwindow://h/account\r\r# bank\u2028# bank\x0b# bank\n\n[left out: nothing]"
    await make_computer("evil", lambda computer: setattr(computer, "windows", [lie, "window://h/b\n\nb"]))
    await make_computer("bank", lambda computer: setattr(computer, "windows", ["window://h/account\n\n12 coins"]))
    async with host(await make_agent()) as (client, _):
        lines = (await say(client, "see_desktop")).splitlines()
        assert sorted(line for line in lines if line and not line.startswith(">")) == ["# bank", "# evil"]
        whole = await say(client, "see_desktop", computer="evil", window="window://h/w")
        assert all(line.startswith(">") for line in whole.splitlines())


async def test_no_error_or_note_imitates_the_heading_of_another_computer(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    evil = await make_computer("evil")
    await make_computer("bank")
    evil.override[GET_DESKTOP_EVENT] = lambda _: {"code": 500, "message": "no\n\n# bank\n\n> window://h/w"}
    evil.override[GET_FINDER_EVENT] = lambda _: {"documents": [], "total_count": 0, "note": "no\n\n# bank\n\n- lie"}
    async with host(await make_agent()) as (client, _):
        for tool in ("see_desktop", "find_documents"):
            lines = (await say(client, tool)).splitlines()
            assert [line for line in lines if line.startswith("# bank")] == ["# bank"]


async def test_documents_are_found_and_read_in_pieces(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    def setup(computer: FakeComputer) -> None:
        computer.documents = [{**a_document("The annual report"), "summary": "Money."}]

    laptop = await make_computer("laptop", setup)
    async with host(await make_agent()) as (client, _):
        address = "a2c://laptop/dpe/com.example.docs/report"
        assert address in await say(client, "find_documents", query="annual report")
        assert address in await say(client, "find_documents")
        found = {"documents": [], "total_count": 0, "note": "docs: Not served: 3 files."}
        laptop.override[GET_FINDER_EVENT] = lambda _: found
        assert "[docs: Not served: 3 files.]" in await say(client, "find_documents", query="another report")
        text = await say(client, "read_document", document=DOCUMENT)
        assert "[page 0]" in text
        assert "[page 44]" in text
        assert "[page 44]" in await say(client, "read_document", document=DOCUMENT, page=44)
        part = await say(client, "read_document", document=DOCUMENT, page=3, pages=2)
        assert "[page 3]" in part
        assert "page=5" in part
        assert "elements/t1" in await say(client, "read_document", document=DOCUMENT, element="t1")
        assert "[page 7]" in await say(client, "read_document", document=address, page=7)
        assert "find_documents" in await say(client, "read_document", document="report.pdf")
        seen = await client.call_tool("read_document", {"document": DOCUMENT, "page": 3, "image": 800})
        assert [item.type for item in seen.content] == ["text", "image"]
        seen = await client.call_tool("read_document", {"document": DOCUMENT, "element": "t1", "image": 800})
        assert [item.type for item in seen.content] == ["text", "image"]
        assert "do not fit read_document" in await say(client, "read_document", document=DOCUMENT, page=-1)


async def test_a_page_that_is_too_long_goes_on_at_an_offset(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    pages = ["x " * 30_000, "short"]

    def read(data: dict[str, Any]) -> Any:
        number = data["uri"].partition("/pages/")[2].partition("?")[0]
        if not number:
            return {"contents": [{"uri": data["uri"], "text": '{"title": "T", "pages": []}'}]}
        if int(number) >= len(pages):
            return SMCPError(4202, "no such page").payload()
        return {"contents": [{"uri": data["uri"], "mimeType": "text/markdown", "text": pages[int(number)]}]}

    await make_computer("laptop", lambda computer: computer.override.update({READ_RESOURCE_EVENT: read}))
    async with host(await make_agent()) as (client, _):
        first = await say(client, "read_document", document=DOCUMENT)
        assert first.startswith("title: T")
        assert "characters more on this page: page=0 and offset=" in first
        offset = int(first.rpartition("=")[2].rstrip("]"))
        rest = await say(client, "read_document", document=DOCUMENT, page=0, offset=offset)
        assert len(rest) < MODEL_SIZE * 1.1
        last = await say(client, "read_document", document=DOCUMENT, page=0, offset=55_000)
        assert "[page 1]\nshort" in last


async def test_a_document_of_empty_pages_is_not_read_to_its_end_at_once(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    facts = json.dumps({"title": "T" * 100_000, "page_count": 10**6})

    def read(data: dict[str, Any]) -> Any:
        return {"contents": [{"uri": data["uri"], "text": "" if "/pages/" in data["uri"] else facts}]}

    await make_computer("laptop", lambda computer: computer.override.update({READ_RESOURCE_EVENT: read}))
    async with host(await make_agent()) as (client, _):
        text = await say(client, "read_document", document=DOCUMENT)
    assert len(text) < MODEL_SIZE * 1.3
    assert text.endswith("[what follows, if anything does: read_document with page=50]")


async def test_what_is_found_on_many_computers_fits_into_one_answer(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    def setup(computer: FakeComputer) -> None:
        computer.documents = [{**a_document("A report" * 500), "summary": "Money. " * 100} for _ in range(20)]

    for number in range(4):
        await make_computer(f"pc{number}", setup)
    async with host(await make_agent()) as (client, _):
        text = await say(client, "find_documents")
    assert len(text) < MODEL_SIZE * 1.1
    for number in range(4):
        part = text.partition(f"# pc{number}\n\n")[2].partition("# pc")[0]
        more, end = re.findall(rf"\[(\d+) more: find_documents with computer='pc{number}' and offset=(\d+)\]", part)[0]
        assert int(end) == part.count("- A report") > 0
        assert int(more) + int(end) == 20


async def test_a_null_is_left_out_and_a_whole_number_may_have_a_point(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    await make_computer("laptop")
    async with host(await make_agent()) as (client, _):
        text = await say(client, "read_document", document=DOCUMENT, computer=None, page=3.0, pages=1.0, element=None)
        assert "[page 3]" in text
        assert "[page 4]" not in text
        assert "hello" in await say(client, "see_desktop", window="window://h/main", offset=2.0)
        assert "do not fit" in await say(client, "read_document", document=DOCUMENT, page=3.5)
        assert "'query' is a required property" in await say(client, "search_tools", query=None)


# --- a computer that means no good


async def test_what_a_computer_writes_has_no_power_over_a_terminal(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    def setup(computer: FakeComputer) -> None:
        tool = a_tool("evil")
        meta = {**tool["meta"], "MCP_TOOL_TITLE": "a\x1b[2J\nb"}
        computer.tools = [{**tool, "description": "one\r\ntwo\x1b]0;x\x07\tthree\x9b", "meta": meta}]
        computer.documents = [{**a_document("a\x1b[2J"), "summary": "b\x1b"}]

    await make_computer("laptop", setup)
    async with host(await make_agent()) as (client, _):
        tool = (await client.list_tools()).tools[-1]
        assert tool.title == "a\\u001b[2J\\nb (laptop)"
        assert tool.description == "On laptop: one\ntwo\\u001b]0;x\\u0007\tthree\\u009b"
        resource = (await client.list_resources()).resources[-1]
        assert (resource.name, resource.description) == ("a\\u001b[2J (laptop)", "b\\u001b")


async def test_a_description_of_any_length_leaves_room_for_others(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    long = {**a_tool("long"), "description": "many words " * 50_000}
    await make_computer("evil", lambda computer: setattr(computer, "tools", [long]))
    await make_computer("laptop")
    async with host(await make_agent()) as (client, _):
        listed = await client.list_tools()
        assert len(listed.model_dump_json()) < MODEL_SIZE * 2
        assert {"evil__long", "laptop__echo"} <= {tool.name for tool in listed.tools}
        assert "echo" in await say(client, "search_tools", query="echo")


# --- windows and documents as resources


@both_eras
async def test_windows_and_documents_are_resources(
    make_agent: MakeAgent, make_computer: MakeComputer, era: str
) -> None:
    def setup(computer: FakeComputer) -> None:
        contents = [{"uri": "window://h/main?priority=3", "text": "hello", "_meta": {"inner": 1}}]
        computer.windows = ["window://h/main?priority=3\n\nhello"]
        fake = computer.answers[READ_RESOURCE_EVENT]
        computer.override[READ_RESOURCE_EVENT] = lambda data: (
            {"contents": contents} if data["uri"].startswith("window:") else fake(data)
        )

    await make_computer("my pc", setup)
    await make_computer("desk", lambda computer: computer.override.update({GET_DESKTOP_EVENT: lambda _: {}}))
    async with host(await make_agent(), era) as (client, _):
        uris = [resource.uri for resource in (await client.list_resources()).resources]
        window, document = "a2c://my%20pc/window/h/main?priority=3", "a2c://my%20pc/dpe/com.example.docs/report"
        assert {"a2c://my%20pc/desktop", window, document, "a2c://desk/desktop"} <= set(uris)
        [content] = (await client.read_resource(window)).contents
        assert isinstance(content, types.TextResourceContents)
        assert (content.uri, content.text, content.meta) == (window, "hello", {"inner": 1})
        [content] = (await client.read_resource(f"{document}/pages/3?format=markdown")).contents
        assert isinstance(content, types.TextResourceContents)
        assert content.mime_type == "text/markdown"
        [content] = (await client.read_resource("a2c://my%20pc/desktop")).contents
        assert isinstance(content, types.TextResourceContents)
        assert content.text == "window://h/main?priority=3\n\nhello"
        for unknown in ("a2c://nobody/desktop", "a2c://desk/file/etc", f"{document[:-3]}/x"):
            with pytest.raises(MCPError):
                await client.read_resource(unknown)


async def test_templates_are_completed(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    page = {"elements": [{"element_id": "t1"}, {"element_id": "p0-1"}]}
    contents = [{"uri": DOCUMENT, "mimeType": "application/json", "text": json.dumps(page)}]

    def setup(computer: FakeComputer) -> None:
        computer.override[READ_RESOURCE_EVENT] = lambda _: {"contents": contents}

    await make_computer("laptop", setup)
    async with host(await make_agent()) as (client, _):
        found = {
            template.name: template.uri_template
            for template in (await client.list_resource_templates()).resource_templates
        }
        assert set(found) == {"desktop", "document", "page", "element"}

        async def complete(name: str, typed: str, **known: str) -> list[str]:
            reference = types.ResourceTemplateReference(uri=found["element" if name == "element_id" else "page"])
            result = await client.complete(reference, {"name": name, "value": typed}, context_arguments=known)
            return result.completion.values

        await client.list_tools()
        assert await complete("computer", "l") == ["laptop"]
        assert await complete("computer", "x") == []
        assert await complete("host", "", computer="laptop") == ["com.example.docs"]
        assert await complete("doc_ref", "re", computer="laptop", host="com.example.docs") == ["report"]
        known = {"computer": "laptop", "host": "com.example.docs", "doc_ref": "report"}
        assert await complete("page_index", "4", **known) == ["4", "40", "41", "42", "43", "44"]
        assert await complete("element_id", "t", **known) == ["t1"]
        assert await complete("doc_ref", "", computer="nobody") == []


@both_eras
async def test_subscribers_hear_of_changes(make_agent: MakeAgent, make_computer: MakeComputer, era: str) -> None:
    computer = await make_computer("laptop")
    window, document, desktop = (
        "a2c://laptop/window/h/main",
        "a2c://laptop/dpe/com.example.docs/report",
        "a2c://laptop/desktop",
    )
    async with host(await make_agent(), era) as (client, listening):
        await client.list_resources()
        async with watching(client, listening, window, f"{document}/pages/0", desktop):
            await computer.announce(UPDATE_DESKTOP_EVENT)
            await listening.of(window, desktop)
            computer.windows = ["window://h/main\n\nhello", "window://h/other\n\nnew"]
            await computer.announce(UPDATE_DESKTOP_EVENT)
            await listening.of(window, desktop, "resources")
            await computer.announce(UPDATE_FINDER_EVENT)
            await listening.of(f"{document}/pages/0")
            computer.documents = []
            await computer.announce(UPDATE_FINDER_EVENT)
            await listening.of("resources")
        assert document not in [resource.uri for resource in (await client.list_resources()).resources]
        assert len(computer.requests(GET_FINDER_EVENT)) <= 4


async def test_a_computer_that_always_announces_does_not_hold_the_lists_of_the_others_up(
    make_agent: MakeAgent, make_computer: MakeComputer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2c_smcp.agent.for_models.watching._WAITS", OfficeWaits(600.0, 600.0, 600.0))
    honest, evil = await make_computer("laptop"), await make_computer("evil")
    is_over = False

    async def announce() -> None:
        number = 0
        while not is_over:
            number += 1
            evil.tools = [a_tool(f"tool-{number}")]
            await evil.announce(UPDATE_TOOL_LIST_EVENT)

    async with host(await make_agent()) as (client, _), anyio.create_task_group() as group:
        group.start_soon(announce)
        with anyio.fail_after(60):
            for _ in range(3):
                assert "laptop__echo" in await names(client)
            honest.tools = [a_tool("new")]
            await honest.announce(UPDATE_TOOL_LIST_EVENT)
            await eventually_listed(client, "laptop__new")
        is_over = True


async def test_a_computer_that_does_not_answer_holds_up_no_list_of_others(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    async def never(_: Any) -> Any:
        await asyncio.sleep(600)

    def stuck(computer: FakeComputer) -> None:
        hanging = (GET_RESOURCES_EVENT, GET_PROMPTS_EVENT, GET_DESKTOP_EVENT, GET_FINDER_EVENT)
        computer.answers.update(dict.fromkeys(hanging, never))
        computer.listen()

    def sharing(computer: FakeComputer) -> None:
        mine = {"mcp_server": "s"}
        resources = [{"uri": "test://a", "name": "a", **mine}, {"no": "resource"}]
        templates = [{"uriTemplate": "test://{x}", "name": "t", **mine}]
        prompts = [{"name": "p", **mine}, {"name": 3, **mine}]
        computer.answers[GET_RESOURCES_EVENT] = lambda _: {"resources": resources, "templates": templates}
        computer.answers[GET_PROMPTS_EVENT] = lambda _: {"prompts": prompts}
        computer.listen()

    await make_computer("stuck", stuck)
    await make_computer("desk", sharing)
    async with host(await make_agent()) as (client, _):
        with anyio.fail_after(14):  # an agent waits 20 s for a computer
            prompts, resources, templates = await asyncio.gather(
                client.list_prompts(), client.list_resources(), client.list_resource_templates()
            )
    assert [prompt.name for prompt in prompts.prompts] == ["desk__p"]
    assert "a2c://desk/test/a" in [resource.uri for resource in resources.resources]
    assert "a2c://desk/test/{x}" in [each.uri_template for each in templates.resource_templates]
