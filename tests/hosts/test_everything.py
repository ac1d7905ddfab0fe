"""What an MCP server says directly, and what a host gets of it through Computer, Server and `a2c mcp --computer`."""

import base64
import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from a2c_smcp.agent import AsyncSMCPAgentClient, LinkOptions
from a2c_smcp.office_mcp import office_server
from tests.hosts.asking import PROMPT
from tests.hosts.conftest import DEADLINE, ROOT
from tests.hosts.everything import BIG, TRACED, Places, payloads
from tests.hosts.features import table
from tests.mcp_server.clients import ERAS, LEGACY, MODERN, connected, eventually, watching
from tests.mcp_server.test_http import serving

both_eras = pytest.mark.parametrize("era", ERAS)


async def payloads_through(url: str, era: str, words: str) -> dict[str, Any]:
    """What a host gets once the words of the MCP server are known: a host that comes waits half a second for them."""
    with anyio.fail_after(DEADLINE):
        while True:
            async with connected(url, era) as (client, _):
                if words in (client.instructions or ""):
                    return await payloads(client)


@both_eras
async def test_a_host_gets_the_same_through_the_office(places: Places, era: str) -> None:
    async with connected(places.direct, era) as (client, _):
        direct = await payloads(client)
    url = places.through if era == LEGACY else places.modern
    through = await payloads_through(url, era, direct["info"]["instructions"])
    own = {"list_computers", "see_desktop", "find_documents", "read_document"}
    assert set(through["tools/list"]) - set(direct["tools/list"]) == own
    for name in own:
        del through["tools/list"][name]
    if era == LEGACY:
        _take_conditions_out(direct["tools/list"], through["tools/list"])
    assert through["resources/list"].pop("a2c://pc/desktop")
    said = through.pop("info")["instructions"]
    assert direct.pop("info")["instructions"] in said
    for method, expected in direct.items():
        assert through.pop(method) == expected, method
    assert through == {}
    # The comparison is not one of nothing with nothing.
    assert TRACED["traceparent"] in str(direct["tools/call links"])
    assert TRACED["traceparent"] in str(direct["resources/read static-text"])
    assert len(direct["progress"]) == 3


def _take_conditions_out(direct: dict[str, Any], through: dict[str, Any]) -> None:
    """APIs behind hosts of the older era refuse a schema with conditions at its top. The rest of it is there."""
    shown, whole = (tools["json_schema_2020_12_tool"]["inputSchema"] for tools in (through, direct))
    for condition in ("allOf", "if", "then", "else"):
        assert condition not in shown
        del whole[condition]
    del whole["$defs"]["address"]["$anchor"]


