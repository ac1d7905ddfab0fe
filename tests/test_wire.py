"""Validation by event, and the JSON codec."""

import gc
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.errors import BadRequestError, PayloadTooLargeError
from a2c_smcp.packet_text import encode_ack
from a2c_smcp.smcp import (
    EVENTS,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_TOOLS_EVENT,
    JOIN_OFFICE_EVENT,
    TOOL_CALL_EVENT,
    UPDATE_CONFIG_EVENT,
)
from a2c_smcp.wire import (
    LARGE,
    PACKET_OVERHEAD,
    Encoded,
    NotRepresentableError,
    checked_size,
    codec,
    parse,
    parse_response,
    whole_seconds,
)

CALL = {"agent": "a", "req_id": "1", "computer": "c", "tool_name": "t", "params": {"x": [1]}, "timeout": 30}


def refused(event: str, data: object) -> BadRequestError:
    with pytest.raises(BadRequestError) as caught:
        parse(event, data)
    assert caught.value.code == 400
    return caught.value


# --- validation


def test_a_valid_request_comes_back_and_unknown_keys_do_not() -> None:
    assert parse(TOOL_CALL_EVENT, {**CALL, "trace": "x"}) == CALL


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"agent": 1}, "agent"),
        ({"req_id": None}, "req_id"),
        ({"tool_name": b"t"}, "tool_name"),
        ({"params": []}, "params"),
        ({"params": None}, "params"),
        ({"computer": ["c"]}, "computer"),
    ],
)
def test_a_bad_field_is_named(change: dict[str, Any], field: str) -> None:
    error = refused(TOOL_CALL_EVENT, {**CALL, **change})
    assert error.details["field"] == field
    assert repr(field) in error.message


def test_a_missing_field_is_named() -> None:
    assert refused(GET_TOOLS_EVENT, {"agent": "a", "req_id": "1"}).details == {"field": "computer"}


def test_a_refusal_does_not_repeat_the_value() -> None:
    assert "hunter2" not in str(refused(GET_TOOLS_EVENT, {"agent": ["hunter2"], "req_id": "1", "computer": "c"}))


@pytest.mark.parametrize("data", [None, [], "x", 1, b"", True])
@pytest.mark.parametrize("event", sorted(EVENTS))
def test_a_payload_that_is_no_object_is_refused(event: str, data: object) -> None:
    assert "object" in refused(event, data).message


def test_an_unknown_event_is_refused_and_its_name_clipped() -> None:
    assert "unknown event" in refused("client:dance", {}).message
    assert len(refused("x" * 10_000, {}).message) < 200


def test_strict_no_true_for_one_and_no_text_for_numbers() -> None:
    request = {"agent": "a", "req_id": "1", "computer": "c"}
    for size in (True, 1.0, "1"):
        assert refused(GET_DESKTOP_EVENT, {**request, "desktop_size": size})
    assert refused(JOIN_OFFICE_EVENT, {"role": "visitor", "name": "n", "office_id": "o"}).details == {"field": "role"}


@pytest.mark.parametrize(
    ("event", "field"),
    [(GET_DESKTOP_EVENT, "desktop_size"), (GET_FINDER_EVENT, "keywords"), (JOIN_OFFICE_EVENT, "role")],
)
def test_half_a_character_where_no_text_may_be_is_refused(event: str, field: str) -> None:
    request = {"agent": "a", "req_id": "1", "computer": "c", "role": "agent", "name": "n", "office_id": "o"}
    assert refused(event, {**request, field: "\ud800"}).details == {"field": field}


def test_null_in_an_optional_field_means_absent() -> None:
    request = {"agent": "a", "req_id": "1", "computer": "c"}
    assert parse(GET_FINDER_EVENT, {**request, "keywords": None, "limit": None}) == request
    assert parse(UPDATE_CONFIG_EVENT, {"computer": None}) == {}


@pytest.mark.parametrize(("value", "seconds"), [(30, 30), (30.0, 30), ("30", 30), (1, 1), (3600, 3600)])
def test_timeout_is_whole_seconds(value: object, seconds: int) -> None:
    assert parse(TOOL_CALL_EVENT, {**CALL, "timeout": value})["timeout"] == seconds


