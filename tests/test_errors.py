"""Codes, classes, and the three forms an error takes on the wire."""

import pickle

import pytest

from a2c_smcp import errors
from a2c_smcp.errors import SMCPError, error_from_payload, error_from_reason, make_finder_error

# The contract's table.
CODES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    408: "Timeout",
    413: "Payload Too Large",
    429: "Too Many Requests",
    500: "Internal Error",
    4001: "Tool Not Found",
    4002: "Tool Disabled",
    4003: "Tool Execution Failed",
    4004: "Tool Timeout",
    4005: "Tool Requires Confirmation",
    4101: "Room Full",
    4102: "Room Not Found",
    4103: "Not In Room",
    4104: "Cross Room Access",
    4105: "Name Taken",
    4106: "Already In Another Room",
    4201: "Document Not Found",
    4202: "Page Out of Range",
    4203: "Element Not Found",
    4204: "Invalid DPE URI",
}


@pytest.mark.parametrize(("code", "title"), CODES.items())
def test_every_code_has_a_class_of_its_own(code: int, title: str) -> None:
    error = error_from_payload({"error": {"code": code, "message": "m", "details": {"a": 1}}})
    assert error is not None
    assert type(error) is not SMCPError
    assert (error.code, error.title, error.message, error.details) == (code, title, "m", {"a": 1})
    assert error_from_payload(error.payload()).__dict__ == error.__dict__


def test_a_reason_starts_with_its_code_and_reads_back() -> None:
    error = errors.RoomFullError("office 'o' has an agent")
    assert error.reason() == "4101 Room Full: office 'o' has an agent"
    back = error_from_reason(error.reason())
    assert type(back) is errors.RoomFullError
    assert back.message == error.message


@pytest.mark.parametrize("reason", ["Agent already in room", None, "", 17, "4101 without the colon"])
def test_a_reason_without_a_code_is_403(reason: object) -> None:
    assert error_from_reason(reason).code == 403
    assert isinstance(error_from_reason(reason), errors.UncodedRefusalError)
    assert type(error_from_reason("403 Forbidden: no")) is errors.ForbiddenError


def test_a_failed_tool_call_is_readable_both_ways() -> None:
    payload = errors.NotFoundError("no such computer").tool_call_payload()
    assert payload["error"] == {"code": 404, "message": "no such computer"}
    assert payload["isError"] is True
    assert payload["content"] == [{"type": "text", "text": "no such computer"}]


def test_details_are_absent_when_there_are_none() -> None:
    assert errors.ForbiddenError("no").payload() == {"error": {"code": 403, "message": "no"}}


@pytest.mark.parametrize(
    "payload", [None, [], "error", {}, {"error": None}, {"tools": []}, {"code": 404}, {"code": "x", "message": "m"}]
)
def test_a_reply_without_an_error_has_none(payload: object) -> None:
    assert error_from_payload(payload) is None


@pytest.mark.parametrize(
    "payload", [{"error": "boom"}, {"error": {}}, {"error": {"code": True}}, {"error": {"code": "x"}}]
)
def test_an_error_of_another_shape_is_500(payload: object) -> None:
    error = error_from_payload(payload)
    assert error is not None
    assert error.code == 500


def test_an_error_that_stands_flat_in_a_reply_keeps_its_code() -> None:
    error = error_from_payload({"code": 404, "message": "no such computer", "details": {"a": 1}})
    assert type(error) is errors.NotFoundError
    assert (error.message, error.details) == ("no such computer", {"a": 1})


def test_an_unknown_code_is_kept() -> None:
    error = error_from_payload({"error": {"code": 4999, "message": "m"}})
    assert type(error) is SMCPError
    assert error.code == 4999


def test_finder_errors_of_the_seed() -> None:
    assert make_finder_error(4201, "Document not found", {"doc_ref": "nonexistent"}) == {
        "error": {"code": 4201, "message": "Document not found", "details": {"doc_ref": "nonexistent"}}
    }
    assert make_finder_error(4204, "Invalid DPE URI") == {"error": {"code": 4204, "message": "Invalid DPE URI"}}
    assert errors.DocumentNotFoundError("d").details == {"doc_ref": "d"}
    assert errors.PageOutOfRangeError(99, 12).details == {"page_index": 99, "page_count": 12}
    assert errors.ElementNotFoundError("e").element_id == "e"


def test_computer_errors_of_the_seed_carry_its_attributes_and_messages() -> None:
    clash = errors.ToolNameDuplicatedError("read", ["a", "b"])
    assert clash.tool_name == "read"
    assert clash.servers == ["a", "b"]
    assert str(clash).startswith("400 Tool name duplicated: read in servers: ['a', 'b']"), "its title is not said twice"
    assert "ToolMeta.alias" in str(clash)
    assert "tool_prefix" in str(clash)
    assert clash.tool_names == ["read"]
    several = errors.ToolNameDuplicatedError(["read", "write"], ["a", "b"])
    assert (several.tool_name, several.tool_names) == ("read", ["read", "write"])
    assert "read, write in servers: ['a', 'b']" in str(several)
    assert errors.InputNotFoundError("key").input_id == "key"
    assert "Input not found: key" in str(errors.InputNotFoundError("key"))
    assert errors.ServerNotActiveError("files").server_name == "files"
    assert "Server files is not active" in str(errors.ServerNotActiveError("files"))
    assert errors.ServerNotActiveError("files").code == 4003
    assert errors.VRLSyntaxError("line 1").message == "VRL syntax error: line 1"
    assert errors.ToolExecutionTimeoutError(30).timeout == 30
    assert "Tool execution timeout after 30s" in str(errors.ToolExecutionTimeoutError(30))


def test_attributes_survive_the_wire_and_a_pickle() -> None:
    error = error_from_payload(errors.PageOutOfRangeError(9, 3).payload())
    assert isinstance(error, errors.PageOutOfRangeError)
    assert (error.page_index, error.page_count) == (9, 3)
    again = pickle.loads(pickle.dumps(errors.ToolNameDuplicatedError("read", ["a", "b"])))
    assert again.servers == ["a", "b"]
