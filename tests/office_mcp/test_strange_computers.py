"""What a strange or hostile computer shares costs the hosts nothing that other computers share."""

from typing import Any

import mcp_types as types
import pytest

from a2c_smcp.office_mcp import office_server
from a2c_smcp.smcp import (
    COMPLETE_EVENT,
    GET_PROMPT_EVENT,
    GET_PROMPTS_EVENT,
    GET_RESOURCES_EVENT,
    READ_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
)
from tests.agent.conftest import MakeAgent, MakeComputer
from tests.agent.harness import FakeComputer, a_tool
from tests.mcp_server.clients import ERAS, connected

HALF = "\ud800"


def sharing(computer: FakeComputer, resources: Any, prompts: Any = (), templates: Any = ()) -> None:
    lists = {"resources": list(resources), "templates": list(templates)}
    computer.answers[GET_RESOURCES_EVENT] = lambda _: lists
    computer.answers[GET_PROMPTS_EVENT] = lambda _: {"prompts": list(prompts)}
    computer.listen()


def half_characters(computer: FakeComputer) -> None:
    meta = {"a": HALF, HALF: {HALF: [HALF]}}
    deep = "[" * 400 + "]" * 400
    computer.tools = [
        {**a_tool("echo"), "meta": {"MCP_TOOL_META": '{"a": "\\ud800", "b": {"\\ud800": 1}}'}},
        {**a_tool("deep"), "meta": {"MCP_TOOL_META": f'{{"a": {deep}}}'}},
        {**a_tool("odd"), "params_schema": {"type": "object", "properties": {"a": {"description": HALF}, HALF: {}}}},
    ]
    own = {"mcp_server": "s", "_meta": meta}
    computer.override[TOOL_CALL_EVENT] = lambda _: {
        "content": [{"type": "text", "text": HALF}],
        "structuredContent": {HALF: HALF},
        "isError": False,
        "meta": meta,
    }
    computer.override[READ_RESOURCE_EVENT] = lambda _: {"contents": [{"uri": f"x://{HALF}", "text": "a", **own}]}
    computer.answers[GET_PROMPT_EVENT] = lambda _: {
        "messages": [{"role": "user", "content": {"type": "text", "text": HALF}}]
    }
    computer.answers[COMPLETE_EVENT] = lambda _: {"completion": {"values": [HALF]}}
    sharing(
        computer,
        [{"uri": "x://y", "name": HALF, **own}],
        [{"name": "p", "arguments": [{"name": "x", "description": HALF}], **own}],
        [{"uriTemplate": "x://{y}", "name": "t", **own}],
    )


@pytest.mark.parametrize("era", ERAS)
async def test_half_a_character_of_one_computer_spoils_no_list_and_no_answer(
    make_agent: MakeAgent, make_computer: MakeComputer, era: str
) -> None:
    await make_computer("strange", half_characters)
    await make_computer("honest")
    server = office_server(await make_agent(), search="never").mcp
    async with connected(server, era) as (client, _):
        argument = {"name": "x", "value": ""}
        answers = [
            await client.list_tools(),
            await client.list_prompts(),
            await client.list_resources(),
            await client.list_resource_templates(),
            await client.call_tool("strange__echo", {}),
            await client.get_prompt("strange__p"),
            await client.read_resource("a2c://strange/x/y"),
            await client.complete(types.PromptReference(name="strange__p"), argument),
            await client.call_tool("honest__echo", {"text": "hi"}),
        ]
    written = [answer.model_dump_json(by_alias=True) for answer in answers]  # as mcp writes it on a pipe
    assert all("�" in text for text in written[:-1])
    assert all(name in written[0] for name in ("honest__echo", "strange__echo", "strange__deep", "strange__odd"))
