"""Tool results between MCP and the wire."""

import copy
import pickle
from typing import Any

import pytest
from mcp_types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from a2c_smcp.errors import (
    BadRequestError,
    PayloadTooLargeError,
    ServerNotActiveError,
    SMCPError,
    ToolConfirmationError,
    ToolDisabledError,
    ToolExecutionError,
    ToolExecutionTimeoutError,
    ToolNotFoundError,
)
from a2c_smcp.results import cancelled_result, error_result, from_wire, text_result, to_wire, with_markers
from a2c_smcp.smcp import TOOL_CALL_EVENT
from a2c_smcp.wire import codec, parse_response


def result(**fields: Any) -> CallToolResult:
    return CallToolResult.model_validate({"content": [{"type": "text", "text": "hi"}], **fields})


# --- to the wire


def test_a_result_has_exactly_four_keys() -> None:
    assert to_wire(result()) == {
        "meta": None,
        "content": [{"type": "text", "text": "hi"}],
        "structuredContent": None,
        "isError": False,
    }


def test_meta_is_spelled_without_the_underscore_and_kept_as_it_is() -> None:
    assert to_wire(result(_meta={"k": None, "nested": {"_meta": 1}}))["meta"] == {"k": None, "nested": {"_meta": 1}}


def test_empty_meta_is_null() -> None:
    assert to_wire(result(_meta={}))["meta"] is None


def test_content_items_stay_in_the_form_of_mcp() -> None:
    content = [
        {"type": "text", "text": "hi", "_meta": {"k": None}, "annotations": {"audience": ["user"]}},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "x", "mimeType": "text/plain"}},
    ]
    parsed = result(content=content)
    kinds = [TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource]
    assert [type(item) for item in parsed.content] == kinds
    assert to_wire(parsed)["content"] == content


def test_structured_content_keeps_its_nulls_and_its_spelling() -> None:
    value = {"snake_case": None, "list": [1, None]}
    assert to_wire(result(structuredContent=value))["structuredContent"] == value


@pytest.mark.parametrize("value", [[1, 2], "text", 7, False])
def test_structured_content_that_is_no_object_is_wrapped_in_one(value: object) -> None:
    assert to_wire(result(structuredContent=value))["structuredContent"] == {"result": value}


def test_the_wire_form_is_json_and_passes_validation() -> None:
    wire = to_wire(result(_meta={"k": 1}, structuredContent={"a": 1}, isError=True))
    assert parse_response(TOOL_CALL_EVENT, codec.loads(codec.dumps(wire))) == wire


# --- from the wire


@pytest.mark.parametrize("meta", [None, {}, {"k": {"a": [1]}}])
@pytest.mark.parametrize("structured", [None, {"a": [1, None]}, [1], 0])
@pytest.mark.parametrize("is_error", [False, True])
@pytest.mark.parametrize("texts", [[], ["hi"], ["", "字", "a\nb"]])
def test_texts_become_what_pydantic_makes_of_them(texts: list[str], is_error: bool, structured: Any, meta: Any) -> None:
    known = {"_meta": meta, "structuredContent": structured, "isError": is_error}
    slow = CallToolResult.model_validate({**known, "content": [{"type": "text", "text": text} for text in texts]})
    fast = text_result(texts, is_error=is_error, meta=meta, structured=structured)
    assert fast == slow
    assert type(fast) is CallToolResult
    for one, other in [(fast, slow), *zip(fast.content, slow.content, strict=True)]:
        assert type(one) is type(other)
        assert one.__dict__ == other.__dict__
        assert one.model_fields_set == other.model_fields_set
        assert (one.model_extra, one.__pydantic_private__) == (other.model_extra, other.__pydantic_private__)
        assert repr(one) == repr(other)
        assert one.model_dump(by_alias=True, exclude_unset=True) == other.model_dump(by_alias=True, exclude_unset=True)
    assert pickle.loads(pickle.dumps(fast)) == copy.deepcopy(fast) == slow
    assert with_markers(fast, {"k": 1}).meta == {"k": 1}


