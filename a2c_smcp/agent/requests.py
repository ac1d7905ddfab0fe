"""What an agent asks, and how it reads the answers. Pure: no sockets, no clock, and ids are handed in.

A builder returns a `Request`. A reader takes the ack of that request, and returns the value or raises the error that
the ack holds.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import msgspec

from a2c_smcp.agent.bounds import AnswerLimits, AnswerTooLargeError, build_answer
from a2c_smcp.dialects.call_times import call_grace
from a2c_smcp.dialects.empty_answers import filled_in
from a2c_smcp.dialects.handshake import Dialect
from a2c_smcp.errors import (
    BadRequestError,
    RequestTimeoutError,
    ToolError,
    ToolExecutionTimeoutError,
    ToolNotFoundError,
    error_from_payload,
)
from a2c_smcp.packet_text import MAX_DEPTH
from a2c_smcp.results import (
    ERROR_CODE_MARKER,
    STARTING_MARKER,
    TOOL_META_MARKER,
    error_result,
    from_wire,
    text_result,
)
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_EVENT,
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_TOOLS_EVENT,
    LIST_ROOM_EVENT,
    TOOL_CALL_EVENT,
    AgentCallData,
    DPEPageSummary,
    GetComputerConfigRet,
    GetFinderRet,
    SessionInfo,
    SMCPTool,
    ToolMeta,
)
from a2c_smcp.types import Desktop
from a2c_smcp.utils.dpe_uri import element_uri, page_uri, parse_dpe_uri, with_params
from a2c_smcp.utils.json_sizes import has_more_values, nests_deeper
from a2c_smcp.wire import LARGE, call_times, parse_response

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = [
    "DEFAULT_LIMIT",
    "DEFAULT_TIMEOUT",
    "DEFAULT_WAIT",
    "Deadlines",
    "DocumentPicture",
    "NotSupportedError",
    "Request",
    "UnansweredError",
    "cancel",
    "computers_in",
    "deadlines_at",
    "document_pages_uri",
    "element_of",
    "failure_of",
    "get_config",
    "get_desktop",
    "get_finder",
    "get_tools",
    "list_room",
    "next_offset",
    "page_of",
    "pages_in",
    "picture_in",
    "read_config",
    "read_desktop",
    "read_document",
    "read_finder",
    "read_reply",
    "read_result",
    "read_sent",
    "read_sessions",
    "read_tools",
    "still_starting",
    "texts_in",
    "timed_out",
    "to_computer",
    "tool_call",
    "tool_meta",
    "tool_result",
]

#: The timeout of a tool call in seconds, if its caller gives none.
DEFAULT_TIMEOUT: Final = 60
#: How many seconds to wait for tools that are not there yet.
DEFAULT_WAIT: Final = 10.0
#: How many documents or pages come at once, if the caller gives no number.
DEFAULT_LIMIT: Final = 20
# The server decides how long a timeout may be, and its refusal names the limit. This is 68 years: a larger number fits
# neither every timer nor every reader of JSON.
_LONGEST_TIMEOUT: Final = 2**31
#: A tool result has at least one of these keys.
_RESULT_KEYS: Final = ("content", "structuredContent", "isError")
_LIMITS: Final = AnswerLimits()
_REQUIRED: Final[Mapping[str, str]] = {GET_DESKTOP_EVENT: "desktops", GET_FINDER_EVENT: "documents"}


class NotSupportedError(BadRequestError):
    """The server acked a request without an answer. Older servers do that for events that they do not know."""

    title = "Not Supported"

    def __init__(self, event: str) -> None:
        super().__init__(f"{event} is not supported by this server: it answered with nothing", {"event": event})


class UnansweredError(RequestTimeoutError):
    """No answer came in time, not even the server's error about a computer that does not answer."""

    def __init__(self, request: "Request") -> None:
        super().__init__(
            f"the server did not answer {request.event} within {request.deadline:g} s; "
            "older servers are silent about what they refuse or do not support",
            {"event": request.event},
        )


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long an agent waits for answers, in seconds.

    Computer and server have shorter deadlines, so an agent usually gets their answer before its own time is over.
    """

    reply: float = 20.0
    """For every request but a tool call."""
    tool_call_grace: float = 10.0
    """How much longer than a tool call's own timeout."""
    cancel: float = 2.0
    """For the cancel of a call whose caller has stopped waiting, and for handlers when the client closes."""
    blobs: float = 120.0
    """For all bytes of one result, or of one file of a skill, that a computer sends apart, in chunks."""


def deadlines_at(dialect: Dialect, deadlines: Deadlines) -> Deadlines:
    """The deadlines at a server that speaks this dialect."""
    return replace(deadlines, tool_call_grace=call_grace(dialect, deadlines.tool_call_grace))


