"""How much of an answer an agent takes before it makes values of it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2c_smcp.agent.bounds import AnswerLimits, AnswerTooLargeError, build_answer
from a2c_smcp.agent.requests import Deadlines, get_tools, read_document, read_result, read_tools, tool_call, tool_meta
from a2c_smcp.errors import BadRequestError
from a2c_smcp.smcp import (
    ANSWER_QUESTION_EVENT,
    COMPLETE_EVENT,
    EVENTS,
    GET_BLOB_EVENT,
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_PROMPT_EVENT,
    GET_PROMPTS_EVENT,
    GET_RESOURCES_EVENT,
    GET_SKILL_EVENT,
    GET_SKILLS_EVENT,
    GET_TOOLS_EVENT,
    LIST_ROOM_EVENT,
    PUT_BLOB_EVENT,
    READ_RESOURCE_EVENT,
    SUBSCRIBE_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
    UNSUBSCRIBE_RESOURCE_EVENT,
    Kind,
)
from a2c_smcp.utils.json_sizes import has_more_values
from tests.agent.harness import a_tool

LIMITS = AnswerLimits(
    values=200, items=10, nested=30, tools_bytes=4000, config_bytes=4000, documents_bytes=4000, small_bytes=500
)
LISTS = {
    TOOL_CALL_EVENT: "content",
    GET_TOOLS_EVENT: "tools",
    GET_CONFIG_EVENT: "servers",
    GET_DESKTOP_EVENT: "desktops",
    GET_FINDER_EVENT: "documents",
    READ_RESOURCE_EVENT: "contents",
    GET_RESOURCES_EVENT: "resources",
    GET_PROMPTS_EVENT: "prompts",
    GET_PROMPT_EVENT: "messages",
    GET_SKILLS_EVENT: "skills",
}
SMALL = [
    COMPLETE_EVENT,
    SUBSCRIBE_RESOURCE_EVENT,
    UNSUBSCRIBE_RESOURCE_EVENT,
    ANSWER_QUESTION_EVENT,
    GET_SKILL_EVENT,
    PUT_BLOB_EVENT,
]
CHUNKS = [GET_BLOB_EVENT]  # they have a limit of documents, because they are larger than small
CALL = {"agent": "a", "req_id": "1"}
JSON = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a,[]{}":\\\n中', max_size=8),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(alphabet='a,{"\\', max_size=3), values),
    max_leaves=30,
)


def counted(value: Any) -> int:
    """As the limit counts: each value, and an empty list or object twice."""
    if not isinstance(value, list | dict):
        return 1
    return 1 + (sum(map(counted, value.values() if isinstance(value, dict) else value)) or 1)


def built(event: str, reply: Any) -> Any:
    return build_answer(event, json.dumps([reply]), LIMITS)


def test_every_answer_of_a_computer_has_a_limit() -> None:
    assert {*LISTS, *SMALL, *CHUNKS} == {name for name, event in EVENTS.items() if event.kind is Kind.RELAY}


@pytest.mark.parametrize("event", SMALL)
def test_an_answer_that_says_little_is_short(event: str) -> None:
    with pytest.raises(AnswerTooLargeError, match="500 bytes"):
        built(event, {"req_id": "1", "more": "x" * 500})


@settings(deadline=None, derandomize=True)
@given(JSON, st.sampled_from([None, 1]), st.integers(-2, 2))
def test_values_are_counted_as_they_would_be_built(value: Any, indent: int | None, more: int) -> None:
    text, count = json.dumps([value], indent=indent, ensure_ascii=False), counted([value])
    most = max(1, count - 1 + more)
    assert has_more_values(text + " " * 2 * most, most) is (count > most)


@pytest.mark.parametrize("text", ["a,b" * 1000, "[{" * 1000, '\\",' * 1000, "\\" * 1000, "中,\n" * 1000])
def test_what_stands_in_a_text_is_no_value(text: str) -> None:
    assert built(GET_DESKTOP_EVENT, {"desktops": [text]}) == ({"desktops": [text]},)


@pytest.mark.parametrize("event", LISTS)
@pytest.mark.parametrize("unit", [[], {}, 1, "x", {"a": 1}])
def test_too_many_values_are_refused_before_they_are_built(event: str, unit: Any) -> None:
    with pytest.raises(AnswerTooLargeError, match="JSON values"):
        built(event, {"any": [unit] * 300})


def test_an_answer_that_is_cut_short_is_counted_as_well() -> None:
    with pytest.raises(AnswerTooLargeError):
        build_answer(TOOL_CALL_EVENT, '[{"content":[' + "[]," * 300, LIMITS)


@pytest.mark.parametrize(
    ("event", "key"), [*LISTS.items(), (GET_CONFIG_EVENT, "server_info"), (GET_RESOURCES_EVENT, "templates")]
)
def test_too_many_items_are_refused(event: str, key: str) -> None:
    items: Any = ["x"] * 10
    assert built(event, {key: items}) == ({key: items},)
    with pytest.raises(AnswerTooLargeError, match=f"11 items in '{key}'"):
        built(event, {key: [*items, "x"]})
    with pytest.raises(AnswerTooLargeError, match=f"11 items in '{key}'"):
        built(event, {key: {str(number): {} for number in range(11)}})


@pytest.mark.parametrize("event", [GET_TOOLS_EVENT, GET_CONFIG_EVENT, GET_FINDER_EVENT])
def test_views_have_a_number_of_bytes(event: str) -> None:
    assert built(event, {"any": "中" * 600})
    with pytest.raises(AnswerTooLargeError, match="more than 4000 bytes"):
        built(event, {"any": "x" * 4000})
    with pytest.raises(AnswerTooLargeError, match="more than 4000 bytes"):
        build_answer(event, json.dumps([{"any": "中" * 1400}], ensure_ascii=False), LIMITS)
    assert built(TOOL_CALL_EVENT, {"any": "x" * 4000})


@pytest.mark.parametrize(
    ("event", "reply"),
    [
        (TOOL_CALL_EVENT, {"content": [{"type": "text", "text": "", "annotations": {"audience": ["x"] * 40}}]}),
        (TOOL_CALL_EVENT, {"content": [{"type": "text", "text": "", **{str(number): 1 for number in range(40)}}]}),
        (GET_TOOLS_EVENT, {"tools": [{**a_tool("t"), "meta": {str(number): [] for number in range(40)}}]}),
        (GET_FINDER_EVENT, {"documents": [{"keywords": ["x"] * 40}], "total_count": 1}),
    ],
)
def test_what_is_checked_one_by_one_inside_an_item_has_a_limit(event: str, reply: Any) -> None:
    with pytest.raises(AnswerTooLargeError, match="30 are allowed in one item"):
        built(event, reply)


def test_the_items_together_have_one_too() -> None:
    limits = AnswerLimits(nested=20)
    many = [{"type": "text", "text": "", "annotations": {"audience": ["user"] * 15}}] * 200
    with pytest.raises(AnswerTooLargeError, match="too many values"):
        build_answer(TOOL_CALL_EVENT, json.dumps([{"content": many}]), limits)
    assert build_answer(TOOL_CALL_EVENT, json.dumps([{"content": many[:50]}]), limits)


def test_schemas_meta_and_structured_content_may_be_anything() -> None:
    large = {str(number): number for number in range(100)}
    assert built(GET_TOOLS_EVENT, {"tools": [{**a_tool("t"), "params_schema": large, "meta": {}}]})
    assert built(TOOL_CALL_EVENT, {"content": [{"type": "text", "_meta": large}]})
    assert built(TOOL_CALL_EVENT, {"content": [], "structuredContent": large})


def test_what_the_server_says_itself_has_no_such_limit() -> None:
    sessions = [{"sid": "s", "name": "n", "role": "computer", "office_id": "o"}] * 300
    assert built(LIST_ROOM_EVENT, {"sessions": sessions}) == ({"sessions": sessions},)


def test_one_wrong_item_of_many_is_told_by_its_place() -> None:
    request = get_tools(CALL, Deadlines(), "pc")  # type: ignore[arg-type]
    tools = [a_tool("t")] * 30
    assert read_tools(request, ({"tools": tools},)) == tools
    with pytest.raises(BadRequestError, match=r"field 'tools\.29\.name'"):
        read_tools(request, ({"tools": [*tools[:29], {**a_tool("t"), "name": 1}]},))
    call = tool_call(CALL, Deadlines(), "pc", "t", None, 5)  # type: ignore[arg-type]
    parts: list[Any] = [{"type": "text", "text": "x"}] * 30
    assert len(read_result(call, ({"content": parts},)).content) == 30
    with pytest.raises(BadRequestError, match=r"field 'content\.30\."):
        read_result(call, ({"content": [*parts, {"type": "text"}]},))


def test_a_document_that_is_too_much_json_or_nested_too_deep_is_an_error_of_its_own() -> None:
    def document(text: str, limits: AnswerLimits = LIMITS) -> Any:
        return read_document([{"text": text, "mimeType": "application/json"}], limits)

    assert document("[1]") == [1]
    with pytest.raises(AnswerTooLargeError):
        document("[" + "[]," * 300 + "[]]")
    with pytest.raises(BadRequestError):
        document("[" * 100_000, AnswerLimits())
    with pytest.raises(BadRequestError):
        tool_meta({**a_tool("t"), "meta": {"a2c_tool_meta": "[" * 100_000}})  # type: ignore[typeddict-item]
