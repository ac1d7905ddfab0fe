"""An office through the real SDKs, at a service that enforces the rules of the APIs."""

import inspect
import json
from typing import Any

import pytest

from a2c_smcp.agent.llm import Style, office_tools, run_tool_calls
from a2c_smcp.smcp import TOOL_CALL_EVENT
from tests.agent.conftest import MakeAgent, MakeComputer
from tests.agent.harness import FakeComputer, a_tool
from tests.agent.llm import agents
from tests.agent.llm.conftest import PDF, PIXEL
from tests.hosts.poison_mcp import INPUTS
from tests.models.service import Heard, ModelService, Turn

STYLES: list[Style] = ["openai", "openai-responses", "anthropic", "gemini"]
WITH: dict[str, Any] = {
    "openai": agents.openai_with,
    "openai-responses": agents.responses_with,
    "anthropic": agents.anthropic_with,
    "gemini": agents.gemini_with,
}
WITHOUT: dict[str, Any] = {
    "openai": agents.openai_without,
    "openai-responses": agents.responses_without,
    "anthropic": agents.anthropic_without,
    "gemini": agents.gemini_without,
}


def asked(style: str, text: str = "Do it.") -> list[Any]:
    """A conversation that begins."""
    return [{"role": "user", "parts": [{"text": text}]}] if style == "gemini" else [{"role": "user", "content": text}]


def said(style: str, reply: Any) -> str:
    match style:
        case "openai":
            return str(reply.choices[0].message.content)
        case "openai-responses":
            return str(reply.output_text)
        case "anthropic":
            return "".join(block.text for block in reply.content)
        case _:
            return str(reply.text)


def answers(heard: Heard) -> list[tuple[str, bool]]:
    """The texts of the tools' answers at the end of a request, and whether each is marked as an error."""
    body = heard.body
    match heard.style:
        case "openai":
            found = [message["content"] for message in body["messages"] if message["role"] == "tool"]
            return [(text, text.startswith("Error")) for text in found]
        case "openai-responses":
            found = [item["output"] for item in body["input"] if item.get("type") == "function_call_output"]
            texts = [each if isinstance(each, str) else json.dumps(each) for each in found]
            return [(text, text.startswith("Error")) for text in texts]
        case "anthropic":
            blocks = body["messages"][-1]["content"]
            return [(json.dumps(block["content"]), block.get("is_error", False)) for block in blocks]
        case _:
            parts = [part["functionResponse"] for part in body["contents"][-1]["parts"]]
            return [(json.dumps(each), "error" in each["response"]) for each in parts]


@pytest.mark.parametrize("style", STYLES)
def test_the_glue_is_at_most_four_lines(style: str) -> None:
    without, using = (
        [line.strip() for line in inspect.getsource(each).splitlines()[1:]] for each in (WITHOUT[style], WITH[style])
    )
    glue = [line for line in using if line not in without]
    assert 1 <= len(glue) <= 4, glue


