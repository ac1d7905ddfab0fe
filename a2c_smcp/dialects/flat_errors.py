"""Errors for 0.4 peers. Pure.

They expect `code` and `message` at the top level of an answer, and they know only a few codes: an answer with another
code is not an error to them. So an answer to such a peer has the error twice: as we write it, and at the top level with
a code that the peer knows. Which of their codes replaces ours depends on the request. Agents of 0.4 never look for an
error in the answers to `client:get_tools`, `client:get_desktop` and `client:get_config`.
"""

from collections.abc import Mapping
from typing import Any, Final

from a2c_smcp.errors import SMCPError
from a2c_smcp.smcp import (
    GET_BLOB_EVENT,
    GET_RESOURCES_EVENT,
    GET_SKILL_EVENT,
    GET_SKILLS_EVENT,
    PUT_BLOB_EVENT,
    TOOL_CALL_EVENT,
)

__all__ = ["KNOWN_CODES", "flat_payload"]

#: The codes that mean an error to them.
KNOWN_CODES: Final = frozenset({404, 4006, 4007, 4008, *range(4014, 4020)})
#: The code that replaces one that they do not know, by request.
_STANDS_FOR: Final[Mapping[str, int]] = {
    GET_RESOURCES_EVENT: 4015,
    GET_SKILLS_EVENT: 4017,
    GET_SKILL_EVENT: 4017,
    GET_BLOB_EVENT: 4018,
    PUT_BLOB_EVENT: 4019,
}


def flat_payload(event: str | None, error: SMCPError) -> dict[str, Any]:
    """The answer to a request of a 0.4 peer that has failed.

    A failed tool call is a result, unless they know its code: their agent shows the text of a result, and their server
    passes it on.
    """
    if event == TOOL_CALL_EVENT and error.code not in KNOWN_CODES:
        return {**error.tool_call_payload(), "meta": {"error_code": error.code}}
    code = error.code if error.code in KNOWN_CODES else _STANDS_FOR.get(event or "", error.code)
    details = dict(error.details)
    if code != error.code:
        details["error_code"] = error.code
        details.setdefault("reason", error.title)
    flat: dict[str, Any] = {"code": code, "message": error.message, **error.payload()}
    if details:
        flat["details"] = details
    if event == GET_RESOURCES_EVENT and "mcp_server" in details:
        flat["mcp_server"] = details["mcp_server"]
    return flat
