"""What servers share, under an agent's eyes: real MCP servers of both eras, a real office, real sockets."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp_types import Resource

from a2c_smcp.agent import AgentHandler, AsyncSMCPAgentClient
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients import item_lists
from a2c_smcp.computer.resources.shown import ResourceTimings
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.errors import SMCPError
from a2c_smcp.smcp import (
    COMPLETE_EVENT,
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_PROMPT_EVENT,
    GET_PROMPTS_EVENT,
    GET_RESOURCES_EVENT,
    READ_RESOURCE_EVENT,
    RESOURCE_UPDATED_NOTIFICATION,
    SUBSCRIBE_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
    UNSUBSCRIBE_RESOURCE_EVENT,
    UPDATE_DESKTOP_NOTIFICATION,
    UPDATE_PROMPTS_NOTIFICATION,
    UPDATE_RESOURCES_NOTIFICATION,
)
from a2c_smcp.wire import parse_response
from tests.computer.fakes.computers import FAST, listed, server, sharing
from tests.computer.fakes.offices import Agent, new_office, options
from tests.computer.fakes.offices import watched as watched_within
from tests.server.conftest import LIMITS
from tests.server.harness import Running, eventually, heard

ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
#: Shorter than the server waits for an answer, and long on a busy machine.
PATIENT = ResourceTimings(list=40, subscribe=40, read=40)


def watched(url: str, *servers: dict[str, Any]) -> AbstractAsyncContextManager[tuple[Agent, Computer]]:
    return watched_within(url, *servers, resource_timings=PATIENT)


async def ask(agent: Agent, event: str, **more: Any) -> Any:
    return parse_response(event, await agent.ask(event, **more))


async def code(agent: Agent, event: str, /, **more: Any) -> int:
    """The code of the error that this request ends with."""
    found: int = (await agent.ask(event, **more))["error"]["code"]
    return found


async def uris(agent: Agent, **more: Any) -> list[str]:
    """The URIs of all pages."""
    found: list[str] = []
    while True:
        page = await ask(agent, GET_RESOURCES_EVENT, **more)
        found += [resource["uri"] for resource in page["resources"]]
        if "next_cursor" not in page:
            return found
        more["cursor"] = page["next_cursor"]


async def seen(agent: Agent, name: str) -> Any:
    return json.loads((await agent.tool(f"{name}.seen"))["content"][0]["text"])


@ERAS
async def test_a_server_that_shares_all_is_listed_and_read(hub: Running, era: str) -> None:
    async with watched(hub.url, sharing("s", protocol=era, share="all"), server("other")) as (agent, _):
        page = await ask(agent, GET_RESOURCES_EVENT)
        by_uri = {resource["uri"]: resource for resource in page["resources"] if resource["mcp_server"] == "s"}
        assert [*by_uri] == ["window://fake/0", "window://fake/1", "note://one", "ui://app/view", "note://picture"]
        view = by_uri["ui://app/view"]
        assert (view["title"], view["_meta"], view["unheardOf"]) == ("View", {"ui": {"csp": []}}, 1)
        part = {"uriTemplate": "note://{id}/part", "name": "part", "title": "A part", "mcp_server": "s"}
        assert page["templates"][0] == part
        windows = [resource["uri"] for resource in page["resources"] if resource["mcp_server"] == "other"]
        assert windows == ["window://fake/0", "window://fake/1"]  # what is shown is listed, too
        one = await ask(agent, READ_RESOURCE_EVENT, uri="note://one")
        assert one["contents"][0]["text"] == "first note"
        picture = await ask(agent, READ_RESOURCE_EVENT, uri="note://picture")
        assert base64.b64decode(picture["contents"][0]["blob"]) == b"\x00\x01\xff"
        assert (picture["contents"][0]["_meta"], picture["meta"]) == ({"k": 1}, {"r": 2})
        two = await ask(agent, READ_RESOURCE_EVENT, uri="note://two/part")
        assert two["contents"][0]["text"] == "of a template"
        assert await code(agent, READ_RESOURCE_EVENT, uri="note://three/part") == 404
        assert await code(agent, READ_RESOURCE_EVENT, uri="note://hidden") == 4204
        assert await code(agent, READ_RESOURCE_EVENT, uri="slow:" + "x" * 3000) == 404


@pytest.mark.parametrize(("share", "note", "window"), [("all", None, None), ("shown", 403, None), ("none", 403, 403)])
async def test_what_may_be_read_is_the_owners_decision(
    hub: Running, share: str, note: int | None, window: int | None
) -> None:
    async with watched(hub.url, sharing("s", share=share)) as (agent, computer):
        for uri, expected in (("note://one", note), ("window://fake/0", window)):
            reply = await agent.ask(READ_RESOURCE_EVENT, uri=uri)
            assert reply.get("error", {}).get("code") == expected
        desktop = (await ask(agent, GET_DESKTOP_EVENT))["desktops"]
        assert len(desktop) == (0 if share == "none" else 2)
        assert len(await uris(agent)) == {"all": 5, "shown": 2, "none": 0}[share]
        assert len((await ask(agent, GET_PROMPTS_EVENT))["prompts"]) == (2 if share == "all" else 0)
        expected_code = None if share == "all" else 403
        reply = await agent.ask(GET_PROMPT_EVENT, mcp_server="s", name="plain")
        assert reply.get("error", {}).get("code") == expected_code
        # A link in a result is as good as a list, for the agent that made the call.
        await agent.tool("s.link", uri="note://hidden")
        reply = await agent.ask(READ_RESOURCE_EVENT, uri="note://hidden")
        assert reply.get("error", {}).get("code") == (4204 if share == "none" else None)
        assert await code(agent, READ_RESOURCE_EVENT, uri="note://hidden", agent="another") == 4204
        assert (await agent.ask(GET_CONFIG_EVENT))["servers"]["s"]["share"] == share
        assert computer.statuses[0].ignored is None


async def test_what_is_shared_changes_with_the_config(hub: Running) -> None:
    config = sharing("s", share="all")
    async with watched(hub.url, config) as (agent, computer):
        assert (await agent.ask(READ_RESOURCE_EVENT, uri="note://one"))["contents"]
        await computer.add_or_update_server({**config, "share": "none"})
        assert await code(agent, READ_RESOURCE_EVENT, uri="note://one") in (403, 4204)
        assert await uris(agent) == []
        await eventually(lambda: heard(agent, UPDATE_RESOURCES_NOTIFICATION))
        await eventually(lambda: heard(agent, UPDATE_PROMPTS_NOTIFICATION))
        await eventually(lambda: heard(agent, UPDATE_DESKTOP_NOTIFICATION))


@ERAS
async def test_prompts_are_listed_used_and_completed(hub: Running, era: str) -> None:
    async with watched(hub.url, sharing("s", protocol=era, share="all")) as (agent, _):
        prompts = (await ask(agent, GET_PROMPTS_EVENT, mcp_server="s"))["prompts"]
        assert prompts[0] == {"name": "greet", "arguments": [{"name": "who", "required": True}], "mcp_server": "s"}
        trace = {"traceparent": "00-1-2-01", "secret": "stays here"}
        got = await ask(agent, GET_PROMPT_EVENT, mcp_server="s", name="greet", arguments={"who": "Ann"}, meta=trace)
        assert got["messages"][0]["content"] == {"type": "text", "text": "Greet Ann.", "_meta": {"m": 1}}
        assert (got["description"], got["meta"]["p"]) == ("a greeting", 1)
        asked: dict[str, Any] = {"ref": {"type": "ref/prompt", "name": "greet"}}
        asked |= {"argument": {"name": "who", "value": "a"}, "context": {"arguments": {"x": "y"}}}
        completion = (await ask(agent, COMPLETE_EVENT, mcp_server="s", **asked))["completion"]
        assert completion == {"values": ["ann"], "total": 1, "hasMore": False}
        assert await seen(agent, "s") == [
            ["prompt", "greet", {"who": "Ann"}, {"traceparent": "00-1-2-01"}],
            ["complete", asked["ref"], asked["argument"], asked["context"]],
        ]
        for wrong, expected in (({"name": "none"}, 404), ({"name": "greet", "arguments": {"who": 1}}, 400)):
            assert await code(agent, GET_PROMPT_EVENT, mcp_server="s", **wrong) == expected
        assert await code(agent, GET_PROMPT_EVENT, mcp_server="?", name="greet") == 404
        assert await code(agent, COMPLETE_EVENT, mcp_server="s", ref={"type": "?"}, argument={}) == 400
        assert await code(agent, GET_PROMPT_EVENT, mcp_server="s", name="greet", arguments={"who": "deep"}) == 413


@asynccontextmanager
async def with_an_agent(
    url: str, *servers: dict[str, Any], handler: AgentHandler | None = None
) -> AsyncIterator[tuple[AsyncSMCPAgentClient, Computer]]:
    """A computer and an agent of ours in one office."""
    computer, office = Computer("pc", mcp_servers=servers, timings=FAST, resource_timings=PATIENT), new_office()
    async with (
        computer,
        SMCPComputerClient(computer, options(url)) as client,
        AsyncSMCPAgentClient(options(url), name="ada", handler=handler) as agent,
    ):
        await listed(computer)
        await client.join_office(office)
        await agent.join_office(office)
        yield agent, computer


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_our_agent_uses_what_a_server_on_mcp_shares_over_http(
    hub: Running, era: str, asking_http_server: str
) -> None:
    config: dict[str, Any] = {"name": "air", "type": "streamable", "protocol": era, "share": "all"}
    config |= {"server_parameters": {"url": f"{asking_http_server}/mcp"}, "default_tool_meta": {"auto_apply": True}}
    async with with_an_agent(hub.url, config) as (agent, _):
        found = await agent.get_resources("pc")
        assert [(it["uri"], it["mcp_server"]) for it in found["resources"]] == [("fleet://all", "air")]
        assert [it["uriTemplate"] for it in found["templates"]] == ["seat://{row}/{letter}"]
        assert (await agent.read_resource("pc", "fleet://all"))[0]["text"] == "two planes"
        assert base64.b64decode((await agent.read_resource("pc", "seat://12/a"))[0]["blob"]) == b"12a"
        [prompt] = (await agent.get_prompts("pc"))["prompts"]
        assert (prompt["name"], prompt["title"]) == ("greet", "A greeting")
        said = await agent.get_prompt("pc", "air", "greet", {"who": "Ann"})
        assert said["messages"][0]["content"]["text"] == "Welcome aboard, Ann."
        with pytest.raises(SMCPError) as refused:
            await agent.get_prompt("pc", "air", "greet", {})
        assert refused.value.code in (400, 500)  # servers differ in what they call it
        ref, argument = {"type": "ref/prompt", "name": "greet"}, {"name": "who", "value": "An"}
        assert (await agent.complete("pc", "air", ref, argument))["values"] == ["Anna"]
        result = await agent.call_tool("pc", "passed_on", {}, timeout=20, meta={"traceparent": "00-1-2-01"})
        assert result.content[0].text == "00-1-2-01"  # type: ignore[union-attr]
        info = (await agent.get_config("pc"))["server_info"]["air"]
        assert (info["title"], info["instructions"]) == ("An airline", "Book early.")


async def test_our_agent_reads_a_large_body_follows_links_and_hears_of_changes(hub: Running) -> None:
    size = 3 * LIMITS.max_message // 256 * 256
    news: list[Any] = []

    class Hears(AgentHandler):
        def on_resource_updated(self, data: Any) -> None:
            news.append(data)

    async with with_an_agent(hub.url, sharing("s", share="all"), handler=Hears()) as (agent, computer):
        await agent.call_tool("pc", "s.set_blob", {"uri": "note://picture", "size": size}, timeout=20)
        [content] = await agent.read_large_resource("pc", "note://picture")
        assert base64.b64decode(content["blob"]) == bytes(range(256)) * (size // 256)
        await agent.call_tool("pc", "s.link", {"uri": "note://hidden"}, timeout=20)
        assert (await agent.read_resource("pc", "note://hidden"))[0]["text"] == "behind a link"
        await agent.subscribe_resource("pc", "note://one")
        await agent.call_tool("pc", "s.set_resource", {"uri": "note://one", "text": "other"}, timeout=40)
        await eventually(lambda: news)
        assert news[0] == {"computer": "pc", "uri": "note://one"}
        await agent.unsubscribe_resource("pc", "note://one")
        assert computer._resources.shared.watched("s") == set()


@ERAS
async def test_changes_of_the_lists_are_announced_once_and_not_otherwise(hub: Running, era: str) -> None:
    async with watched(hub.url, sharing("s", protocol=era, share="all")) as (agent, _):
        await uris(agent)
        agent.received.clear()
        await agent.tool("s.set_resource", uri="note://new", text="new")
        await eventually(lambda: heard(agent, UPDATE_RESOURCES_NOTIFICATION))
        assert "note://new" in await uris(agent)
        assert heard(agent, UPDATE_DESKTOP_NOTIFICATION) == []
        agent.received.clear()
        await agent.tool("s.set_resource", uri="note://new", text="newer")  # nobody subscribed to it
        await agent.tool("s.set_resource", uri="note://new", text="newest", silently=True)  # the list is the same
        await agent.tool("s.set_prompt", name="more")
        await eventually(lambda: heard(agent, UPDATE_PROMPTS_NOTIFICATION))
        names = [prompt["name"] for prompt in (await ask(agent, GET_PROMPTS_EVENT))["prompts"]]
        assert names == ["greet", "plain", "more"]
        assert heard(agent, UPDATE_RESOURCES_NOTIFICATION) == []
        assert heard(agent, RESOURCE_UPDATED_NOTIFICATION) == []


@ERAS
async def test_an_agent_hears_of_the_resources_that_it_subscribed_to(hub: Running, era: str) -> None:
    async with watched(hub.url, sharing("s", protocol=era, share="all"), server("t", bare=1, share="all")) as (
        agent,
        computer,
    ):
        for _ in range(2):  # an agent that comes back on another connection subscribes again
            await ask(agent, SUBSCRIBE_RESOURCE_EVENT, uri="note://one")
        await agent.tool("s.storm", uri="note://one", count=500)
        await eventually(lambda: heard(agent, RESOURCE_UPDATED_NOTIFICATION))
        assert heard(agent, RESOURCE_UPDATED_NOTIFICATION)[0] == {"computer": "pc", "uri": "note://one"}
        assert len(heard(agent, RESOURCE_UPDATED_NOTIFICATION)) < 100
        assert computer._resources.shared.watched("s") == {"note://one"}
        for _ in range(2):
            await ask(agent, UNSUBSCRIBE_RESOURCE_EVENT, uri="note://one")
            assert computer._resources.shared.watched("s") == set()
        assert await code(agent, SUBSCRIBE_RESOURCE_EVENT, uri="note://none") == 4204
        assert await code(agent, SUBSCRIBE_RESOURCE_EVENT, uri="window://fake/9") == 404
        assert await code(agent, SUBSCRIBE_RESOURCE_EVENT, uri="note://" + "x" * 9000) == 400
        await ask(agent, SUBSCRIBE_RESOURCE_EVENT, uri="note://one")
        await agent.tool("s.crash")  # what changed while it was away is unknown
        agent.received.clear()
        await eventually(lambda: heard(agent, RESOURCE_UPDATED_NOTIFICATION), 60)
        await agent.disconnect()
        await eventually(lambda: not computer._resources.shared.watched("s"))


async def test_a_large_meta_is_refused(hub: Running) -> None:
    async with watched(hub.url, server("a")) as (agent, _):
        call = {"tool_name": "a.echo", "params": {"text": "x"}, "timeout": 20}
        assert await code(agent, TOOL_CALL_EVENT, **call, meta={"x": "y" * 300_000}) == 400
        assert (await agent.ask(TOOL_CALL_EVENT, **call, meta={"x": "y" * 100_000}))["isError"] is False


async def test_a_body_over_one_message_is_read_in_parts(hub: Running) -> None:
    size = LIMITS.max_message // 256 * 256
    async with watched(hub.url, sharing("s", share="all")) as (agent, _):
        await agent.tool("s.set_blob", uri="note://picture", size=size)
        error = (await agent.ask(READ_RESOURCE_EVENT, uri="note://picture"))["error"]
        assert (error["code"], error["details"]["total_size"]) == (413, size)
        await agent.tool("s.set_blob", uri="note://picture", size=256)  # the parts are of the reading before
        found = b""
        while len(found) < size:
            part = await ask(agent, READ_RESOURCE_EVENT, uri="note://picture", range=[len(found), size // 4])
            assert (part["total_size"], part["first"]) == (size, 0)
            found += base64.b64decode(part["contents"][0]["blob"])
        assert found == bytes(range(256)) * (size // 256)
        again = await ask(agent, READ_RESOURCE_EVENT, uri="note://picture", range=[0, 1000])
        assert again["total_size"] == 256  # from the beginning, it is read again
        assert await code(agent, READ_RESOURCE_EVENT, uri="note://picture", range=[1]) == 400


async def test_long_and_odd_lists_are_bounded_and_harm_nobody(hub: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 3000
    monkeypatch.setitem(item_lists._KINDS, "resources", (Resource, "uri", most))
    servers = (
        sharing("many", share="all", many=4000, page=700),
        sharing("endless", share="all", endless=1, resources=0),
        sharing("odd", share="all", odd=1),
        server("honest"),
    )
    async with watched(hub.url, *servers) as (agent, computer):
        with anyio.fail_after(50):
            assert len((await ask(agent, GET_DESKTOP_EVENT))["desktops"]) >= 2  # nobody waits for the long lists
        found = await uris(agent, mcp_server="odd")
        assert "note://one" in found
        assert not {"note://deep", "note://fat", "note://wide", "note://wrong"} & {*found}
        ignored = {status.server: status.ignored for status in computer.statuses}
        assert ignored["odd"] == "4 resources that are too large or not valid in MCP"
        shared = computer._resources.shared
        await eventually(lambda: len(shared._items["many"].resources) == most, 150)
        await eventually(lambda: len(shared._items["endless"].resources) == most, 150)
        assert computer.statuses[0].ignored == "500 resources over the first 3000"
        first = await ask(agent, GET_RESOURCES_EVENT, mcp_server="many")
        assert len(first["resources"]) == 500
        assert first["next_cursor"]
        reply = await agent.ask(READ_RESOURCE_EVENT, uri="note://many/2990")
        assert reply["contents"][0]["text"] == "note 2990"
        for cursor in ("", "nonsense", "a" * 5000, first["next_cursor"] + "x"):
            assert await code(agent, GET_RESOURCES_EVENT, cursor=cursor) == 400
        assert await code(agent, GET_RESOURCES_EVENT, mcp_server="nobody") == 404


@ERAS
async def test_windows_of_a_server_that_says_nothing_are_polled_or_a_log_line_says_so(
    hub: Running, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with watched(hub.url, server("silent", bare=1, protocol=era)) as (agent, computer):
        await eventually(lambda: "are not shown, because it does not say when they change" in caplog.text)
        assert (await ask(agent, GET_DESKTOP_EVENT))["desktops"] == []
        assert await code(agent, READ_RESOURCE_EVENT, uri="window://fake/0") == 403
        await computer.add_or_update_server(server("silent", bare=1, protocol=era, poll=1))
        await eventually(lambda: heard(agent, UPDATE_DESKTOP_NOTIFICATION))
        assert len((await ask(agent, GET_DESKTOP_EVENT))["desktops"]) == 2
        agent.received.clear()
        await agent.tool("silent.set_resource", uri="window://fake/0", text="changed")
        await eventually(lambda: heard(agent, UPDATE_DESKTOP_NOTIFICATION), 60)
        assert "window://fake/0\n\nchanged" in (await ask(agent, GET_DESKTOP_EVENT))["desktops"]
    assert caplog.text.count("are not shown, because") == 1
