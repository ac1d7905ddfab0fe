"""Tool results between MCP and the wire, and results that stand for a failure.

On the wire a result has exactly the keys `meta`, `content`, `structuredContent` and `isError`. The computer adds its
own information as markers in `meta`. MCP's types take a tenth of a second to import, so they are imported where they
are used: an agent that calls no tool does not need them.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from pydantic import FailFast, TypeAdapter, ValidationError

from a2c_smcp.errors import (
    BadRequestError,
    ServerNotActiveError,
    SMCPError,
    ToolConfirmationError,
    ToolExecutionTimeoutError,
    ToolNotFoundError,
)
from a2c_smcp.smcp import CallToolRet
from a2c_smcp.utils.validation import first_problem

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = [
    "ANNOTATION_KEY",
    "CANCELLED_MARKER",
    "DOWN_MARKER",
    "ERROR_CODE_MARKER",
    "ICONS_KEY",
    "META_KEY",
    "OUTCOME_MARKER",
    "REASON_MARKER",
    "REQUIRED_MARKER",
    "RULE_KEY",
    "SERVER_KEY",
    "STARTING_MARKER",
    "STATE_MARKER",
    "TIMEOUT_MARKER",
    "TITLE_KEY",
    "TOOL_META_MARKER",
    "VRL_MARKER",
    "cancelled_result",
    "error_result",
    "from_wire",
    "load_types",
    "structured_object",
    "text_of",
    "text_result",
    "to_wire",
    "with_markers",
]

#: An object here, as existing agents read it. Only in `SMCPTool.meta` is it a JSON string.
TOOL_META_MARKER: Final = "a2c_tool_meta"
VRL_MARKER: Final = "a2c_vrl_transformed"
TIMEOUT_MARKER: Final = "a2c_timeout"
CANCELLED_MARKER: Final = "a2c_cancelled"
ERROR_CODE_MARKER: Final = "error_code"
#: With 4005: the outcome (`nobody`, `unanswered`, `refused` or `rule`), and the words of the person who refused.
OUTCOME_MARKER: Final = "outcome"
REASON_MARKER: Final = "reason"
#: With 4001: the servers that are still starting and may have the tool.
STARTING_MARKER: Final = "starting"
#: The state of the tool's server; and, if no server has the tool, the servers that do not run.
STATE_MARKER: Final = "state"
DOWN_MARKER: Final = "down"
#: With 4003: the capabilities that the caller lacks for this tool (MCP's -32021), by their names in MCP.
REQUIRED_MARKER: Final = "required_capabilities"
#: In `SMCPTool.meta`: MCP's annotations of the tool as JSON text, and its title; its icons and its own `_meta`, both as
#: JSON text.
ANNOTATION_KEY: Final = "MCP_TOOL_ANNOTATION"
TITLE_KEY: Final = "MCP_TOOL_TITLE"
ICONS_KEY: Final = "MCP_TOOL_ICONS"
META_KEY: Final = "MCP_TOOL_META"
#: There, too: the name of the tool's MCP server in the config of its computer.
SERVER_KEY: Final = "MCP_SERVER_NAME"
#: What the computer's rules answer to every call of the tool: `allow`, `ask` or `deny`.
RULE_KEY: Final = "a2c_rule"
_MANY: Final = 20


@cache
def load_types() -> None:
    """Import MCP's types before a call is sent. Otherwise the answers of all running calls would wait for the
    import.
    """
    _blanks()


def to_wire(result: "CallToolResult") -> CallToolRet:
    """The result as the ack of `client:tool_call`."""
    content: list[dict[str, Any]] = []
    for item in result.content:
        if item.type == "text" and item.annotations is None and item.meta is None:
            content.append({"type": "text", "text": item.text})  # as pydantic writes it, in a tenth of the time
        else:
            content.append(item.model_dump(mode="json", by_alias=True, exclude_none=True))
    structured = result.structured_content
    return {
        "meta": dict(result.meta) if result.meta else None,
        "content": content,
        "structuredContent": structured if structured is None else structured_object(structured),
        "isError": result.is_error,
    }


def from_wire(data: Mapping[str, Any]) -> "CallToolResult":
    """The result from a computer. Raises `BadRequestError` with the field that does not fit MCP.

    It accepts what peers send: `_meta` for `meta`, unknown keys, and missing keys.
    """
    from mcp_types import CallToolResult

    meta = data.get("meta")
    known = {
        "_meta": data.get("_meta") if meta is None else meta,
        "content": _content(data.get("content") or []),
        "structuredContent": data.get("structuredContent"),
        "isError": data.get("isError") or False,
    }
    try:
        return CallToolResult.model_validate(known)
    except ValidationError as error:
        raise _invalid_result(error) from None


#: As `BaseModel.model_construct` does it.
_fill: Final = object.__setattr__


class _Blank(NamedTuple):
    """A model that was made by pydantic, for others like it."""

    model: Any
    values: dict[str, Any]
    given: frozenset[str]


def text_result(
    texts: Iterable[str], *, is_error: bool, meta: dict[str, Any] | None = None, structured: Any = None
) -> "CallToolResult":
    """What `from_wire` makes of these texts. They are known to be texts, so pydantic, which takes four times as long,
    does not look at them.
    """
    result, item = _blanks()
    content = []
    for text in texts:
        content.append(made := object.__new__(item.model))
        _fill(made, "__dict__", {**item.values, "text": text})
        _fill(made, "__pydantic_fields_set__", set(item.given))
        _fill(made, "__pydantic_extra__", None)
        _fill(made, "__pydantic_private__", None)
    known = {"meta": meta, "content": content, "structured_content": structured, "is_error": is_error}
    whole: CallToolResult = object.__new__(result.model)
    _fill(whole, "__dict__", {**result.values, **known})
    _fill(whole, "__pydantic_fields_set__", set(result.given))
    _fill(whole, "__pydantic_extra__", None)
    _fill(whole, "__pydantic_private__", None)
    return whole


@cache
def _blanks() -> tuple[_Blank, _Blank]:
    """A result with one text, and that text."""
    result = from_wire({"content": [{"type": "text", "text": ""}]})
    whole, item = (
        _Blank(type(each), dict(each.__dict__), frozenset(each.model_fields_set))
        for each in (result, result.content[0])
    )
    return whole, item


def _content(items: Any) -> Any:
    """Check a long list only up to the first wrong item. The model would explain every wrong item, which takes half
    a second.
    """
    if not isinstance(items, list) or len(items) < _MANY:
        return items
    try:
        return _content_adapter().validate_python(items)
    except ValidationError as error:
        raise _invalid_result(error, "content.") from None


@cache
def _content_adapter() -> TypeAdapter[Any]:
    from mcp_types import ContentBlock

    return TypeAdapter(Annotated[list[ContentBlock], FailFast()])


def _invalid_result(error: ValidationError, place: str = "") -> BadRequestError:
    field, message = first_problem(error)
    field = place + field
    return BadRequestError(f"tool result: field {field!r}: {message}", {"field": field})


def text_of(result: "CallToolResult", budget: int | None = None) -> str:
    """The text of a result: its text contents, one after the other. Images and other contents are left out.

    With a `budget` it has that many characters at most. A text that is cut ends with a line that says so.
    """
    text = "\n".join(item.text for item in result.content if item.type == "text")
    if budget is None or len(text) <= budget:
        return text
    mark = f"\n[cut: {len(text):,} characters in all]"
    return f"{text[: max(0, budget - len(mark))]}{mark}"[: max(0, budget)]


def with_markers(result: "CallToolResult", markers: Mapping[str, Any]) -> "CallToolResult":
    """The same result with these keys in its meta. They replace the keys of its server."""
    return result.model_copy(update={"meta": {**(result.meta or {}), **markers}}) if markers else result


def error_result(error: SMCPError) -> "CallToolResult":
    """The result that stands for a failed call (4001 to 4005), or for a result that is too large to send (413)."""
    markers: dict[str, Any] = {ERROR_CODE_MARKER: error.code}
    if error.code == ToolExecutionTimeoutError.default_code:
        markers[TIMEOUT_MARKER] = True
    if isinstance(error, ToolNotFoundError) and error.starting:
        markers[STARTING_MARKER] = error.starting
    if isinstance(error, ToolNotFoundError) and error.down:
        markers[DOWN_MARKER] = error.down
    if isinstance(error, ServerNotActiveError):
        known = {STATE_MARKER: error.state, REASON_MARKER: error.why}
        markers |= {name: value for name, value in known.items() if value}
    if required := error.details.get(REQUIRED_MARKER):
        markers[REQUIRED_MARKER] = required
    if isinstance(error, ToolConfirmationError):
        given = {OUTCOME_MARKER: error.outcome, REASON_MARKER: error.words}
        markers |= {name: value for name, value in given.items() if value}
    return _failure(error.message, markers)


def cancelled_result(where: str = "") -> "CallToolResult":
    """The result of a call that the agent or a person cancelled: an error without a code."""
    return _failure(f"Tool call cancelled {where}".rstrip(), {CANCELLED_MARKER: True})


def _failure(text: str, meta: dict[str, Any]) -> "CallToolResult":
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(text=text)], is_error=True, _meta=meta)


def structured_object(value: Any) -> dict[str, Any] | None:
    """The structured content in the protocol's form: an object.

    MCP of 2026-07-28 allows any JSON value. Its SDKs wrap the other values in the same way.
    """
    return value if value is None or isinstance(value, dict) else {"result": value}
