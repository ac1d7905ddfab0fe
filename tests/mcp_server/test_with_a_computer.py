"""A server on the kit, hosted by our Computer and seen by an agent: what Desktop and Finder ask of a good server."""

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.resources.shown import ResourceTimings
from a2c_smcp.computer.watching.events import DesktopChanged, FinderChanged
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    READ_RESOURCE_EVENT,
    UPDATE_DESKTOP_NOTIFICATION,
    UPDATE_FINDER_NOTIFICATION,
)
from a2c_smcp.wire import parse_response
from tests.computer.fakes.computers import call, running, server
from tests.computer.fakes.offices import Agent, watched
from tests.mcp_server.clients import eventually, http_shop
from tests.mcp_server.fakes.shop import CATALOGUE, CLOCK, DOOR, HOST, STOCK
from tests.server.harness import Running, heard

FRESH = "0 started, 0 cancelled"
#: A busy machine may take longer to list, to subscribe and to read than an agent is made to wait.
PATIENT = ResourceTimings(list=60, subscribe=60, read=60, warm=60)
both_eras = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])


def shop(era: str | None = None) -> dict[str, Any]:
    return {
        "name": "shop",
        "type": "stdio",
        "protocol": era,
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": sys.executable, "args": ["-m", "tests.mcp_server.fakes.shop", "stdio"]},
    }


async def desktop(agent: Agent, **more: Any) -> Any:
    return parse_response(GET_DESKTOP_EVENT, await agent.ask(GET_DESKTOP_EVENT, **more))["desktops"]


async def finder(agent: Agent, **more: Any) -> Any:
    return parse_response(GET_FINDER_EVENT, await agent.ask(GET_FINDER_EVENT, **more))


async def read(agent: Agent, uri: str) -> str:
    [content] = parse_response(READ_RESOURCE_EVENT, await agent.ask(READ_RESOURCE_EVENT, uri=uri))["contents"]
    return str(content["text"])


async def hears(agent: Agent, notification: str) -> None:
    async def has() -> bool:
        return bool(heard(agent, notification))

    await eventually(has)


async def after(agent: Agent, notification: str, tool: str, **params: Any) -> None:
    """Call a tool, and wait until the agent has heard of what it changed."""
    agent.received.clear()
    result = await agent.tool(tool, **params)
    assert not result.get("isError"), result
    await hears(agent, notification)
    assert heard(agent, notification)[0] == {"computer": "pc"}


async def see_the_desktop(agent: Agent) -> None:
    door, clock = f"{DOOR}\n\nThe door is open.", f"{CLOCK}\n\n{FRESH}"
    new = f"window://{HOST}/new?priority=50"
    assert await desktop(agent) == [door, clock]
    await after(agent, UPDATE_DESKTOP_NOTIFICATION, "show", path="new", text="one", priority=50)
    assert await desktop(agent) == [f"{new}\n\none", door, clock]
    await after(agent, UPDATE_DESKTOP_NOTIFICATION, "show", path="new", text="two", priority=50)
    assert await desktop(agent, desktop_size=1) == [f"{new}\n\ntwo"]
    assert await desktop(agent, window=CLOCK) == [clock]
    assert await read(agent, new) == "two"
    await after(agent, UPDATE_DESKTOP_NOTIFICATION, "show", path="new", text="two", priority=1)  # another place
    assert [text.partition("\n")[0] for text in await desktop(agent)] == [
        DOOR,
        f"window://{HOST}/new?priority=1",
        CLOCK,
    ]
    await after(agent, UPDATE_DESKTOP_NOTIFICATION, "close", path="new")
    assert await desktop(agent) == [door, clock]
    assert heard(agent, UPDATE_FINDER_NOTIFICATION) == []