@dataclass(frozen=True, slots=True)
class Request:
    """One event to send, and how long to wait for its answer."""

    event: str
    data: dict[str, Any]
    deadline: float

    @property
    def req_id(self) -> str:
        return cast("str", self.data["req_id"])


# --- building


def tool_call(
    call: AgentCallData,
    deadlines: Deadlines,
    computer: str,
    tool_name: str,
    params: Mapping[str, Any] | None,
    timeout: int,
    *,
    progress: bool = False,
    questions: Sequence[str] = (),
    meta: Mapping[str, Any] | None = None,
    approval_timeout: int | None = None,
) -> Request:
    if approval_timeout is None and type(timeout) is int and 1 <= timeout <= _LONGEST_TIMEOUT:
        times = {"timeout": timeout}
    else:
        given = call_times({"timeout": timeout, "approval_timeout": approval_timeout}, None)
        times = {name: min(seconds, _LONGEST_TIMEOUT) for name, seconds in given.items()}
    if params is not None and type(params) is not dict and not isinstance(params, Mapping):
        raise BadRequestError("field 'params': must map the names of arguments to values", {"field": "params"})
    data = {**call, "computer": computer, "tool_name": tool_name, "params": dict(params or {}), **times}
    if progress:
        data["progress"] = True
    if questions:
        data["questions"] = texts_in("questions", questions)
    if meta is not None:
        data["meta"] = dict(meta)
    return Request(TOOL_CALL_EVENT, data, sum(times.values()) + deadlines.tool_call_grace)


def get_tools(call: AgentCallData, deadlines: Deadlines, computer: str) -> Request:
    return to_computer(GET_TOOLS_EVENT, call, deadlines.reply, computer, {"meta": {"server_names": True}})


def get_config(call: AgentCallData, deadlines: Deadlines, computer: str) -> Request:
    return to_computer(GET_CONFIG_EVENT, call, deadlines.reply, computer)


def get_desktop(
    call: AgentCallData, deadlines: Deadlines, computer: str, size: int | None, window: str | None
) -> Request:
    fields = {"desktop_size": size, "window": window}
    return to_computer(GET_DESKTOP_EVENT, call, deadlines.reply, computer, _given(fields))


def get_finder(
    call: AgentCallData,
    deadlines: Deadlines,
    computer: str,
    keywords: Sequence[str] | None,
    file_type: str | None,
    offset: int,
    limit: int,
) -> Request:
    fields = {
        "keywords": texts_in("keywords", keywords) if keywords is not None else None,
        "file_type": file_type,
        "offset": offset or None,
        "limit": limit if limit != DEFAULT_LIMIT else None,
    }
    return to_computer(GET_FINDER_EVENT, call, deadlines.reply, computer, _given(fields))


def list_room(call: AgentCallData, deadlines: Deadlines, office_id: str) -> Request:
    return Request(LIST_ROOM_EVENT, {**call, "office_id": office_id}, deadlines.reply)


def cancel(call: AgentCallData, deadlines: Deadlines) -> Request:
    """Take back the tool call of this `req_id`."""
    return Request(CANCEL_TOOL_CALL_EVENT, {**call}, deadlines.cancel)


def texts_in(field: str, value: Iterable[str]) -> list[str]:
    """Check a value that must be several texts, or raise `BadRequestError`: Python would split a single text into
    letters.
    """
    given = list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else None
    if given is None or not all(isinstance(item, str) for item in given):
        raise BadRequestError(f"field {field!r}: must be a list of texts, not one text", {"field": field})
    return given


