"""Envelopes: what is taken and refused is what `wire.parse` takes and refuses; payloads stay text, values unquoted."""

import gc
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.errors import BadRequestError
from a2c_smcp.server.envelopes import Message, answer_from, read_answer, read_message
from a2c_smcp.smcp import EVENTS, GET_FINDER_EVENT, GET_TOOLS_EVENT, JOIN_OFFICE_EVENT, TOOL_CALL_EVENT, Kind
from a2c_smcp.wire import LARGE, codec, parse

CALL = {"agent": "a", "req_id": "1", "computer": "c", "tool_name": "t", "params": {"x": [1]}, "timeout": 30}
ASKED = [event.name for event in EVENTS.values() if event.kind is not Kind.NOTIFICATION]


def message(event: str, *payload: Any) -> Message:
    return read_message(codec.dumps([event, *payload]))


def refused(event: str, *payload: Any) -> BadRequestError:
    error = message(event, *payload).error
    assert error is not None
    return error


# --- events


def test_of_a_relay_the_server_keeps_five_fields_and_the_text_until_it_is_taken() -> None:
    body = ' [ "client:tool_call" , ' + json.dumps({**CALL, "trace": {"kept": True}}) + " ] "
    read = read_message(body)
    assert read.request == {"agent": "a", "req_id": "1", "computer": "c", "timeout": 30, "tool_name": "t"}
    assert read.take_body() == body.strip()
    assert read.body is None


@pytest.mark.parametrize("more", [{}, {"note": "\ud800"}, {"agent": "b", "progress": None}])
def test_the_server_knows_how_long_a_call_may_take_in_all(more: dict[str, Any]) -> None:
    kept = message(TOOL_CALL_EVENT, {**CALL, "approval_timeout": "600", **more}).request
    assert (kept["timeout"], "approval_timeout" in kept) == (630, False)
    assert message(TOOL_CALL_EVENT, {**CALL, "approval_timeout": None, **more}).request["timeout"] == 30


def test_of_everything_else_no_text_is_kept() -> None:
    read = message(JOIN_OFFICE_EVENT, {"role": "agent", "name": "a", "office_id": "o", "more": "x" * 1000})
    assert read.request == {"role": "agent", "name": "a", "office_id": "o"}
    assert read.body is None
    assert message(TOOL_CALL_EVENT, {**CALL, "agent": 1}).body is None


values: Any = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "agent", "computer", "30", "字", "\ud800", "30.0"]),
    st.lists(st.one_of(st.text(max_size=2), st.integers()), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)
KEYS = sorted({key for name in ASKED for key in EVENTS[name].request.__annotations__} | {"unknown"})
GOOD: dict[str, Any] = {
    **CALL,
    "role": "agent",
    "name": "n",
    "office_id": "o",
    "desktop_size": 3,
    "window": "w",
    "keywords": ["k"],
    "file_type": "pdf",
    "offset": 0,
    "limit": 1,
    "uri": "u",
}


@given(
    st.sampled_from(ASKED),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=3),
    st.sets(st.sampled_from(KEYS), max_size=2),
)
def test_what_is_taken_and_refused_is_what_the_other_ends_take_and_refuse(
    event: str, changes: dict[str, Any], missing: set[str]
) -> None:
    payload = {key: value for key, value in {**GOOD, **changes}.items() if key not in missing}
    try:
        expected = parse(event, payload)
    except BadRequestError:
        assert refused(event, payload).code == 400
        return
    read = message(event, payload)
    assert read.error is None
    assert read.request == {key: expected[key] for key in read.request}
    if EVENTS[event].kind is not Kind.RELAY:
        assert read.request == expected


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"agent": 1}, "agent"),
        ({"req_id": None}, "req_id"),
        ({"params": []}, "params"),
        ({"params": None}, "params"),
        ({"computer": ["c"]}, "computer"),
        ({"timeout": None}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
        ({"timeout": 3601}, "timeout"),
        ({"approval_timeout": "soon"}, "approval_timeout"),
        ({"approval_timeout": []}, "approval_timeout"),
        ({"approval_timeout": 3571}, "approval_timeout"),
    ],
)
def test_a_bad_field_is_named(change: dict[str, Any], field: str) -> None:
    read = message(TOOL_CALL_EVENT, {**CALL, **change})
    assert read.error is not None
    assert read.error.details["field"] == field
    assert repr(field) in read.error.message
    assert read.request == ({} if field == "req_id" else {"req_id": "1"})  # for the log


def test_a_missing_field_is_named() -> None:
    assert refused(GET_TOOLS_EVENT, {"agent": "a", "req_id": "1"}).details == {"field": "computer"}


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        (GET_TOOLS_EVENT, {"agent": ["hunter2"], "req_id": "1", "computer": "c"}),
        (JOIN_OFFICE_EVENT, {"role": "hunter2", "name": "n", "office_id": "o"}),
        (TOOL_CALL_EVENT, {**CALL, "timeout": "hunter2"}),
        (TOOL_CALL_EVENT, {**CALL, "params": "hunter2"}),
        (GET_FINDER_EVENT, {"agent": "a", "req_id": "1", "computer": "c", "keywords": [{"hunter2": 1}]}),
        (GET_TOOLS_EVENT, {"agent": "\ud800", "req_id": {"hunter2": 1}, "computer": "c"}),
    ],
)
def test_a_refusal_does_not_repeat_the_value(event: str, payload: Any) -> None:
    error = refused(event, payload)
    assert "hunter2" not in str(error) + str(error.details)


