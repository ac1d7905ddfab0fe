"""The seed's integration tests, one each and under its names, over real sockets with a real document server."""

import json
import sys
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.resources.shown import ResourceTimings
from a2c_smcp.smcp import GET_FINDER_EVENT, READ_RESOURCE_EVENT, UPDATE_DESKTOP_NOTIFICATION, UPDATE_FINDER_NOTIFICATION
from a2c_smcp.wire import parse_response
from tests.computer.fakes.computers import server
from tests.computer.fakes.offices import Agent
from tests.computer.fakes.offices import watched as watched_within
from tests.mcp_server.clients import eventually as eventually_true
from tests.server.harness import Running, eventually, heard

#: However late a server lists its documents, takes a subscription or answers; a relay may take 20 s.
PATIENT = ResourceTimings(list=15, subscribe=15, warm=15)

both_eras = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])

CATALOGUE = "dpe://com.example.docs"
SALES = f"{CATALOGUE}/sales"


def documents(era: str = "auto") -> dict[str, Any]:
    return {
        "name": "docs",
        "type": "stdio",
        "protocol": era,
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": sys.executable, "args": ["-m", "tests.computer.fakes.document_server"]},
    }


def watched(url: str, *servers: dict[str, Any]) -> AbstractAsyncContextManager[tuple[Agent, Computer]]:
    return watched_within(url, *servers, resource_timings=PATIENT)


async def finder(agent: Agent, **more: Any) -> Any:
    return parse_response(GET_FINDER_EVENT, await agent.ask(GET_FINDER_EVENT, **more))


async def refs(agent: Agent, **more: Any) -> list[str]:
    return [found["doc_ref"] for found in (await finder(agent, **more))["documents"]]


async def read(agent: Agent, uri: str) -> tuple[str, str]:
    [content] = parse_response(READ_RESOURCE_EVENT, await agent.ask(READ_RESOURCE_EVENT, uri=uri))["contents"]
    assert content["uri"] == uri
    return content["mimeType"], content["text"]


async def read_json(agent: Agent, uri: str) -> Any:
    kind, text = await read(agent, uri)
    assert kind == "application/json"
    return json.loads(text)


async def test_完整_finder_流程(hub: Running) -> None:  # noqa: N802
    async with watched(hub.url, documents(), server("b", documents=3)) as (agent, _):
        everything = await finder(agent, req_id="f")
        assert (everything["req_id"], everything["total_count"]) == ("f", 5)
        assert await refs(agent) == ["2", "1", "0", "sales", "plan"]
        assert next(found for found in everything["documents"] if found["doc_ref"] == "sales") == {
            "doc_ref": "sales",
            "uri": SALES,
            "file_uri": "file:///sales.xlsx",
            "file_type": "xlsx",
            "title": "Sales 2026",
            "page_count": 2,
            "keywords": ["sales", "figures"],
            "summary": "All about Sales 2026",
            "server": "docs",
            "last_modified": "2026-02-01T00:00:00Z",
        }
        assert await refs(agent, keywords=["FIGURES"]) == ["sales", "plan"]
        assert await refs(agent, keywords=["the plan", "document 1"]) == ["1", "plan"]
        assert await refs(agent, file_type="xlsx") == ["2", "0", "sales"]
        assert await refs(agent, file_type="docx") == []
        assert await refs(agent, offset=1, limit=2) == ["1", "0"]
        assert (await finder(agent, offset=9, keywords=["figures"]))["total_count"] == 2
        await agent.tool("put", doc_ref="new", title="New")
        await eventually(lambda: heard(agent, UPDATE_FINDER_NOTIFICATION))

        async def new_comes_first() -> bool:
            # The server used last comes first. What was heard may be of a server that had just started.
            return await refs(agent, limit=3) == ["new", "sales", "plan"]

        await eventually_true(new_comes_first)
        assert await refs(agent, keywords=["figures", *["zq"] * 99]) == await refs(agent, keywords=["figures"])
        for keywords in (["zq"] * 101, ["z" * 10_001], ["z" * 5000, "q" * 5001]):
            refused = await agent.ask(GET_FINDER_EVENT, keywords=keywords)
            assert (refused["error"]["code"], refused["error"]["details"]) == (400, {"field": "keywords"})
        for page in ({"offset": -1}, {"limit": -1}, {"limit": "20"}):
            assert (await agent.ask(GET_FINDER_EVENT, **page))["error"]["code"] == 400