async def test_a_resource_that_is_larger_than_a_message_is_read_whole(places: Places) -> None:
    whole = streamable_http_client(places.through, max_sse_event_size=None)  # mcp's client takes 1 MiB otherwise
    async with connected(whole, LEGACY) as (client, _):
        [contents] = (await client.read_resource("test://big")).contents
    assert isinstance(contents, types.BlobResourceContents)
    body = base64.b64decode(contents.blob)
    assert len(body) == BIG
    assert hashlib.sha256(body).digest() == hashlib.sha256(bytes(range(256)) * (BIG // 256)).digest()


@both_eras
async def test_a_link_of_a_result_is_read_and_what_was_not_given_is_not(places: Places, era: str) -> None:
    async with connected(places.through, era) as (client, _):
        [link, _] = (await client.call_tool("links", {})).content
        assert isinstance(link, types.ResourceLink)
        [contents] = (await client.read_resource(link.uri)).contents
        assert isinstance(contents, types.TextResourceContents)
        assert contents.text == "The text of test://hidden/report"
        with pytest.raises(MCPError) as unknown:
            await client.read_resource("test://hidden/other")
        assert unknown.value.error.code == (-32002 if era == LEGACY else types.INVALID_PARAMS)
        with pytest.raises(MCPError):
            await client.get_prompt("nobody's")


async def test_a_prompt_that_asks_is_answered_by_the_person_at_the_host(places: Places) -> None:
    asked: list[str] = []

    async def say(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"context": "tea"})

    async with connected(places.modern, MODERN, elicitation_callback=say) as (client, _):
        [message] = (await client.get_prompt(PROMPT)).messages
    assert isinstance(message.content, types.TextContent)
    assert (asked, message.content.text) == (["What context should the prompt use?"], "With tea")
    async with connected(places.modern, MODERN) as (client, _):
        with pytest.raises(MCPError, match="failed to answer"):  # the host said that it asks nobody
            await client.get_prompt(PROMPT)


@both_eras
async def test_a_host_hears_of_a_changed_resource(places: Places, era: str) -> None:
    uri = "test://watched-resource"
    async with connected(places.through, era) as (client, listening), watching(client, listening, uri):

        async def is_heard() -> bool:
            await client.call_tool("change", {"uri": uri})
            return uri in listening.heard

        await eventually(is_heard)  # the computer subscribes after the host was answered


# --- the table of what passes


async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    """The person at the host."""
    return types.ElicitResult(action="accept", content={"username": "ada", "email": "ada@example.com"})


@both_eras
async def test_the_page_says_what_passes_through_an_office(places: Places, era: str) -> None:
    async with AsyncSMCPAgentClient(LinkOptions(places.hub), name="table") as agent:
        await agent.join_office("features")
        app = office_server(agent, search="never").http_app()
        async with (
            serving(app) as url,
            connected(f"{url}/mcp", era, elicitation_callback=answer) as (client, listening),
        ):
            await eventually(lambda: _has_tools(client))
            found = await table(client, listening)
    assert found in (ROOT / "docs" / "hosts.md").read_text("utf-8"), f"docs/hosts.md needs this table:\n{found}"


async def _has_tools(client: Client) -> bool:
    return any(tool.name.startswith("pc__") for tool in (await client.list_tools()).tools)


# --- MCP's own conformance suite

_SUITES = ROOT / ".node-conformance" / "node_modules"
_EXPECTED = Path(__file__).with_name("conformance-expected.yml")
#: The scenarios of 2026-07-28 that need sampling or roots, which MCP has deprecated.
DEPRECATED = {
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-multiple-input-requests",
    "input-required-result-capability-check",
}
_OLD, _NEW = "@modelcontextprotocol/conformance", "conformance-2026"
needs_node = pytest.mark.skipif(shutil.which("npm") is None, reason="the conformance suite needs npm")


def start(package: str, url: str, *options: str) -> "subprocess.Popen[str]":
    node = _SUITES / "node" / "bin" / "node"
    if not node.exists():
        pytest.fail(".node-conformance is missing: run `make test`, which sets it up")
    command = [str(node), str(_SUITES / package / "dist" / "index.js"), "server", "--url", url, "--suite", "all"]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def verdicts(process: "subprocess.Popen[str]") -> dict[str, bool]:
    """Whether each scenario passed."""
    said, _ = process.communicate(timeout=DEADLINE)
    found = {name: mark == "✓" for mark, name in re.findall(r"^([✓✗]) (\S+):", said, re.MULTILINE)}
    assert found, said[-3000:]
    return found


@needs_node
def test_the_conformance_suite_passes_through_the_office_where_it_passes_directly(places: Places) -> None:
    new = ("--spec-version", "2026-07-28")
    runs = [
        start(_OLD, places.direct),
        start(_OLD, places.through, "--expected-failures", str(_EXPECTED)),
        start(_NEW, places.direct, *new),
        start(_NEW, places.modern, *new),
    ]
    try:
        old_direct, old_through, new_direct, new_through = map(verdicts, runs)
    finally:
        for process in runs:
            process.kill()
            process.wait()
    assert (len(old_direct), sum(old_direct.values())) == (32, 32)
    assert (len(old_through), sum(old_through.values())) == (32, 29)
    assert runs[1].returncode == 0  # exactly those fail, or are warnings, that the file names
    # uvicorn leaves blanks behind the values of headers, which `a2c mcp` takes off.
    assert {name for name, passed in new_direct.items() if not passed} == {"http-header-validation"}
    assert (len(new_direct), {name for name, passed in new_through.items() if not passed}) == (40, DEPRECATED)
