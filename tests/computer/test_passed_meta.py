"""What MCP says beside the content of a call: `_meta`, icons, titles and instructions pass in both directions."""

import json
from typing import Any

import pytest

from a2c_smcp.computer.mcp_clients.protocol_requests import passed_meta
from a2c_smcp.computer.redaction import discreet_config
from a2c_smcp.results import ICONS_KEY, META_KEY, TITLE_KEY, to_wire
from tests.computer.fakes.computers import running, sharing

ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
TRACE = {"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01", "tracestate": "x=1", "baggage": "k=v"}


def test_the_keys_of_the_session_are_not_the_callers_to_give() -> None:
    own = {"progressToken": 1, "io.modelcontextprotocol/protocolVersion": "x", "io.modelcontextprotocol/clientInfo": {}}
    assert passed_meta({**TRACE, "mine": {"a": [1]}, **own}) == {**TRACE, "mine": {"a": [1]}}
    assert passed_meta(None) == {}


@ERAS
async def test_meta_of_a_call_reaches_the_tool_and_meta_of_its_result_comes_back(era: str) -> None:
    async with running(sharing("s", protocol=era)) as (computer, _):
        meta = {**TRACE, "progressToken": "stolen", "io.modelcontextprotocol/clientInfo": {"name": "forged"}}
        reports: list[Any] = []
        result = to_wire(await computer.execute_tool("1", "s.meta", {}, 20, lambda *it: reports.append(it), meta=meta))
        [text] = result["content"]
        got = json.loads(text["text"])
        assert TRACE.items() <= got.items()
        assert got["progressToken"] != "stolen"
        assert got.get("io.modelcontextprotocol/clientInfo", {}).get("name") != "forged"
        assert text["_meta"] == {"on": "text"}
        assert result["meta"]["on"] == "result"  # type: ignore[index]


@ERAS
async def test_tools_have_their_meta_and_icons_and_servers_their_words(era: str) -> None:
    words = "Ask http://user:secret@10.0.0.1:80/ first. " + "x" * 9000
    async with running(sharing("s", protocol=era, instructions=words)) as (computer, _):
        tools = {tool["name"]: tool["meta"] or {} for tool in computer.get_available_tools()}
        meta = tools["s.meta"]
        assert meta[TITLE_KEY] == "Meta"
        assert json.loads(str(meta[META_KEY])) == {"ui": {"resourceUri": "ui://app/view"}, "n": 1}
        assert json.loads(str(meta[ICONS_KEY]))[0]["src"].startswith("data:")
        assert not {META_KEY, ICONS_KEY} & tools["s.echo"].keys()
        info = discreet_config(computer.get_config())["server_info"]["s"]
        assert (info["title"], info["version"]) == ("The Sharing Server", "1.2")
        assert info["instructions"].startswith("Ask http://***@***/ first. xxx")
        assert len(info["instructions"]) <= 8001
        await computer.stop_server("s")
        assert "instructions" not in computer.get_config()["server_info"]["s"]