def to_computer(
    event: str, call: AgentCallData, deadline: float, computer: str, fields: Mapping[str, Any] | None = None
) -> Request:
    """A request to a computer with these fields."""
    return Request(event, {**call, "computer": computer, **(fields or {})}, deadline)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are to be sent: absent filters and defaults are not."""
    return {key: value for key, value in fields.items() if value is not None}


# --- reading


def read_reply(request: Request, args: tuple[Any, ...]) -> Any:
    """The reply as the TypedDict of its event.

    Raises the error class of a code in it, `NotSupportedError` for an empty reply, and `BadRequestError` for a reply
    that breaks the protocol.
    """
    reply = _answer(request, args)
    # The protocol's types do not require this field.
    if (field := _REQUIRED.get(request.event)) is not None and reply.get(field) is None:
        raise _invalid_reply(request, field, "is missing")
    # The peer may leave the req_id out.
    return parse_response(request.event, {**reply, "req_id": request.req_id})


def read_sessions(request: Request, args: tuple[Any, ...]) -> list[SessionInfo]:
    return cast("list[SessionInfo]", read_reply(request, args)["sessions"])


def read_tools(request: Request, args: tuple[Any, ...]) -> list[SMCPTool]:
    return cast("list[SMCPTool]", read_reply(request, args)["tools"])


def read_desktop(request: Request, args: tuple[Any, ...]) -> list[Desktop]:
    return cast("list[Desktop]", read_reply(request, args)["desktops"])


def read_finder(request: Request, args: tuple[Any, ...], dialect: Dialect = Dialect.OURS) -> GetFinderRet:
    """A part of the catalogue, from a server that speaks this dialect."""
    return cast("GetFinderRet", read_reply(request, filled_in(dialect, request.event, request.req_id, args)))


class _TextItem(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text"]
    text: str


class _TextAnswer(
    msgspec.Struct, forbid_unknown_fields=True, rename={"is_error": "isError", "structured": "structuredContent"}
):
    """A result of texts, as most results."""

    content: list[_TextItem]
    is_error: bool = False
    meta: dict[str, Any] | None = None
    structured: None = None
    req_id: str | None = None


class _SmallAnswer(_TextAnswer):
    """Large structured content is decoded with the garbage collector paused, in `build_answer`."""

    structured: Any = None


_READ_LARGE: Final = msgspec.json.Decoder(tuple[_TextAnswer])
_READ_SMALL: Final = msgspec.json.Decoder(tuple[_SmallAnswer])
_TEXT: Final = attrgetter("text")


def tool_result(request: Request, body: str, limits: AnswerLimits) -> "CallToolResult":
    """What `read_result` makes of the ack of a tool call with this JSON. A result of texts is read in a third of the
    time.
    """
    # A text that is shorter than this has fewer values in any case.
    if len(body) < 2 * limits.values and limits.nested >= 2:
        try:
            (found,) = (_READ_SMALL if len(body) <= LARGE else _READ_LARGE).decode(body)
        except (ValueError, RecursionError):
            pass  # it has something else, or is no result
        else:
            meta, structured = found.meta, found.structured
            is_deep = (meta or structured) and nests_deeper(body, [[meta, structured]], MAX_DEPTH)
            fits = len(found.content) <= limits.items and not is_deep
            if fits and found.req_id in (None, request.data["req_id"]):
                texts = map(_TEXT, found.content)
                return text_result(texts, is_error=found.is_error, meta=meta, structured=structured)
    return read_result(request, build_answer(request.event, body, limits))


def read_result(request: Request, args: tuple[Any, ...]) -> "CallToolResult":
    """The tool's result. A failure inside the tool is a result too; a failure on the way to the tool raises."""
    try:
        reply = _answer(request, args)
        if not any(reply.get(key) is not None for key in _RESULT_KEYS):
            raise _invalid_reply(request, "content", "is missing")
        return from_wire(reply)
    except ToolError as error:
        return error_result(error)


def read_config(request: Request, args: tuple[Any, ...]) -> GetComputerConfigRet:
    """The configuration. Only its outline is checked: any value in it may still be a placeholder."""
    reply = _answer(request, args)
    servers, inputs = reply.get("servers"), reply.get("inputs")
    if not isinstance(servers, dict) or not all(isinstance(config, dict) for config in servers.values()):
        raise _invalid_reply(request, "servers", "must map names to configs")
    if inputs is not None and not isinstance(inputs, list):
        raise _invalid_reply(request, "inputs", "must be a list")
    found = {"servers": servers, "inputs": inputs}
    infos = reply.get("server_info")
    if isinstance(infos, dict) and all(isinstance(info, dict) for info in infos.values()):
        found["server_info"] = infos
    return cast("GetComputerConfigRet", found)


def read_sent(request: Request, args: tuple[Any, ...]) -> None:
    """Check the ack of an announcement: only an error raises."""
    if args and (error := error_from_payload(args[0])) is not None:
        raise error


def computers_in(sessions: Iterable[SessionInfo]) -> list[str]:
    """The names of the computers among these sessions."""
    return [session["name"] for session in sessions if session.get("role") == "computer" and "name" in session]


def still_starting(result: "CallToolResult") -> list[str]:
    """The MCP servers that are starting and may bring the tool that this call did not find; empty for every other
    result.
    """
    meta = result.meta or {}
    servers = meta.get(STARTING_MARKER)
    missing = result.is_error and meta.get(ERROR_CODE_MARKER) == ToolNotFoundError.default_code
    return list(map(str, servers)) if missing and isinstance(servers, list) else []


def failure_of(result: Any) -> str | None:
    """Why a tool call failed, in a code or a word; `None` if it did not."""
    if not result.is_error:
        return None
    code = (result.meta or {}).get(ERROR_CODE_MARKER)
    return str(code) if isinstance(code, int) else "tool_error"


