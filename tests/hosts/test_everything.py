"""What an MCP server says directly, and what a host gets of it through Computer, Server and `a2c mcp --computer`."""

import base64
import hashlib

import mcp_types as types
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.hosts.everything import BIG, TRACED, Places, payloads
from tests.mcp_server.clients import ERAS, LEGACY, connected, eventually, watching

both_eras = pytest.mark.parametrize("era", ERAS)


@both_eras
async def test_a_host_gets_the_same_through_the_office(places: Places, era: str) -> None:
    async with connected(places.direct, era) as (client, _):
        direct = await payloads(client)
    async with connected(places.through, era) as (client, _):
        through = await payloads(client)
    own = {"list_computers", "see_desktop", "find_documents", "read_document"}
    assert set(through["tools/list"]) - set(direct["tools/list"]) == own
    for name in own:
        del through["tools/list"][name]
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


@both_eras
async def test_a_resource_that_is_larger_than_a_message_is_read_whole(places: Places, era: str) -> None:
    whole = streamable_http_client(places.through, max_sse_event_size=None)  # mcp's client takes 1 MiB otherwise
    async with connected(whole, era) as (client, _):
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


@both_eras
async def test_a_host_hears_of_a_changed_resource(places: Places, era: str) -> None:
    uri = "test://watched-resource"
    async with connected(places.through, era) as (client, listening), watching(client, listening, uri):

        async def is_heard() -> bool:
            await client.call_tool("change", {"uri": uri})
            return uri in listening.heard

        await eventually(is_heard)  # the computer subscribes after the host was answered