@pytest.mark.parametrize("payload", [(), (None,), ([],), ("x",), (1,), ({}, {}), (CALL, None)])
@pytest.mark.parametrize("event", ASKED)
def test_a_payload_that_is_not_one_object_is_refused(event: str, payload: tuple[Any, ...]) -> None:
    assert "one JSON object" in refused(event, *payload).message


@pytest.mark.parametrize("body", ["", "{", "{}", "[]", "7", '["a"', "[NaN]", '["a",]', '["client:get_tools",{]', "x"])
def test_what_is_no_event_is_a_value_error(body: str) -> None:
    with pytest.raises(ValueError):
        read_message(body)


def test_a_name_is_no_text_or_unknown_or_spelled_with_escapes() -> None:
    assert read_message("[17,{}]").event is None
    assert read_message("[" + "[" * 900 + "]" * 900 + ",{}]").event is None
    assert read_message('["client:dance",{}]').event == "client:dance"
    body = '["client\\u003aget_tools",{"agent":"a","req_id":"1","computer":"c"}]'
    assert read_message(body).request == {"agent": "a", "req_id": "1", "computer": "c"}


def test_nesting_and_numbers_without_a_value_pass_and_the_deepest_is_refused() -> None:
    def with_params(text: str) -> Message:
        return read_message(json.dumps(["client:tool_call", CALL]).replace('{"x": [1]}', '{"x":' + text + "}"))

    for text in ("[" * 900 + "]" * 900, "1e999", "9" * 5000, '1,"x":2'):
        read = with_params(text)
        assert read.error is None
        assert read.body is not None and text in read.body
    # How deep is too deep depends on the Python: 1,000 levels for 3.11, 10,000 for 3.13.
    assert "deep" in str(with_params("[" * 200_000 + "]" * 200_000).error)


def test_of_two_fields_alike_the_last_one_counts() -> None:
    for first in ('"b"', "7", "[[]]"):
        read = read_message(f'["client:get_tools",{{"computer":{first},"agent":"a","req_id":"1","computer":"c"}}]')
        assert read.request["computer"] == "c"
    assert message(GET_TOOLS_EVENT, {}).error is not None


def test_a_lone_surrogate_passes_in_a_small_message_and_is_refused_in_a_large_one() -> None:
    request = {"agent": "a", "req_id": "1", "computer": "c\ud800"}
    assert message(GET_TOOLS_EVENT, request).request == request
    body = '["client:get_tools",{"agent":"a","req_id":"1","computer":"c","more":"\\ud800%s"}]'
    read = read_message(body % "")
    assert read.take_body() == body % ""
    read = read_message(body % ("x" * LARGE))
    assert read.event == "client:get_tools"
    assert "surrogates" in str(read.error)
    assert read_message(body.replace("\\ud800", "\\ud83d\\ude00") % ("x" * LARGE)).error is None


def test_a_message_of_a_million_lists_is_read_without_building_one() -> None:
    body = '["client:tool_call",' + json.dumps(CALL).replace("[1]", "[" + ",".join(["[]"] * 1_000_000) + "]") + "]"
    before = len(gc.get_objects())
    read = read_message(body)
    assert len(gc.get_objects()) < before + 100
    assert read.request["timeout"] == 30
    flat = read_message('["client:get_tools",' + ",".join(["[]"] * 1_000_000) + "]")
    assert len(gc.get_objects()) < before + 100
    assert flat.error is not None


# --- acks


@pytest.mark.parametrize(
    ("body", "text", "code"),
    [
        (' [ {"n": 1.0} ] ', ' {"n": 1.0} ', None),
        ('[{"a":1},2]', '{"a":1}', None),
        ('[{"error":{"code":4201,"message":"gone","details":{"x":1}}}]', None, 4201),
        ('[{"error":"text"}]', None, 500),
        ('[{"error":[[]]}]', None, 500),
        ('[{"error":{"code":"4201"}}]', None, 500),
        ('[{"error":' + "[" * 900 + "]" * 900 + "}]", None, 500),
        ('[{"error":{"code":' + "9" * 5000 + "}}]", None, 500),
        ('[{"error":null}]', '{"error":null}', None),
        ('[{"code":404,"message":"flat"}]', None, 404),
        ('[{"code":404}]', '{"code":404}', None),
        ('[{"a":"\\ud800"}]', '{"a":"\\ud800"}', None),
        ('[{"n":1e999,"m":' + "9" * 5000 + "}]", None, None),
    ],
)
def test_an_answer_is_kept_as_its_text_and_an_error_is_known(body: str, text: str | None, code: int | None) -> None:
    answer = read_answer(body)
    assert answer is not None
    assert answer.text == (text or body[1:-1])
    assert (answer.error.code if answer.error else None) == code


@pytest.mark.parametrize(
    "body",
    ["", "[", "[]", "{}", "7", "[7]", "[null,{}]", "[{]", "[NaN]", "[" * 3000, '[{"a":"\\ud800' + "x" * LARGE + '"}]'],
)
def test_what_is_no_answer_is_none(body: str) -> None:
    assert read_answer(body) is None


def test_an_answer_that_was_built_is_written_again() -> None:
    answer = answer_from([{"error": {"code": 400, "message": "m"}}])
    assert answer is not None and answer.error is not None
    assert answer.error.code == 400
    assert codec.loads(answer.text) == {"error": {"code": 400, "message": "m"}}
    assert answer_from([]) is answer_from([7]) is None
