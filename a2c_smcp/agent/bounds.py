"""How large an answer of a computer may be before the agent decodes it. Pure.

A computer may belong to anybody. A hostile answer of 15 MB takes 2 s and 500 MB to decode, and 500,000 parts of a
result take as long again to check. The agent can do nothing else meanwhile. So it looks at the text of an answer first.
An answer that is too large fails its own request, and no other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from a2c_smcp.errors import PayloadTooLargeError
from a2c_smcp.packet_text import read_ack
from a2c_smcp.smcp import (
    ANSWER_QUESTION_EVENT,
    COMPLETE_EVENT,
    GET_BLOB_EVENT,
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_PROMPT_EVENT,
    GET_PROMPTS_EVENT,
    GET_RESOURCES_EVENT,
    GET_SKILL_EVENT,
    GET_SKILLS_EVENT,
    GET_TOOLS_EVENT,
    PUT_BLOB_EVENT,
    READ_RESOURCE_EVENT,
    SUBSCRIBE_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
    UNSUBSCRIBE_RESOURCE_EVENT,
)
from a2c_smcp.utils.json_sizes import has_more_values
from a2c_smcp.wire import exceeds

__all__ = ["AnswerLimits", "AnswerTooLargeError", "build_answer"]

#: For each request: the lists in its answer. For each list: the keys of an item whose values are not counted; `None` if
#: no value of an item is counted.
_LISTS: Final[Mapping[str, Mapping[str, frozenset[str] | None]]] = {
    TOOL_CALL_EVENT: {"content": frozenset({"_meta"})},
    GET_TOOLS_EVENT: {"tools": frozenset({"params_schema", "return_schema"})},
    GET_CONFIG_EVENT: {"servers": None, "inputs": None, "server_info": None},
    GET_DESKTOP_EVENT: {"desktops": None},
    GET_FINDER_EVENT: {"documents": frozenset()},
    READ_RESOURCE_EVENT: {"contents": None},
    GET_RESOURCES_EVENT: {"resources": frozenset({"_meta"}), "templates": frozenset({"_meta"})},
    GET_PROMPTS_EVENT: {"prompts": frozenset({"_meta"})},
    GET_PROMPT_EVENT: {"messages": frozenset({"_meta"})},
    COMPLETE_EVENT: {},
    SUBSCRIBE_RESOURCE_EVENT: {},
    UNSUBSCRIBE_RESOURCE_EVENT: {},
    ANSWER_QUESTION_EVENT: {},
    GET_SKILLS_EVENT: {"skills": frozenset()},
    GET_SKILL_EVENT: {},
    GET_BLOB_EVENT: {},
    PUT_BLOB_EVENT: {},
}
#: The answers with a limit of their own in bytes, which is smaller than that of a message: its name in `AnswerLimits`.
_BYTES: Final[Mapping[str, str]] = {
    GET_TOOLS_EVENT: "tools_bytes",
    GET_CONFIG_EVENT: "config_bytes",
    GET_FINDER_EVENT: "documents_bytes",
    GET_RESOURCES_EVENT: "documents_bytes",
    GET_PROMPTS_EVENT: "documents_bytes",
    COMPLETE_EVENT: "small_bytes",
    SUBSCRIBE_RESOURCE_EVENT: "small_bytes",
    UNSUBSCRIBE_RESOURCE_EVENT: "small_bytes",
    ANSWER_QUESTION_EVENT: "small_bytes",
    GET_SKILLS_EVENT: "documents_bytes",
    GET_SKILL_EVENT: "small_bytes",
    GET_BLOB_EVENT: "documents_bytes",
    PUT_BLOB_EVENT: "small_bytes",
}


class AnswerTooLargeError(PayloadTooLargeError):
    """A computer's answer is larger than this agent accepts."""


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """How large one answer of a computer may be. A larger answer raises `PayloadTooLargeError` for its request. For a
    tool call it becomes an error result with that code. Other requests go on.

    The bytes of results, windows and contents are limited by `LinkOptions.max_message` only.
    """

    values: int = 500_000
    """JSON values in all. Keys are not counted; an empty list or object counts as two."""
    items: int = 10_000
    """Tools, windows, documents, parts of a result, resources, contents of a resource, prompts and their messages, or
    MCP servers and inputs of a config."""
    nested: int = 1000
    """Values in one tool, document or part of a result, such as the keywords of a document or the icons of a link. All
    items of an answer together may have fifty times as many. Schemas, `_meta` and structured content are not counted.
    """
    tools_bytes: int = 8 * 2**20
    """Bytes of a list of tools."""
    config_bytes: int = 4 * 2**20
    """Bytes of a configuration."""
    documents_bytes: int = 8 * 2**20
    """Bytes of one part of a catalogue of documents, resources or prompts."""
    small_bytes: int = 256 * 2**10
    """Bytes of a completion, and of an answer that only says that a request is done."""
    blob_bytes: int = 100 * 2**20
    """Bytes of one result, or of one file of a skill, that a computer sends apart, in chunks."""


def build_answer(event: str, body: str, limits: AnswerLimits) -> tuple[Any, ...]:
    """Decode the arguments of an ack, or raise `AnswerTooLargeError`. Answers of the server itself have only the limit
    of a message.
    """
    if (lists := _LISTS.get(event)) is None:
        return tuple(read_ack(body))
    if event in _BYTES and exceeds(body, most := getattr(limits, _BYTES[event])):
        raise _too_large(event, f"more than {most} bytes")
    if has_more_values(body, limits.values):
        raise _too_large(event, f"more than {limits.values} JSON values")
    args = tuple(read_ack(body))
    # A shorter text cannot hold that many items or values.
    if len(body) >= 2 * min(limits.items, limits.nested) and args and isinstance(args[0], dict):
        for key, free in lists.items():
            _check_items(event, key, args[0].get(key), free, limits)
    return args


def _check_items(event: str, key: str, found: object, free: frozenset[str] | None, limits: AnswerLimits) -> None:
    if not isinstance(found, list | dict):
        return
    if len(found) > limits.items:
        raise _too_large(event, f"{len(found)} items in {key!r}; {limits.items} are allowed")
    if free is None:
        return
    left = 50 * limits.nested
    for item in found:
        values = _count_values(item, free, limits.nested) if isinstance(item, dict) else 0
        # About ten values are the ordinary fields of a tool, document or part of a result.
        left -= max(0, values - 10)
        if values > limits.nested or left < 0:
            raise _too_large(event, f"too many values in the items of {key!r}; {limits.nested} are allowed in one item")


def _count_values(item: dict[str, Any], free: frozenset[str], most: int) -> int:
    """Count the values in an item, its lists and its objects. The count stops above `most`. Each counted value takes up
    to 50 µs to validate later.
    """
    found = 0
    level: list[Any] = [item]
    while level and found <= most:
        found += sum(map(len, level))
        level = [child for each in level for child in _children(each, free) if isinstance(child, list | dict)]
    return found


def _children(value: list[Any] | dict[str, Any], free: frozenset[str]) -> Iterable[Any]:
    return value if isinstance(value, list) else (child for key, child in value.items() if key not in free)


def _too_large(event: str, what: str) -> AnswerTooLargeError:
    return AnswerTooLargeError(f"the computer's answer to {event} has {what}", {"event": event})