def timed_out(request: Request) -> "CallToolResult":
    """The result of a call that was not answered in time."""
    return error_result(ToolExecutionTimeoutError(request.data["timeout"] + request.data.get("approval_timeout", 0)))


def _answer(request: Request, args: tuple[Any, ...]) -> dict[str, Any]:
    reply = args[0] if args else None
    if reply is None:
        raise NotSupportedError(request.event)
    if not isinstance(reply, dict):
        raise BadRequestError(f"reply to {request.event}: must be one JSON object")
    if (error := error_from_payload(reply)) is not None:
        raise error
    if reply.get("req_id") not in (None, request.req_id):
        raise _invalid_reply(request, "req_id", "belongs to another request")
    return reply


def _invalid_reply(request: Request, field: str, problem: str) -> BadRequestError:
    return BadRequestError(f"reply to {request.event}: field {field!r}: {problem}", {"field": field})


# --- tools


def tool_meta(tool: SMCPTool) -> ToolMeta:
    """The configured metadata of a tool: `auto_apply`, `alias`, `tags`, `ret_object_mapper`; empty if there is none."""
    raw = (tool.get("meta") or {}).get(TOOL_META_MARKER)
    if raw is None:
        return {}
    try:
        meta = json.loads(raw) if isinstance(raw, str) and not has_more_values(raw, _LIMITS.values) else None
    except (ValueError, RecursionError):
        meta = None
    if not isinstance(meta, dict):
        raise BadRequestError(f"tool {tool['name']!r}: its {TOOL_META_MARKER} is not an object in JSON")
    return cast("ToolMeta", meta)


# --- documents


def document_pages_uri(uri: str, offset: int, limit: int) -> str:
    """The URI of a document's metadata with the index of its pages."""
    uri = _with(with_params(uri, {"depth": "pages"}), "format", "json", "json")
    return _with(_with(uri, "offset", str(offset), "0"), "limit", str(limit), str(DEFAULT_LIMIT))


def page_of(uri: str, page_index: int, format: str, categories: Sequence[str] | None) -> str:
    uri = _with(page_uri(uri, page_index), "format", format, "json")
    return uri if categories is None else with_params(uri, {"categories": ",".join(texts_in("categories", categories))})


@dataclass(frozen=True, slots=True)
class DocumentPicture:
    """A picture of a page or an element, as its document server gave it."""

    data: bytes
    mime_type: str


def picture_in(contents: Sequence[Mapping[str, Any]]) -> DocumentPicture | None:
    """The picture among the contents of a page or an element; `None` if its server has none."""
    for item in contents:
        mime_type, blob = item.get("mimeType"), item.get("blob")
        if isinstance(mime_type, str) and mime_type.startswith("image/") and isinstance(blob, str):
            try:
                return DocumentPicture(base64.b64decode(blob, validate=True), mime_type)
            except ValueError:
                raise BadRequestError("the document server sent a picture that cannot be decoded") from None
    return None


def element_of(uri: str, element_id: str, format: str) -> str:
    return _with(element_uri(uri, element_id), "format", format, "json")


def _with(uri: str, key: str, value: str, default: str) -> str:
    """Set a query key. A default is not sent, unless the URI already has another value for the key."""
    return uri if value == default and key not in parse_dpe_uri(uri).query_params else with_params(uri, {key: value})


def read_document(contents: Sequence[Mapping[str, Any]], limits: AnswerLimits = _LIMITS) -> Any:
    """The answer of a document server: a decoded object if it is JSON, else the text."""
    item = next((item for item in contents if isinstance(item.get("text"), str)), None)
    if item is None:
        raise BadRequestError("the document has no text at this place")
    text, mime_type = item["text"], item.get("mimeType")
    if mime_type is not None and str(mime_type).partition(";")[0].strip() != "application/json":
        return text
    if has_more_values(text, limits.values):
        raise AnswerTooLargeError(f"the document has more than {limits.values} JSON values at this place")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if mime_type is None:
            return text
        raise BadRequestError("the document server sent JSON that cannot be decoded") from None


def pages_in(index: Any) -> list[DPEPageSummary]:
    """The pages in the answer to `document_pages_uri`."""
    pages = index.get("pages") if isinstance(index, dict) else None
    if not isinstance(pages, list) or not all(
        isinstance(page, dict) and isinstance(page.get("page_index"), int) for page in pages
    ):
        raise BadRequestError("the document server sent no index of pages", {"field": "pages"})
    return cast("list[DPEPageSummary]", pages)


def next_offset(index: Mapping[str, Any], offset: int) -> int | None:
    """The offset of the next part of the index; `None` at its end, or if the answer names no more pages."""
    offset += len(index["pages"])
    total = index.get("page_total")
    return offset if index["pages"] and isinstance(total, int) and offset < total else None