@pytest.mark.parametrize("style", STYLES)
async def test_a_model_uses_two_computers_at_once(
    style: Style, sdk: Any, service: ModelService, make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    laptop, desk = await make_computer("laptop"), await make_computer("书房的电脑")
    agent = await make_agent()
    service.says(
        Turn("Let me see.", (("laptop__echo", {"text": "one"}), ("pc-55f055__echo", {"text": "two"}))),
        Turn(calls=(("laptop__echo", {"text": "three"}),)),
        Turn("Done."),
    )
    messages = asked(style)
    reply = await WITH[style](sdk(style), messages, agent)
    assert said(style, reply) == "Done."
    assert ["one" in answers(service.requests[1])[0][0], "two" in answers(service.requests[1])[1][0]] == [True, True]
    assert "three" in answers(service.requests[2])[-1][0]
    assert [each["params"] for each in desk.requests(TOOL_CALL_EVENT)] == [{"text": "two"}]
    assert len(laptop.requests(TOOL_CALL_EVENT)) == 2
    # What was appended can be kept as JSON, but for the bytes that google-genai wants.
    assert style == "gemini" or json.loads(json.dumps(messages)) == messages


@pytest.mark.parametrize("style", STYLES)
async def test_wild_names_and_schemas_are_taken_by_every_service(
    style: Style, sdk: Any, service: ModelService, make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    def wild(computer: FakeComputer) -> None:
        names = ["read file", "a" * 200, "截图", "3d.render", "read.file", "read_file", "x" * 2000 + "y"]
        computer.tools = [{**a_tool(name), "description": "d" * 30_000} for name in names]
        computer.tools += [{**a_tool(name), "params_schema": schema} for name, schema in INPUTS.items()]

    await make_computer("3d-printer", wild)
    agent = await make_agent()
    service.says(Turn("Done."))
    tools = await office_tools(agent, style, search=False)
    assert len(tools) == 5 + 7 + len(INPUTS)
    assert said(style, await WITHOUT_SEARCH[style](sdk(style), tools)) == "Done."


async def _openai(client: Any, tools: Any) -> Any:
    return await client.chat.completions.create(model="m", messages=asked("openai"), tools=tools)


async def _responses(client: Any, tools: Any) -> Any:
    return await client.responses.create(model="m", input="Do it.", tools=tools)


async def _anthropic(client: Any, tools: Any) -> Any:
    return await client.messages.create(model="m", max_tokens=10, messages=asked("anthropic"), tools=tools)


async def _gemini(client: Any, tools: Any) -> Any:
    config = {"tools": [{"function_declarations": tools}]}
    return await client.aio.models.generate_content(model="m", contents="Do it.", config=config)


WITHOUT_SEARCH: dict[str, Any] = {
    "openai": _openai,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}


def show_everything(computer: FakeComputer) -> None:
    content = [
        {"type": "text", "text": "Here it is."},
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "image", "data": PIXEL, "mimeType": "image/bmp"},
        {"type": "image", "data": "no base64!", "mimeType": "image/png"},
        {"type": "image", "data": "PGh0bWw+", "mimeType": "image/png"},
        {"type": "audio", "data": PIXEL, "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a/paper.pdf", "blob": PDF, "mimeType": "application/pdf"}},
        {"type": "resource", "resource": {"uri": "file:///a/b.txt", "text": "written"}},
        {"type": "resource_link", "name": "log", "uri": "file:///log"},
    ]
    computer.override[TOOL_CALL_EVENT] = lambda _: FakeComputer.result("", content=content)