async def search_the_finder(agent: Agent) -> None:
    found = await finder(agent)
    assert found["total_count"] == 1
    assert found["documents"][0] == {
        "doc_ref": "stock",
        "uri": STOCK,
        "file_uri": "",
        "file_type": "xlsx",
        "title": "Stock",
        "page_count": 2,
        "keywords": ["stock"],
        "server": "shop",
        "last_modified": "2026-01-01T00:00:00Z",
    }
    await after(agent, UPDATE_FINDER_NOTIFICATION, "put", doc_ref="年度", title="Report")
    assert {each["title"] for each in (await finder(agent))["documents"]} == {"Stock", "Report"}
    assert (await finder(agent, keywords=["REPORT"]))["total_count"] == 1
    await after(agent, UPDATE_FINDER_NOTIFICATION, "put", doc_ref="年度", title="Report 2")
    assert [each["title"] for each in (await finder(agent, keywords=["report"]))["documents"]] == ["Report 2"]
    await after(agent, UPDATE_FINDER_NOTIFICATION, "remove", doc_ref="年度")
    assert (await finder(agent))["total_count"] == 1
    assert heard(agent, UPDATE_DESKTOP_NOTIFICATION) == []
    pages = json.loads(await read(agent, f"{STOCK}?depth=pages"))["pages"]
    page = json.loads(await read(agent, pages[0]["uri"]))
    assert [each["category"] for each in page["elements"]] == ["heading", "table"]
    for each in page["elements"]:
        assert json.loads(await read(agent, f"{STOCK}/elements/{each['element_id']}"))["category"] == each["category"]
    assert await read(agent, f"{STOCK}/pages/1?format=markdown") == "None left."
    errors = {f"{CATALOGUE}/x": 4201, f"{STOCK}/pages/2": 4202, f"{STOCK}/elements/x": 4203, f"{STOCK}/x": 4204}
    for uri, code in (errors | {f"window://{HOST}/x": 404}).items():
        assert (await agent.ask(READ_RESOURCE_EVENT, uri=uri))["error"]["code"] == code


@both_eras
async def test_desktop_and_finder_over_a_pipe(hub: Running, era: str) -> None:
    async with watched(hub.url, shop(era), resource_timings=PATIENT) as (agent, _):
        await see_the_desktop(agent)
        await search_the_finder(agent)


@pytest.mark.parametrize("era", ["legacy", None])
async def test_desktop_and_finder_over_http(hub: Running, era: str | None) -> None:
    with http_shop("s3cret") as url:
        parameters = {"url": url, "headers": {"authorization": "Bearer s3cret"}}
        config = {**shop(era), "type": "streamable", "server_parameters": parameters}
        async with watched(hub.url, config, resource_timings=PATIENT) as (agent, _):
            await see_the_desktop(agent)
            await search_the_finder(agent)


async def put_half_a_character(agent: Agent) -> None:
    result = await agent.tool("put", 30, doc_ref="half", title="half \ud83d")
    assert [item["text"] for item in result["content"]] == ["there"]
    # It gets there, where it is no title.
    result = await agent.tool("put", 30, doc_ref="half", title={"a": {"half \ud83d": 1}})
    assert result["isError"] and "error" not in result


async def test_half_a_character_is_answered_over_a_pipe(hub: Running) -> None:
    async with watched(hub.url, shop()) as (agent, _):
        await put_half_a_character(agent)


async def test_half_a_character_is_answered_over_http(hub: Running) -> None:
    with http_shop("s3cret") as url:
        parameters = {"url": url, "headers": {"authorization": "Bearer s3cret"}}
        async with watched(hub.url, {**shop(), "type": "streamable", "server_parameters": parameters}) as (agent, _):
            await put_half_a_character(agent)


async def test_a_call_is_cancelled_where_it_runs(hub: Running) -> None:
    async with watched(hub.url, shop()) as (agent, _), anyio.create_task_group() as tasks:

        def shows(counts: str) -> Callable[[], Awaitable[bool]]:
            async def now() -> bool:
                shown: list[str] = await desktop(agent, window=CLOCK)
                return shown == [f"{CLOCK}\n\n{counts}"]

            return now

        tasks.start_soon(lambda: agent.tool("wait", 60, "slow", seconds=600))
        await eventually(shows("1 started, 0 cancelled"))
        await agent.call(CANCEL_TOOL_CALL_EVENT, {"agent": "ag", "req_id": "slow"})
        await eventually(shows("1 started, 1 cancelled"))


async def test_ten_thousand_documents_and_a_thousand_windows_beside_another_server() -> None:
    async with running(shop(), server("other", resources=1), resource_timings=PATIENT) as (computer, record):
        await call(computer, "fill", windows=1000, documents=10_000)
        await record.of(FinderChanged)
        with anyio.fail_after(60):
            while (await computer.get_finder(limit=1))[1] < 10_001:
                pass  # it answers with what is there after five seconds
        assert len(await computer.get_desktop()) == 1003
        [found], total = await computer.get_finder(keywords=["Document 9999"])
        assert (found["doc_ref"], total) == ("d9999", 1)
        record.events.clear()
        texts = iter(range(10**6))

        async def heard_of() -> bool:
            await call(computer, "show", path="w/500", text=f"other {next(texts)}")
            return bool(record.now(DesktopChanged))

        await eventually(heard_of)
        [shown] = await computer.get_desktop(window=f"window://{HOST}/w/500")
        assert shown.startswith(f"window://{HOST}/w/500\n\nother ")
