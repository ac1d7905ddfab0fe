"""What a strange or hostile computer shares costs the hosts nothing that other computers share."""

from typing import Any

import anyio
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
from tests.mcp_server.clients import ERAS, connected, eventually

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


async def test_a_time_that_some_hosts_cannot_read_is_left_out(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    times = ("2026-11-18T03:04:05Z", "2026-11-18T03:04:05.5+08:00", "yesterday", "2026-02-30T00:00:00Z", "2026-11-18")

    def setup(computer: FakeComputer) -> None:
        notes = [{"priority": 0.5, "lastModified": time} for time in times]
        items = [{"uri": f"x://{n}", "name": "n", "mcp_server": "s", "annotations": it} for n, it in enumerate(notes)]
        sharing(computer, items)

    await make_computer("strange", setup)
    async with connected(office_server(await make_agent()).mcp, ERAS[0]) as (client, _):
        listed = [each.annotations for each in (await client.list_resources()).resources if each.annotations]
    assert [each.last_modified for each in listed] == [*times[:2], None, None, None]
    assert [each.priority for each in listed] == [0.5] * len(times)


async def test_a_computer_that_never_sends_its_list_is_not_announced_again_and_again(
    make_agent: MakeAgent, make_computer: MakeComputer, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = anyio.Event()

    async def too_late(_: Any) -> Any:
        await late.wait()
        return {"error": {"code": 408, "message": "it does not answer"}}

    def setup(computer: FakeComputer) -> None:
        sharing(computer, [])
        computer.override[GET_PROMPTS_EVENT] = too_late

    monkeypatch.setattr("a2c_smcp.office_mcp.shared_lists._PATIENCE", 0.1)
    computer = await make_computer("hanging", setup)
    async with connected(office_server(await make_agent()).mcp, ERAS[0]) as (client, listening):
        assert (await client.list_prompts()).prompts == []
        late.set()
        computer.override[GET_PROMPTS_EVENT] = lambda _: {"prompts": [{"name": "p", "mcp_server": "s"}]}

        async def is_listed() -> bool:
            return bool((await client.list_prompts()).prompts)

        await eventually(is_listed)
        assert "prompts" not in listening.heard