@pytest.mark.parametrize("style", STYLES)
async def test_images_and_documents_are_blocks_and_the_rest_is_in_words(
    style: Style, sdk: Any, service: ModelService, make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    await make_computer("laptop", show_everything)
    agent = await make_agent()
    service.says(Turn(calls=(("echo", {}), ("echo", {}))), Turn("Done."))
    await WITH[style](sdk(style), asked(style), agent)
    texts, whole = answers(service.requests[1]), json.dumps(service.requests[1].body)
    for text, _ in texts:
        assert "Here it is." in text and "written" in text
        assert "image/bmp" in text and "audio/wav" in text and "not base64" in text
        assert "its bytes are not of this type" in text
        assert "a2c://laptop/file//log" in text
    data = PIXEL.replace("+", "-").replace("/", "_") if style == "gemini" else PIXEL
    assert whole.count(data) == 2 and whole.count(PDF) == 2


@pytest.mark.parametrize("style", STYLES)
async def test_failures_help_a_model(
    style: Style, sdk: Any, service: ModelService, make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    computer = await make_computer("laptop", lambda each: each.tools.append(a_tool("fail")))
    agent = await make_agent()
    service.says(Turn(calls=(("laptop__fail", {}), ("laptop__gone", {}), ("see_desktop", {"offset": -1}))), Turn("Oh."))
    await WITH[style](sdk(style), asked(style), agent)
    failed, unknown, wrong = answers(service.requests[1])
    assert "it broke" in failed[0] and "Try once more" in failed[0]
    assert "has no such tool now" in unknown[0] and "do not fit see_desktop" in wrong[0]
    assert failed[1] and unknown[1] and wrong[1]
    assert len(computer.requests(TOOL_CALL_EVENT)) == 1


@pytest.mark.parametrize("style", STYLES)
async def test_a_streamed_answer_is_as_good(
    style: Style, sdk: Any, service: ModelService, make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    await make_computer("laptop")
    await make_computer("desk")
    agent = await make_agent()
    calls = (("laptop__echo", {"text": "a long text in pieces"}), ("desk__echo", {"text": "another"}))
    turn = Turn("First this.", calls)
    service.says(turn, turn, turn)
    client, tools = sdk(style), await office_tools(agent, style)
    for streamed in STREAMED[style]:
        messages = asked(style)
        reply = await streamed(client, messages, tools)
        messages += await run_tool_calls(agent, reply)
        service.says(Turn("Done."))
        service._turns.reverse()
        assert said(style, await CONTINUED[style](client, messages)) == "Done."
        assert ["in pieces" in text or "another" in text for text, _ in answers(service.requests[-1])] == [True, True]


@pytest.mark.parametrize("style", STYLES)
async def test_an_answer_may_be_a_dict(
    style: Style, sdk: Any, service: ModelService, make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    computer = await make_computer("laptop")
    agent = await make_agent()
    service.says(Turn("First this.", (("laptop__echo", {"text": None}),)), Turn("Done."))
    client = sdk(style)
    reply = await WITHOUT_SEARCH[style](client, await office_tools(agent, style))
    messages = [*asked(style), *await run_tool_calls(agent, reply.model_dump())]
    assert said(style, await WITHOUT[style](client, messages)) == "Done."
    assert [each["params"] for each in computer.requests(TOOL_CALL_EVENT)] == [{"text": None}]
    own = service.requests[1].body
    assert "null" not in json.dumps(own).replace('{\\"text\\": null}', "").replace('{"text": null}', "").replace(
        '"content": null', ""
    )


async def _openai_chunks(client: Any, messages: Any, tools: Any) -> Any:
    chunks = await client.chat.completions.create(model="m", messages=messages, tools=tools, stream=True)
    return [chunk async for chunk in chunks]


async def _openai_helper(client: Any, messages: Any, tools: Any) -> Any:
    async with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
        return await stream.get_final_completion()


async def _responses_events(client: Any, messages: Any, tools: Any) -> Any:
    events = await client.responses.create(model="m", input=messages, tools=tools, stream=True)
    return [event async for event in events]


async def _responses_helper(client: Any, messages: Any, tools: Any) -> Any:
    async with client.responses.stream(model="m", input=messages, tools=tools) as stream:
        return await stream.get_final_response()


async def _anthropic_helper(client: Any, messages: Any, tools: Any) -> Any:
    async with client.messages.stream(model="m", max_tokens=10, messages=messages, tools=tools) as stream:
        return await stream.get_final_message()


async def _gemini_chunks(client: Any, messages: Any, tools: Any) -> Any:
    config = {"tools": [{"function_declarations": tools}]}
    chunks = await client.aio.models.generate_content_stream(model="m", contents=messages, config=config)
    return [chunk async for chunk in chunks]


STREAMED: dict[str, list[Any]] = {
    "openai": [_openai_chunks, _openai_helper],
    "openai-responses": [_responses_events, _responses_helper],
    "anthropic": [_anthropic_helper],
    "gemini": [_gemini_chunks],
}
CONTINUED: dict[str, Any] = {
    "openai": agents.openai_without,
    "openai-responses": agents.responses_without,
    "anthropic": agents.anthropic_without,
    "gemini": agents.gemini_without,
}
