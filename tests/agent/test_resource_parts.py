"""A large resource in parts: put together as it was, and no computer can make the reader ask for ever."""

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2c_smcp.agent.resource_parts import ResourceParts
from a2c_smcp.computer.resources.parts import ResourceBody
from a2c_smcp.errors import BadRequestError, PayloadTooLargeError
from a2c_smcp.smcp import ReadResourceRet


def body_of(content: dict[str, Any]) -> bytes:
    if "text" in content:
        return str(content["text"]).encode()
    return base64.b64decode(content["blob"])


def part_of(contents: list[dict[str, Any]], offset: int, length: int) -> ReadResourceRet:
    """What a computer answers to `range: [offset, length]`."""
    body = ResourceBody(contents)
    part = body.part(offset, length)
    return {"contents": part.contents, "first": part.first, "total_size": body.size, "req_id": "1"}


CONTENTS = st.lists(
    st.one_of(
        st.text("a中é😀", max_size=40).map(lambda text: {"uri": "a", "text": text}),
        st.binary(max_size=40).map(lambda data: {"uri": "b", "blob": base64.b64encode(data).decode()}),
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None, derandomize=True)
@given(CONTENTS, st.integers(1, 50))
def test_what_was_read_in_parts_is_what_was_there(contents: list[dict[str, Any]], length: int) -> None:
    parts = ResourceParts()
    for _ in range(1000):
        parts.add(part_of(contents, parts.offset, length), length)
        if parts.is_whole:
            break
    # A content without a body at the very end may be in no part.
    whole = parts.contents
    assert whole == contents[: len(whole)]
    assert not any(map(body_of, contents[len(whole) :]))


def part(text: str = "abcd", **more: Any) -> ReadResourceRet:
    return {"contents": [{"uri": "a", "text": text}], "first": 0, "total_size": 10, "req_id": "1", **more}  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    "wrong",
    [
        part(""),
        part("abcdefgh"),
        part(total_size=11),
        part(total_size=-1),
        {"contents": [{"text": "abcd"}], "req_id": "1"},
        part(first=2),
        part(contents=[{"uri": "a", "blob": "YWJjZA=="}]),
        part(contents=[{"uri": "a", "blob": "!"}]),
        part(contents=[{"uri": "a"}]),
    ],
)
def test_a_part_that_does_not_follow_is_refused(wrong: Any) -> None:
    parts = ResourceParts()
    parts.add(part(), 4)
    with pytest.raises(BadRequestError):
        parts.add(wrong, 4)
    parts.add(part("efgh"), 4)
    parts.add(part("ij"), 4)
    assert parts.is_whole
    assert parts.contents == [{"uri": "a", "text": "abcdefghij"}]


def test_a_resource_over_the_bound_is_not_read() -> None:
    with pytest.raises(PayloadTooLargeError):
        ResourceParts(9).add(part(), 4)
    with pytest.raises(PayloadTooLargeError):
        ResourceParts(9).check_size(10)
    ResourceParts(9).check_size(None)


def test_contents_without_a_body_cannot_fill_the_memory() -> None:
    parts = ResourceParts()
    empty: list[dict[str, Any]] = [{"uri": "a", "text": "", "_meta": {"x": "y" * 10_000}}] * 200
    for number in range(4):
        contents = [*empty, {"uri": "a", "text": "abcd"}]
        parts.add({"contents": contents, "req_id": "", "total_size": 1000, "first": 201 * number}, 4)
    with pytest.raises(PayloadTooLargeError):
        parts.add({"contents": contents, "req_id": "", "total_size": 1000, "first": 804}, 4)