def test_results_of_texts_share_nothing() -> None:
    one, other = text_result(["a"], is_error=False), text_result(["a"], is_error=False)
    one.content[0].meta = {"k": 1}
    one.meta = {"k": 1}
    one.structured_content = {}
    assert other == text_result(["a"], is_error=False)
    assert "annotations" not in other.content[0].model_fields_set


def test_a_result_comes_back_as_it_was() -> None:
    before = result(_meta={"a2c_tool_meta": {"tags": ["x"]}}, structuredContent={"a": [1]}, isError=True)
    assert from_wire(dict(to_wire(before))) == before


@pytest.mark.parametrize("key", ["meta", "_meta"])
def test_both_spellings_of_meta_are_read(key: str) -> None:
    assert from_wire({"content": [], key: {"a": 1}}).meta == {"a": 1}


def test_a_null_meta_does_not_hide_the_other_spelling() -> None:
    assert from_wire({"content": [], "meta": None, "_meta": {"a": 1}}).meta == {"a": 1}


def test_unknown_keys_are_ignored_and_missing_ones_filled_in() -> None:
    read = from_wire({"resultType": "later", "extra": 1, "content": [{"type": "text", "text": "x", "new": 1}]})
    assert read == CallToolResult(content=[TextContent(text="x")])
    assert from_wire({"isError": None}) == CallToolResult(content=[])


def test_an_error_reply_is_readable_as_a_failed_result() -> None:
    read = from_wire(SMCPError(404, "no such computer").tool_call_payload())
    assert read.is_error
    assert read.content == [TextContent(text="no such computer")]


@pytest.mark.parametrize("data", [{"content": "x"}, {"content": [{"type": "hologram"}]}, {"meta": 7}])
def test_what_is_no_result_is_refused_by_field_without_its_value(data: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError) as caught:
        from_wire(data)
    assert caught.value.details["field"]
    assert "hologram" not in caught.value.message


# --- failures


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ToolNotFoundError("greet"), 4001),
        (ToolDisabledError("forbidden"), 4002),
        (ToolExecutionError("it broke"), 4003),
        (ServerNotActiveError("files"), 4003),
        (ToolConfirmationError("nobody there"), 4005),
        (PayloadTooLargeError("17 MiB"), 413),
    ],
)
def test_a_failure_says_what_went_wrong_and_carries_its_code(error: SMCPError, code: int) -> None:
    assert to_wire(error_result(error)) == {
        "meta": {"error_code": code},
        "content": [{"type": "text", "text": error.message}],
        "structuredContent": None,
        "isError": True,
    }


def test_a_tool_that_may_still_come_names_the_servers_that_are_starting() -> None:
    error = ToolNotFoundError("greet", ["a", "b"])
    assert error_result(error).meta == {"error_code": 4001, "starting": ["a", "b"]}
    assert error.message == "Tool not found: greet (still starting: a, b)"


def test_a_timeout_is_marked_beside_its_code() -> None:
    assert error_result(ToolExecutionTimeoutError(3)).meta == {"error_code": 4004, "a2c_timeout": True}


def test_a_cancelled_call_is_an_error_without_a_code() -> None:
    cancelled = cancelled_result()
    assert cancelled.is_error
    assert cancelled.meta == {"a2c_cancelled": True}


# --- markers


def test_markers_join_the_meta_of_the_server() -> None:
    marked = with_markers(result(_meta={"own": 1, "a2c_tool_meta": "spoofed"}), {"a2c_tool_meta": {"alias": None}})
    assert marked.meta == {"own": 1, "a2c_tool_meta": {"alias": None}}


def test_marking_leaves_the_original_alone() -> None:
    before = result(_meta={"own": 1})
    assert with_markers(before, {"x": 1}) is not before
    assert before.meta == {"own": 1}
    assert with_markers(before, {}) is before


def test_embedded_resources_survive_the_round_trip() -> None:
    before = CallToolResult(
        content=[EmbeddedResource(resource=TextResourceContents(uri="dpe://h/d", text="", _meta={"k": None}))]
    )
    assert from_wire(dict(to_wire(before))) == before
