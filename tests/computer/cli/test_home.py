"""The commands with a page that changes them: servers go into the config file, and offices are joined and left."""

import json
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from a2c_smcp.computer.cli.session import link_to
from a2c_smcp.computer.config.files import load_config_files
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.server import APIKeyAuthentication
from tests.computer.cli.console import console
from tests.computer.cli.test_console_command import _links
from tests.computer.cli.test_headless import eventually_tools, service
from tests.computer.console.harness import Visitor
from tests.computer.console.homes import paste, read, with_comments, write
from tests.computer.fakes.offices import Agent, new_office
from tests.server.conftest import LIMITS
from tests.server.harness import Running, async_server


async def send(visitor: Visitor, path: str, **body: Any) -> Any:
    answer = await visitor.post(f"/api/{path}", body)
    return answer.json()["error"] if answer.status_code >= 400 else answer.json()


async def pid(agent: Agent, tool: str) -> int:
    return int(json.loads((await agent.tool(tool))["content"][0]["text"])["pid"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(with_comments("a"))
    return path


def written(file: Path) -> list[str]:
    return [raw["name"] for raw in load_config_files(file).servers]


async def test_a_server_that_the_page_added_is_not_started_again_by_the_change_of_its_file(
    hub: Running, file: Path
) -> None:
    office, agent = new_office(), Agent()
    await agent.join(hub.url, office)
    place = ("--url", hub.url, "--office", office, "--name", "pc", "--console", "0", "--prefix-tools")
    with service("--config", str(file), *place) as it:
        await it.says("is in office")
        await eventually_tools(agent, {"a.stats"}, gone=set())
        async with Visitor(_links(it.lines)[0]) as visitor:
            await visitor.enter()
            assert await send(visitor, "save-servers", text=paste("b", tool_meta={})) == {"names": ["b"]}
            await eventually_tools(agent, {"b_stats"}, gone=set())
            pids = [await pid(agent, tool) for tool in ("a.stats", "b_stats")]
            assert written(file) == ["a", "b"] and "tool_prefix" not in read(file)
            # A change that the service takes over: by then it has seen the one of the page, too.
            write(file, read(file).replace('"mcpServers": {', f'"mcpServers": {{"c": {flat_of("c")},'))
            await eventually_tools(agent, {"c.stats"}, gone=set())
            assert [await pid(agent, tool) for tool in ("a.stats", "b_stats")] == pids
            assert sum("MCP server b is running" in line for line in it.lines) == 1

            assert await send(visitor, "remove-server", server="a") == {}
            await eventually_tools(agent, {"b_stats", "c.stats"}, gone={"a.stats"})
            assert written(file) == ["c", "b"] and "// about a" in read(file)
        assert it.stop() == 0
        assert not it.said("Traceback") and not it.said("ERROR"), it.lines
    await agent.disconnect()


def flat_of(name: str) -> str:
    return json.dumps(json.loads(paste(name))["mcpServers"][name])


async def test_a_service_moves_to_another_office_and_leaves_it_and_goes_on(hub: Running, file: Path) -> None:
    first, second, agent, rival = new_office(), new_office(), Agent(), Agent()
    place = ("--url", hub.url, "--office", first, "--name", "pc", "--console", "0")
    with service("--config", str(file), *place) as it, service(*taken(hub, second, file)) as other:
        await it.says("is in office")
        await other.says("is in office")
        await agent.join(hub.url, first)
        await eventually_tools(agent, {"a.stats"}, gone=set())
        async with Visitor(_links(it.lines)[0]) as visitor:
            await visitor.enter()
            assert (await visitor.get("/api/home")).json()["office_url"] == hub.url
            refused = await send(visitor, "join-office", url="http://127.0.0.1:9", office=first)
            assert refused["code"] == 0 and "cannot connect" in refused["message"]
            assert (await agent.tool("a.stats"))["isError"] is False
            refused = await send(visitor, "join-office", url=hub.url, office=second)
            assert refused["code"] == 4105
            # It is back where it was, and the agent there has its tools.
            await eventually_tools(agent, {"a.stats"}, gone=set())
            third = new_office()
            assert await send(visitor, "join-office", url=hub.url, office=third) == {}
            await rival.join(hub.url, third)
            await eventually_tools(rival, {"a.stats"}, gone=set())
            assert await send(visitor, "leave-office") == {}
            assert await send(visitor, "join-office", url=hub.url, office=third) == {}
            await eventually_tools(rival, {"a.stats"}, gone=set())
            assert await send(visitor, "leave-office") == {}
        assert it.process.poll() is None
        assert it.stop() == 0 and not it.said("Traceback"), it.lines
    await agent.disconnect()
    await rival.disconnect()


def taken(hub: Running, office: str, file: Path) -> list[str]:
    """A computer of the same name."""
    return ["--config", str(file), "--url", hub.url, "--office", office, "--name", "pc"]


async def test_at_the_prompt_a_page_joins_with_a_key_that_is_never_shown_and_adds_a_server(tmp_path: Path) -> None:
    office = new_office()
    with async_server(APIKeyAuthentication(["r1ght-key"]), LIMITS) as hub, console(tmp_path, "--console", "0") as it:
        link = (await anyio.to_thread.run_sync(it.line, "console"))["url"]
        async with Visitor(link) as visitor:
            await visitor.enter()
            assert (await visitor.get("/api/home")).json()["file"] is None
            refused = await send(visitor, "join-office", url=hub.url, office=office, key="wrong")
            assert refused["code"] == 401
            assert await send(visitor, "join-office", url=hub.url, office=office, key="r1ght-key") == {}
            assert (await anyio.to_thread.run_sync(it.line, "joined"))["office"] == office
            # The key belongs to that server: it is kept for it, and need not be typed again.
            assert await send(visitor, "leave-office") == {}
            assert await send(visitor, "join-office", url=hub.url, office=office) == {}
            assert "--config FILE" in (await send(visitor, "save-servers", text=paste("b")))["message"]
            assert await send(visitor, "save-servers", text=paste("b"), until_stop=True) == {"names": ["b"]}
            assert "r1ght-key" not in (await visitor.get("/api/home")).text
        listed = await anyio.to_thread.run_sync(it.enter, "servers list", "server_status", lambda line: line["all"])
        assert [(server["name"], server["state"]) for server in listed["servers"]] == [("b", "running")]
        assert "r1ght-key" not in it.seen
        it.keys("quit\r")
        assert await anyio.to_thread.run_sync(it.ended) == 0


async def test_at_the_prompt_a_server_of_the_page_is_one_of_the_file(tmp_path: Path, file: Path) -> None:
    before = read(file)
    with console(tmp_path, "--config", str(file), "--console", "0") as it:
        link = (await anyio.to_thread.run_sync(it.line, "console"))["url"]
        await anyio.to_thread.run_sync(it.prompted)
        async with Visitor(link) as visitor:
            await visitor.enter()
            assert await send(visitor, "save-servers", text=paste("b")) == {"names": ["b"]}
        assert written(file) == ["a", "b"]
        write(file, before)  # by hand
        assert (await anyio.to_thread.run_sync(it.enter, "config reload", "config_checked"))["ok"]
        listed = await anyio.to_thread.run_sync(it.enter, "servers list", "server_status", lambda line: line["all"])
        assert [server["name"] for server in listed["servers"]] == ["a"]
        it.keys("quit\r")
        assert await anyio.to_thread.run_sync(it.ended) == 0


def test_a_key_is_sent_to_its_own_server_only() -> None:
    known = LinkOptions("https://me:pw@one.example/x", api_key="k1", headers={"authorization": "t"})
    assert link_to(known, "https://***@one.example/x", None) == known
    assert link_to(known, known.url, "k2").api_key == "k2"
    other = link_to(known, "https://two.example", None)
    assert (other.url, other.api_key, other.headers) == ("https://two.example", None, {})