@both_eras
async def test_更新通知链(hub: Running, era: str) -> None:  # noqa: N802
    async with watched(hub.url, documents(era)) as (agent, _):

        async def after(tool: str, **params: Any) -> list[str]:
            """The titles once a change was heard of."""
            agent.received.clear()
            await agent.tool(tool, **params)
            await eventually(lambda: heard(agent, UPDATE_FINDER_NOTIFICATION))
            assert heard(agent, UPDATE_FINDER_NOTIFICATION)[0] == {"computer": "pc"}
            assert heard(agent, UPDATE_DESKTOP_NOTIFICATION) == []
            return [found["title"] for found in (await finder(agent))["documents"]]

        assert await after("put", doc_ref="memo", title="A memo") == ["A memo", "Sales 2026", "The plan"]
        assert await after("put", doc_ref="memo", title="The memo") == ["The memo", "Sales 2026", "The plan"]
        assert await after("remove", doc_ref="memo") == ["Sales 2026", "The plan"]


@both_eras
async def test_渐进式导航(hub: Running, era: str) -> None:  # noqa: N802
    async with watched(hub.url, documents(era)) as (agent, _):
        catalogue = await read_json(agent, CATALOGUE)
        assert catalogue["total_count"] == 2
        uri = catalogue["documents"][0]["uri"]
        assert uri == SALES
        assert (await read_json(agent, uri))["page_count"] == 2
        pages = await read_json(agent, f"{uri}?depth=pages&offset=1&limit=5")
        assert (pages["page_offset"], pages["page_limit"], pages["page_total"]) == (1, 5, 2)
        [page] = pages["pages"]
        content = await read_json(agent, page["uri"])
        assert [found["category"] for found in content["elements"]] == ["table", "chart", "formula", "code", "link"]
        tables = await read_json(agent, f"{page['uri']}?categories=table")
        assert [found["element_id"] for found in tables["elements"]] == ["t1"]
        element = await read_json(agent, f"{uri}/elements/t1")
        assert (element["category"], element["page_index"]) == ("table", 1)
        assert (await read_json(agent, f"{uri}/elements/a%2F1"))["category"] == "annotation"
        kind, text = await read(agent, f"{page['uri']}?format=markdown&categories=table,chart")
        assert kind == "text/markdown"
        assert text == "| quarter | sales |\n| --- | --- |\n| Q1 | 10 |\n| Q2 | 12 |\n\n[图表: Sales] rising"
        assert await read(agent, f"{uri}/pages/0?format=text&categories=text") == ("text/plain", "Sales went up.")


async def test_错误传播(hub: Running) -> None:  # noqa: N802
    errors: dict[str, tuple[int, dict[str, Any]]] = {
        f"{CATALOGUE}/nothing": (4201, {"doc_ref": "nothing"}),
        "dpe://com.example.unknown/x": (4201, {"doc_ref": "x"}),
        f"{SALES}/pages/99": (4202, {"page_index": 99, "page_count": 2}),
        f"{SALES}/elements/nothing": (4203, {"element_id": "nothing"}),
        f"{SALES}/chapters/1": (4204, {"uri": f"{SALES}/chapters/1"}),
        f"{SALES}?format=pdf": (4204, {"uri": f"{SALES}?format=pdf"}),
        # Of a server that knows MCP's own "resource not found" only.
        "dpe://fake/0/pages/7": (4202, {"page_index": 7, "page_count": 1}),
        "dpe://fake/0/elements/7": (4203, {"element_id": "7"}),
        "dpe://fake/nothing": (4201, {"doc_ref": "nothing"}),
    }
    async with watched(hub.url, documents(), server("b", documents=1)) as (agent, _):
        await finder(agent)
        for uri, (code, details) in errors.items():
            error = (await agent.ask(READ_RESOURCE_EVENT, uri=uri))["error"]
            assert (error["code"], error["details"]) == (code, details)
            assert error["message"]
