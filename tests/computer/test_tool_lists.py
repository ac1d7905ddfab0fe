"""One tool that is none costs the server that tool, not all of them."""

from typing import Any

import pytest

from a2c_smcp.computer.mcp_clients.tool_lists import without_invalid_tools

GOOD: dict[str, Any] = {"name": "good", "inputSchema": {"type": "object"}}
OLD, NEW = "2025-11-25", "2026-07-28"
HINTS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def listed(version: str, *tools: Any) -> dict[str, Any]:
    return {"tools": list(tools), "nextCursor": "2", **(HINTS if version == NEW else {})}


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize(
    ("bad", "name", "place"),
    [
        ({"name": "bad"}, "bad", "inputSchema"),
        ({"name": "bad", "inputSchema": {"type": "string"}}, "bad", "inputSchema.type"),
        ({"name": "bad", "inputSchema": {"type": "object"}, "description": 1}, "bad", "description"),
        ({"inputSchema": {"type": "object"}}, "number 2", "name"),
        ("bad", "number 2", ""),
    ],
)
def test_a_tool_that_is_none_is_left_out_with_its_place(version: str, bad: Any, name: str, place: str) -> None:
    kept, [(left_out, problem)] = without_invalid_tools(listed(version, GOOD, bad, GOOD), version)
    assert kept == listed(version, GOOD, GOOD)
    assert left_out == name
    assert problem.startswith(place)


def test_a_good_list_is_the_same_object() -> None:
    result = listed(OLD, GOOD)
    assert without_invalid_tools(result, OLD) == (result, ())
    assert without_invalid_tools(result, OLD)[0] is result


@pytest.mark.parametrize("result", [{"content": []}, {"tools": "none"}, {"tools": [GOOD, 1], "nextCursor": 5}])
def test_what_is_no_list_or_wrong_elsewhere_is_left_to_mcp(result: dict[str, Any]) -> None:
    assert without_invalid_tools(result, OLD) == (result, ())


@pytest.mark.parametrize("version", [None, "1999-01-01"])
def test_nothing_is_left_out_by_a_version_that_is_not_known(version: str | None) -> None:
    result = listed(OLD, GOOD, {"name": "bad"})
    assert without_invalid_tools(result, version) == (result, ())


def test_no_value_is_quoted() -> None:
    _, [(_, problem)] = without_invalid_tools(listed(OLD, {**GOOD, "description": {"secret": "canary"}}), OLD)
    assert "canary" not in problem
