"""How calls of a model run: at the same time, within a budget, heard of, cancelled, and for blocking agents too."""

import asyncio
import base64
import re
import sys
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
import pytest

from a2c_smcp.agent.llm import CallEvents, ToolRequest, office_tools, run_tool_calls
from a2c_smcp.agent.llm.blocks import shown_results
from a2c_smcp.agent.llm.replies import read_reply
from a2c_smcp.agent.llm.styles import STYLES, Style
from a2c_smcp.smcp import READ_RESOURCE_EVENT, TOOL_CALL_EVENT, WAITING_FOR_PERSON
from tests.agent.conftest import MakeAgent, MakeComputer
from tests.agent.harness import DOCUMENT, FakeComputer, a_tool
from tests.agent.llm.conftest import PIXEL
from tests.server.harness import eventually

LONG = "".join(f"line {n}\n" for n in range(2000))


def asks(*calls: tuple[str, Any]) -> dict[str, Any]:
    """A message of a model that calls tools, in the style of Anthropic's API."""
    blocks = [
        {"type": "tool_use", "id": f"c{n}", "name": name, "input": given} for n, (name, given) in enumerate(calls)
    ]
    return {"role": "assistant", "content": blocks}


def texts(messages: list[Any]) -> list[str]:
    return ["".join(part.get("text", "") for part in block["content"]) for block in messages[-1]["content"]]


async def test_nothing_is_appended_if_no_tool_is_called(make_agent: MakeAgent) -> None:
    agent = await make_agent()
    assert await run_tool_calls(agent, {"role": "assistant", "content": "Hello."}) == []
    assert await run_tool_calls(agent, {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}) == []


@pytest.mark.parametrize("message", [None, 7, "text", {}, object(), [{}]])
async def test_what_is_no_answer_of_a_model_is_refused_with_advice(make_agent: MakeAgent, message: Any) -> None:
    agent = await make_agent()
    with pytest.raises(ValueError, match="pass what the SDK returned"):
        await run_tool_calls(agent, message)


async def test_an_agent_without_a_live_view_is_refused_with_advice(make_agent: MakeAgent) -> None:
    agent = await make_agent(live=False)
    with pytest.raises(ValueError, match="live=False"):
        await office_tools(agent, "openai")


async def test_an_unknown_style_is_named(make_agent: MakeAgent) -> None:
    agent: Any = await make_agent()
    with pytest.raises(ValueError, match="openai-responses"):
        await office_tools(agent, "mistral")  # type: ignore[call-overload]


async def test_calls_run_at_the_same_time(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    computer = await make_computer("laptop", lambda each: each.tools.append(a_tool("wait")))
    agent = await make_agent()
    running = asyncio.create_task(run_tool_calls(agent, asks(("laptop__wait", {}), ("laptop__wait", {}))))
    await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 2, 30)
    computer.release.set()
    assert texts(await running) == ["released", "released"]