@pytest.mark.parametrize("value", [0, -1, 1.5, "1.5", "", "x", True, None, [], 3601, float("inf"), "9" * 5000, "٣"])
def test_other_timeouts_are_refused_and_the_maximum_is_named(value: object) -> None:
    assert "3600" in refused(TOOL_CALL_EVENT, {**CALL, "timeout": value}).message


@pytest.mark.parametrize("value", [30, 30.0, "30"])
def test_the_time_for_a_person_is_read_like_the_time_of_the_tool(value: object) -> None:
    assert parse(TOOL_CALL_EVENT, {**CALL, "approval_timeout": value}) == {**CALL, "approval_timeout": 30}


@pytest.mark.parametrize("value", [0, -1, 1.5, "x", True, [], 3571])
def test_another_time_for_a_person_is_refused(value: object) -> None:
    error = refused(TOOL_CALL_EVENT, {**CALL, "approval_timeout": value})
    assert error.details["field"] == "approval_timeout"
    assert value != 3571 or error.details["maximum"] == 3600, "the maximum is for the sum"


def test_the_maximum_timeout_is_configurable() -> None:
    assert whole_seconds(7200, 7200) == 7200
    with pytest.raises(BadRequestError, match="from 1 to 10") as caught:
        parse(TOOL_CALL_EVENT, CALL, max_timeout=10)
    assert caught.value.details == {"field": "timeout", "maximum": 10}


def test_replies_are_validated_too() -> None:
    assert parse_response(GET_TOOLS_EVENT, {"tools": [], "req_id": "1", "more": 1}) == {"tools": [], "req_id": "1"}
    with pytest.raises(BadRequestError, match="reply to client:get_tools"):
        parse_response(GET_TOOLS_EVENT, {"tools": "none", "req_id": "1"})


# --- JSON

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_the_codec_round_trips_every_json_value(value: Any) -> None:
    assert codec.loads(codec.dumps(value, separators=(",", ":"))) == value


@pytest.mark.parametrize("value", [2**64, -(2**70), {"n": [10**30]}, "\ud800", {"\udfff": 1}, "12345678901234567890"])
def test_what_orjson_cannot_write_the_standard_library_does(value: Any) -> None:
    text = codec.dumps(value)
    assert isinstance(text, str)
    assert codec.loads(text) == value


def test_integers_stay_integers_at_the_edge_of_64_bits() -> None:
    for number in (2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1):
        assert codec.loads(str(number)) == number
        assert isinstance(codec.loads(str(number)), int)


@pytest.mark.parametrize("text", ["", "{", "NaN", "[Infinity]", "[1,]", "\ud800", "[" * 100_000])
def test_what_is_not_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        codec.loads(text)


def test_bytes_cannot_be_sent() -> None:
    with pytest.raises(TypeError):
        codec.dumps({"a": b"x"})


@pytest.mark.parametrize("odd", [2**70, "\ud800"])
def test_what_orjson_refuses_is_written_as_orjson_would(odd: object) -> None:
    text = codec.dumps({"odd": odd, "text": "字" * 1000, "numbers": [math.nan, (math.inf, 1.5)], "path": "\\"})
    assert codec.loads(text) == {"odd": odd, "text": "字" * 1000, "numbers": [None, [None, 1.5]], "path": "\\"}
    assert len(text.encode()) < 3200  # three bytes a character, not an escape of six


@given(st.integers(10**17, 10**24), st.binary(max_size=12), st.binary(max_size=12))
def test_a_long_number_is_found_wherever_it_stands(number: int, before: bytes, after: bytes) -> None:
    assert codec.loads(codec.dumps([before.hex(), number, after.hex()])) == [before.hex(), number, after.hex()]


@pytest.mark.parametrize(
    "value",
    [
        [2**70],
        {"a": {"b": [[-(2**70)]]}},
        [*range(300), 2**70],
        [[[1.5]] * 300, {"n": 10**25}],
        ["1" * 40, 1.5],
        {"deep": [{"n": 3, "m": [None, True, 2**64]}]},
        *([*range(size), [2**70]] for size in range(245, 260)),
    ],
)
def test_a_long_number_is_found_in_a_long_text_too(value: Any) -> None:
    text = codec.dumps(["x" * 5000, value])
    assert codec.loads(text)[1] == value


