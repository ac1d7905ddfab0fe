"""Results for a model: a failure says what to do, and a link can be followed. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import mcp_types as types

from a2c_smcp.agent.for_models.addresses import Addresses
from a2c_smcp.agent.for_models.meta import own_result_meta
from a2c_smcp.errors import (
    ConnectionLostError,
    DocumentNotFoundError,
    ElementNotFoundError,
    NotFoundError,
    PayloadTooLargeError,
    RequestTimeoutError,
    SMCPError,
    ToolConfirmationError,
    ToolDisabledError,
    ToolExecutionError,
    ToolExecutionTimeoutError,
    ToolNotFoundError,
    TooManyRequestsError,
)
from a2c_smcp.results import ERROR_CODE_MARKER, STARTING_MARKER
from a2c_smcp.utils.text import well_formed

__all__ = ["CallLimit", "advice", "answered", "failed_on_the_way", "for_model", "refused", "unusable_office"]

_ADVICE: Final[dict[int, str]] = {
    NotFoundError.default_code: "{computer} is not in the office now; list_computers says who is.",
    ConnectionLostError.default_code: "There is no connection to the office; it comes back by itself, and "
    "list_computers says when. If the call had begun, it is not known whether it ran: look before you repeat it.",
    RequestTimeoutError.default_code: "{computer} did not answer. It is not known whether the tool ran: look "
    "before you repeat it.",
    PayloadTooLargeError.default_code: "Ask for less at a time: a part, a smaller range, fewer items.",
    TooManyRequestsError.default_code: "Wait a few seconds, and send fewer requests at a time.",
    ToolNotFoundError.default_code: "The tools of {computer} have changed: look at the list of tools again.",
    ToolDisabledError.default_code: "Its owner does not allow this tool: use another one, or tell the user.",
    ToolExecutionError.default_code: "The MCP server of this tool failed at {computer}. Try once more; if it fails "
    "again, tell the user.",
    ToolExecutionTimeoutError.default_code: "It was stopped after {timeout} s: {too_long}",
    ToolConfirmationError.default_code: "A person at {computer} has to agree to this call. Do not repeat it at "
    "once: tell the user what is to be confirmed, and where.",
    DocumentNotFoundError.default_code: "find_documents says which documents there are.",
    ElementNotFoundError.default_code: "Read its page with format=json to see the ids of its elements.",
}


@dataclass(frozen=True, slots=True)
class CallLimit:
    """How many seconds a tool may take, and what a model is told about this limit when it has passed."""

    seconds: int
    too_long: str
    approval_seconds: int | None = None
    """How many seconds a person may take to confirm a call. Without it, `seconds` covers that, too."""

    @property
    def total(self) -> int:
        return self.seconds + (self.approval_seconds or 0)

    def within(self, most: int) -> "CallLimit":
        """This limit, shortened to so many seconds in all. The tool keeps as much of its time as it can."""
        seconds = min(self.seconds, most)
        approval = None if self.approval_seconds is None else most - seconds
        return replace(self, seconds=seconds, approval_seconds=approval or None)


def advice(code: int, computer: str, limit: CallLimit) -> str:
    """Advice for a model about an error code; empty if nothing is known to help."""
    return _ADVICE.get(code, "").format(computer=computer, timeout=limit.seconds, too_long=limit.too_long)


def answered(text: str) -> types.CallToolResult:
    """A result with this text."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=well_formed(text))])


def refused(text: str) -> types.CallToolResult:
    """A result that says what went wrong, and what to do."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=well_formed(text))], is_error=True)


def unusable_office(problem: str, again: str = "try again") -> str:
    """What a model is told while the office cannot be used. `again` is what it may do in a few seconds."""
    return (
        f"The office cannot be used right now: {problem}. It is tried again all the time: {again} in a few seconds, or "
        "tell the user."
    )


def failed_on_the_way(error: SMCPError, computer: str, limit: CallLimit) -> types.CallToolResult:
    """The result of a call that did not reach the computer, or whose answer was lost."""
    return refused(_two_sentences(error.message, advice(error.code, computer, limit)))


def for_model(
    result: types.CallToolResult, computer: str, limit: CallLimit, addresses: Addresses
) -> types.CallToolResult:
    """A computer's result for the host: its content, with advice if the call failed for a known reason. A link to a
    resource leads through the office.
    """
    meta: Mapping[str, Any] = result.meta or {}
    content = [_reachable(item, computer, addresses) for item in result.content]
    if result.is_error and (code := meta.get(ERROR_CODE_MARKER)) is not None:
        starting = meta.get(STARTING_MARKER)
        if isinstance(starting, list) and starting:
            more = f"Try again in a few seconds: MCP servers of {computer} are still starting."
        else:
            more = advice(code, computer, limit) if isinstance(code, int) else ""
        if more:
            content = [*content, types.TextContent(type="text", text=more)]
    structured = result.structured_content
    if structured is not None and not isinstance(structured, dict):
        structured = {"result": structured}  # before 2026-07-28 it can only be an object
    return types.CallToolResult(
        content=content,
        structured_content=structured,
        is_error=result.is_error,
        _meta=own_result_meta(result.meta),
    )


def _reachable(item: types.ContentBlock, computer: str, addresses: Addresses) -> types.ContentBlock:
    if item.type != "resource_link" or item.uri.startswith(("http://", "https://")):
        return item
    return item.model_copy(update={"uri": addresses.of(computer, item.uri)})


def _two_sentences(first: str, second: str) -> str:
    if not second:
        return first
    return f"{first}{'' if first.endswith(('.', '!', '?')) else '.'} {second}"