async def test_a_cancelled_task_cancels_the_tools(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    computer = await make_computer("laptop", lambda each: each.tools.append(a_tool("slow")))
    agent = await make_agent()
    running = asyncio.create_task(run_tool_calls(agent, asks(("laptop__slow", {}), ("laptop__slow", {}))))
    await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 2, 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    ids = [each["req_id"] for each in computer.requests(TOOL_CALL_EVENT)]
    await eventually(lambda: all(computer.cancelled(each) for each in ids), 30)


async def test_a_long_result_is_cut_and_can_be_read_to_its_end(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    await make_computer()
    agent = await make_agent()
    [text] = texts(await run_tool_calls(agent, asks(("laptop__echo", {"text": LONG})), budget=3000))
    whole = ""
    for _ in range(100):
        assert len(text) <= 3000
        body, _, note = text.partition("\n\n[")
        whole += body
        if not note:
            break
        found = re.search(r"read_more with source='([^']+)' and offset=(\d+)]", note)
        assert found is not None
        more = asks(("read_more", {"source": found[1], "offset": int(found[2])}))
        [text] = texts(await run_tool_calls(agent, more, budget=3000))
    assert whole == LONG
    [text] = texts(await run_tool_calls(agent, asks(("read_more", {"source": "result-unknown"}))))
    assert "call the tool again" in text


async def test_many_results_at_once_share_four_budgets(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    await make_computer()
    agent = await make_agent()
    many = asks(*[("laptop__echo", {"text": LONG})] * 16)
    found = texts(await run_tool_calls(agent, many, budget=4000))
    assert len(found) == 16 and all(500 < len(text) <= 1000 for text in found)


async def test_a_result_floods_no_request(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    def flood(computer: FakeComputer) -> None:
        images = [{"type": "image", "data": PIXEL, "mimeType": "image/png"}] * 500
        texts = [{"type": "text", "text": "\ud800\x00\x1b[2J" * 10_000}]
        computer.override[TOOL_CALL_EVENT] = lambda _: FakeComputer.result("", content=[*images, *texts])

    await make_computer("laptop", flood)
    agent = await make_agent()
    _, answer = await run_tool_calls(agent, asks(("laptop__echo", {})))
    [block] = answer["content"]
    kinds = [part["type"] for part in block["content"]]
    assert kinds.count("image") == 20 and kinds.count("text") == 1
    [text] = [part["text"] for part in block["content"] if part["type"] == "text"]
    assert len(text) <= 20_000 and "there are too many" in text
    text.encode()


async def test_what_a_link_leads_to_can_be_read(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    def setup(computer: FakeComputer) -> None:
        link = {"type": "resource_link", "name": "log", "uri": "file:///log"}
        computer.override[TOOL_CALL_EVENT] = lambda _: FakeComputer.result("", content=[link])
        contents = [{"uri": "file:///log", "mimeType": "text/plain", "text": "it is written"}]
        computer.override[READ_RESOURCE_EVENT] = lambda _: {"contents": contents}

    await make_computer("laptop", setup)
    agent = await make_agent()
    [text] = texts(await run_tool_calls(agent, asks(("laptop__echo", {}))))
    found = re.search(r"a2c://\S+(?=:)", text)
    assert found is not None
    [text] = texts(await run_tool_calls(agent, asks(("read_more", {"source": found[0]}))))
    assert text == "it is written"


async def test_a_program_hears_of_calls(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    async def report(data: dict[str, Any]) -> Any:
        base = {"computer": "laptop", "agent": data["agent"], "req_id": data["req_id"]}
        for message in (WAITING_FOR_PERSON, "half"):
            await computer.peer.emit(
                "server:tool_progress", {**base, "progress": 1.0, "total": 2.0, "message": message}
            )
        return FakeComputer.result("done")

    computer = await make_computer("laptop")
    computer.override[TOOL_CALL_EVENT] = report
    agent = await make_agent()
    heard: list[Any] = []

    async def on_progress(call: ToolRequest, progress: float, total: float | None, message: str | None) -> None:
        heard.append((call.tool, progress, total, message))

    def fails(*_: Any) -> None:
        raise RuntimeError("a mistake of the program")

    events = CallEvents(
        on_start=lambda call: heard.append(("start", call.computer, call.tool)),
        on_progress=on_progress,
        on_waiting=lambda call: heard.append(("waits", call.computer)),
        on_end=fails,
    )
    assert texts(await run_tool_calls(agent, asks(("laptop__echo", {})), events=events)) == ["done"]
    assert heard == [("start", "laptop", "echo"), ("waits", "laptop"), ("echo", 1.0, 2.0, "half")]


async def test_functions_of_the_program_are_called_too(make_agent: MakeAgent) -> None:
    agent = await make_agent()

    async def double(number: int) -> int:
        return 2 * number

    functions: dict[str, Any] = {"double": double, "fail": lambda: 1 / 0}
    message = asks(("double", {"number": 4}), ("fail", {}), ("double", {"wrong": 1}))
    twice, failed, wrong = texts(await run_tool_calls(agent, message, functions=functions))
    assert twice == "8" and "ZeroDivisionError" in failed and "TypeError" in wrong


@pytest.mark.parametrize("arguments", ["{", "[1]", '"text"', 7, "[" * 100_000])
async def test_arguments_that_are_no_object_are_answered_with_advice(
    make_agent: MakeAgent, make_computer: MakeComputer, arguments: Any
) -> None:
    await make_computer()
    agent = await make_agent()
    call = {"id": "c1", "type": "function", "function": {"name": "laptop__echo", "arguments": arguments}}
    own, answer = await run_tool_calls(agent, {"role": "assistant", "content": None, "tool_calls": [call]})
    assert own["tool_calls"] == [call]
    assert "JSON object" in answer["content"] and answer["tool_call_id"] == "c1"


async def test_many_tools_are_found_by_a_search(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    def many(computer: FakeComputer) -> None:
        computer.tools += [a_tool(f"tool_{n}") for n in range(60)]

    computer = await make_computer("laptop", many)
    agent = await make_agent()
    names = [tool["name"] for tool in await office_tools(agent, "anthropic")]
    assert "search_tools" in names and "laptop__echo" not in names
    assert await office_tools(agent, "anthropic") == await office_tools(agent, "anthropic")
    found, called = texts(
        await run_tool_calls(
            agent,
            asks(
                ("search_tools", {"query": "echo"}),
                ("call_tool", {"computer": "laptop", "tool": "echo", "arguments": {"text": "hi"}}),
            ),
        )
    )
    assert '"tool":"echo"' in found and called == "hi"
    # A list that comes and goes would spoil prompt caches: an office that has had many tools keeps its search.
    computer.tools = computer.tools[:1]
    await computer.announce("server:update_tool_list")
    await eventually(lambda: len(agent.computers["laptop"].tools or ()) == 1, 30)
    assert "search_tools" in [tool["name"] for tool in await office_tools(agent, "anthropic")]


async def test_a_blocking_agent_gets_results_not_coroutines(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    await make_computer()
    blocking: Any = await make_agent("sync")

    def program() -> tuple[list[str], list[str]]:
        tools = office_tools(blocking.client, "anthropic")
        messages = run_tool_calls(blocking.client, asks(("laptop__echo", {"text": "hi"})))
        return [tool["name"] for tool in tools], texts(messages)

    names, said = await anyio.to_thread.run_sync(program)
    assert "laptop__echo" in names and said == ["hi"]


# --- images and documents


def returns(*content: dict[str, Any], **more: Any) -> Callable[[FakeComputer], None]:
    def setup(computer: FakeComputer) -> None:
        computer.override[TOOL_CALL_EVENT] = lambda _: FakeComputer.result("", content=list(content), **more)

    return setup


def kinds_of(answer: Any) -> list[list[str]]:
    return [[part["type"] for part in block["content"]] for block in answer["content"]]


async def test_bytes_that_are_not_of_their_type_are_not_shown(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    page, jpeg = (base64.b64encode(each).decode() for each in (b"<html>no</html>", b"\xff\xd8\xff\xe0 a JPEG"))
    blob = {"uri": "file:///a.pdf", "blob": page, "mimeType": "application/pdf"}
    content: list[Any] = [
        {"type": "image", "data": page, "mimeType": "image/png"},
        {"type": "resource", "resource": blob},
    ]
    await make_computer("laptop", returns(*content, {"type": "image", "data": jpeg, "mimeType": "image/png"}))
    agent = await make_agent()
    _, answer = await run_tool_calls(agent, asks(("laptop__echo", {})))
    [[text, image]] = [block["content"] for block in answer["content"]]
    assert text["text"].count("its bytes are not of this type") == 2
    assert image["source"] == {"type": "base64", "media_type": "image/jpeg", "data": jpeg}


@pytest.mark.parametrize("style", STYLES)
def test_the_results_of_a_turn_share_the_room_for_images(style: Style) -> None:
    large = base64.b64encode(base64.b64decode(PIXEL) + bytes(3_700_000)).decode()
    image = types.ImageContent(type="image", data=large, mime_type="image/png")
    shown = shown_results([types.CallToolResult(content=[image, image])] * 4, style)
    assert [len(each.media) for each in shown] == [2, 0, 0, 0]
    assert "there are too many" in shown[3].text


async def test_a_model_that_takes_text_only_gets_words_for_images(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    await make_computer("laptop", returns({"type": "image", "data": PIXEL, "mimeType": "image/png"}))
    agent = await make_agent()
    _, answer = await run_tool_calls(agent, asks(("laptop__echo", {})), images=False)
    assert kinds_of(answer) == [["text"]] and "only text is shown here" in texts([answer])[0]


async def test_a_failed_result_with_an_image_is_called_an_error(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    await make_computer("laptop", returns({"type": "text", "text": "it broke"}, image, isError=True))
    agent = await make_agent()
    call = {"type": "function_call", "call_id": "c1", "name": "laptop__echo", "arguments": "{}"}
    _, answer = await run_tool_calls(agent, [call])
    assert [part.get("text") for part in answer["output"]] == ["Error: it broke", None]


# --- what strangers send


async def test_hostile_data_of_one_call_is_an_answer_and_the_others_go_on(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    def setup(computer: FakeComputer) -> None:
        contents = [{"uri": "file:///x", "mimeType": 5, "blob": PIXEL}]
        computer.override[READ_RESOURCE_EVENT] = lambda _: {"contents": contents}

    await make_computer("laptop", setup)
    agent = await make_agent()
    message = asks(("read_more", {"source": "a2c://laptop/file//x"}), ("laptop__echo", {"text": "hi"}))
    first, second = texts(await run_tool_calls(agent, message))
    assert "bytes, not shown" in first and second == "hi"


async def test_a_mistake_in_one_call_is_an_answer_and_the_others_go_on(
    make_agent: MakeAgent, make_computer: MakeComputer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_computer("laptop")
    agent = await make_agent()
    await office_tools(agent, "anthropic")

    async def broken(*_: Any) -> Any:
        raise KeyError("a mistake of ours")

    monkeypatch.setattr(agent._for_models._calls, "answer", broken)
    first, second = texts(await run_tool_calls(agent, asks(("list_computers", {}), ("laptop__echo", {"text": "hi"}))))
    assert "list_computers failed in the program" in first and second == "hi"


async def test_deep_arguments_for_a_found_tool_are_answered(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    await make_computer("laptop")
    agent = await make_agent()
    deep = {"computer": "laptop", "tool": "echo", "arguments": "[" * 100_000}
    [text] = texts(await run_tool_calls(agent, asks(("call_tool", deep))))
    assert "they are not a JSON object" in text


async def test_an_own_tool_starts_before_it_is_answered_and_ends_in_time(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    async def never(_: Any) -> Any:
        await computer.release.wait()
        return {"contents": []}

    computer = await make_computer("laptop")
    computer.override[READ_RESOURCE_EVENT] = never
    agent = await make_agent()
    heard: list[str] = []
    events = CallEvents(
        on_start=lambda call: heard.append(f"{call.name} after {len(computer.requests(READ_RESOURCE_EVENT))} reads"),
        on_end=lambda call, result: heard.append(str(result.is_error)),
    )
    message = asks(("read_document", {"document": DOCUMENT}))
    with anyio.fail_after(30):
        [text] = texts(await run_tool_calls(agent, message, timeout=1, events=events))
    assert "It was stopped after 1 s" in text and heard == ["read_document after 0 reads", "True"]


async def test_a_document_of_empty_pages_takes_no_more_than_fifty_requests(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    computer = await make_computer("laptop")
    computer.override[READ_RESOURCE_EVENT] = lambda _: {"contents": [{"uri": "dpe://h/x", "text": ""}]}
    agent = await make_agent()
    message = asks(("read_document", {"document": DOCUMENT, "page": 0}))
    [text] = texts(await run_tool_calls(agent, message))
    assert len(computer.requests(READ_RESOURCE_EVENT)) == 50 and "read_document with page=50" in text


def test_calls_after_a_message_are_found_in_the_items_of_a_response() -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]}
    call = {"type": "function_call", "call_id": "c1", "name": "laptop__echo", "arguments": "{}"}
    reply = read_reply([said, call])
    assert (reply.style, [each.id for each in reply.calls]) == ("openai-responses", ["c1"])


def test_calls_without_ids_are_told_apart() -> None:
    parts = [
        {"function_call": {"name": "a"}},
        {"function_call": {"name": "a"}},
        {"function_call": {"name": "a", "id": "x"}},
    ]
    calls = read_reply({"role": "model", "parts": parts}).calls
    assert [(each.id, each.has_own_id) for each in calls] == [("call-1", False), ("call-2", False), ("x", True)]


async def test_a_small_budget_is_refused(make_agent: MakeAgent) -> None:
    agent = await make_agent()
    with pytest.raises(ValueError, match="at least 500"):
        await run_tool_calls(agent, asks(("list_computers", {})), budget=100)


async def test_code_of_the_program_that_exits_ends_neither_calls_nor_a_blocking_agent(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    await make_computer()
    blocking: Any = await make_agent("sync")

    def leave(*_: Any) -> None:
        sys.exit(3)

    def program() -> list[str]:
        message = asks(("leave", {}), ("laptop__echo", {"text": "hi"}))
        functions, events = {"leave": leave}, CallEvents(on_start=leave)
        return texts(run_tool_calls(blocking.client, message, functions=functions, events=events))

    assert await anyio.to_thread.run_sync(program) == ["SystemExit: 3", "hi"]
    assert blocking.client.joined