@pytest.mark.parametrize(
    "text",
    [
        "1e999",
        "[-1e999]",
        "9" * 5000,
        '{"n":' + "1" * 400 + ".5}",
        '["\\ud800",1e999]',
        '["\\ud800",' + "9" * 5000 + "]",
    ],
)
def test_a_number_that_python_has_no_value_for_is_said_to_be_one(text: str) -> None:
    with pytest.raises(NotRepresentableError, match="out of range"):
        codec.loads(text)


def test_of_two_keys_alike_the_last_one_counts() -> None:
    assert codec.loads('{"a":1,"a":2}') == {"a": 2}
    assert codec.loads('["\\ud800",{"a":1,"a":2}]')[1] == {"a": 2}


def test_a_lone_surrogate_is_written_as_it_is_in_a_small_message_and_replaced_in_a_large_one() -> None:
    assert codec.loads(codec.dumps(["\ud83d"])) == ["\ud83d"]
    text = codec.dumps(["\ud83d", "x" * LARGE])
    assert codec.loads(text) == ["\ufffd", "x" * LARGE]
    many = codec.dumps(["\ud83d" * (LARGE // 5)])  # small, and large once they are escaped
    assert codec.loads(many) == ["\ufffd" * (LARGE // 5)]


@pytest.mark.parametrize("size", [0, LARGE])
def test_a_lone_surrogate_is_replaced_whatever_the_size_for_readers_that_take_none(size: int) -> None:
    text = codec.dumps_well_formed({"\ud83d": "\ude00" + "x" * size, "\\ud83d": "\U0001f600"})
    assert codec.loads(text) == {"\ufffd": "\ufffd" + "x" * size, "\\ud83d": "\U0001f600"}


def test_a_lone_surrogate_is_read_whatever_the_size() -> None:
    assert codec.loads(b'["\\ud83d","' + b"x" * LARGE + b'"]')[0] == "\ud83d"


@pytest.mark.parametrize("size", [0, LARGE])
def test_what_is_read_for_others_has_no_lone_surrogate(size: int) -> None:
    long, number = "\\ude00" + "x" * size, 2**70
    text = f'{{"\\ud83d":["{long}",{number},1.5,"\\ud83d\\ude00"],"\\\\ud83d":null}}'
    found = codec.loads_well_formed(text)
    assert found == {"\ufffd": ["\ufffd" + "x" * size, 2**70, 1.5, "\U0001f600"], "\\ud83d": None}
    assert codec.loads_well_formed(b'["a",1]') == ["a", 1]
    for wrong in ("{", '["\\ud800",1e999]', '["\\ud800",' + "[" * 5000):
        with pytest.raises(ValueError):
            codec.loads_well_formed(wrong)


def test_a_large_message_is_built_without_the_collector_which_runs_again_afterwards() -> None:
    generations: list[int] = []
    gc.callbacks.append(lambda phase, info: generations.append(info["generation"]) if phase == "start" else None)
    try:
        text = "[" + ",".join(["[]"] * 100_000) + "]"
        gc.collect()
        generations.clear()
        value = codec.loads(text)
        during = len(generations)
        with pytest.raises(ValueError):
            codec.loads(text[:-1])
        assert gc.isenabled()
        gc.disable()
        codec.loads(text)
        assert not gc.isenabled()
    finally:
        gc.callbacks.pop()
        gc.enable()
    assert len(value) == 100_000
    assert during <= 1


def test_a_payload_fits_when_it_leaves_room_for_the_packet_around_it() -> None:
    text = "é" * 100
    assert checked_size("the reply", text, 200 + PACKET_OVERHEAD) == 200
    with pytest.raises(PayloadTooLargeError, match="the reply has 200 bytes; a message may have at most 263"):
        checked_size("the reply", text, 199 + PACKET_OVERHEAD)
    packet = encode_ack("/smcp", 2**63, (Encoded("{}"),))
    assert len(packet) - len("{}") < PACKET_OVERHEAD
