"""How much an answer of a computer may have before an agent makes values of it. Pure.

A computer may be anybody's. Building an answer of 15 MB takes 2 s and 500 MB if it is made for that, and checking
500,000 parts of a result as long again; all that time the agent does nothing else. So an answer is looked at as text
first, and one that is too much is an error of its request alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from a2c_smcp.errors import PayloadTooLargeError
from a2c_smcp.packets import read_ack
from a2c_smcp.smcp import (
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_TOOLS_EVENT,
    READ_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
)
from a2c_smcp.utils.json_sizes import has_more_values
from a2c_smcp.wire import exceeds

__all__ = ["AnswerLimits", "AnswerTooLargeError", "build_answer"]

_MEBIBYTE: Final = 2**20
#: The fields that every tool, document or part of a result has by itself, about.
_PLAIN: Final = 10
#: What a computer answers, and the lists in it, each with the keys of an item that may hold anything; `None` where all
#: of an item may be anything.
_LISTS: Final[Mapping[str, Mapping[str, frozenset[str] | None]]] = {
    TOOL_CALL_EVENT: {"content": frozenset({"_meta"})},
    GET_TOOLS_EVENT: {"tools": frozenset({"params_schema", "return_schema"})},
    GET_CONFIG_EVENT: {"servers": None, "inputs": None, "server_info": None},
    GET_DESKTOP_EVENT: {"desktops": None},
    GET_FINDER_EVENT: {"documents": frozenset()},
    READ_RESOURCE_EVENT: {"contents": None},
}
#: The answers that may have fewer bytes than a message.
_BYTES: Final[Mapping[str, str]] = {
    GET_TOOLS_EVENT: "tools_bytes",
    GET_CONFIG_EVENT: "config_bytes",
    GET_FINDER_EVENT: "documents_bytes",
}


class AnswerTooLargeError(PayloadTooLargeError):
    """A computer answered with more than this agent takes."""


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """How much one answer of a computer may have. More is a `PayloadTooLargeError` for that request, and of a tool call
    an error result with that code; whatever else the agent waits for is not held up by it.

    The bytes of results, windows and contents are bounded by `LinkOptions.max_message` alone.
    """

    values: int = 500_000
    """JSON values in all. Keys are not counted; an empty list or object counts as two."""
    items: int = 10_000
    """Tools, windows, documents, parts of a result, contents of a resource, or MCP servers and inputs of a config."""
    nested: int = 1000
    """Values in one tool, document or part of a result, such as the keywords of a document or the icons of a link;
    fifty times as many in all. Schemas, `_meta` and structured content are not counted."""
    tools_bytes: int = 8 * _MEBIBYTE
    """Bytes of a list of tools."""
    config_bytes: int = 4 * _MEBIBYTE
    """Bytes of a configuration."""
    documents_bytes: int = 8 * _MEBIBYTE
    """Bytes of one part of a catalogue of documents."""


def build_answer(event: str, body: str, limits: AnswerLimits) -> tuple[Any, ...]:
    """The arguments of an ack that came as this JSON, or `AnswerTooLargeError`. What the server itself answers has no
    limit but that of a message.
    """
    if (lists := _LISTS.get(event)) is None:
        return tuple(read_ack(body))
    if event in _BYTES and exceeds(body, most := getattr(limits, _BYTES[event])):
        raise _too_large(event, f"more than {most} bytes")
    if has_more_values(body, limits.values):
        raise _too_large(event, f"more than {limits.values} JSON values")
    args = tuple(read_ack(body))
    # A shorter text has room neither for so many items nor for so many values in one.
    if len(body) >= 2 * min(limits.items, limits.nested) and args and isinstance(args[0], dict):
        for key, free in lists.items():
            _check_items(event, key, args[0].get(key), free, limits)
    return args


def _check_items(event: str, key: str, found: object, free: frozenset[str] | None, limits: AnswerLimits) -> None:
    if not isinstance(found, list | dict):
        return
    if len(found) > limits.items:
        raise _too_large(event, f"{len(found)} items in {key!r}, and may have {limits.items}")
    if free is None:
        return
    left = 50 * limits.nested
    for item in found:
        values = _count_values(item, free, limits.nested) if isinstance(item, dict) else 0
        left -= max(0, values - _PLAIN)
        if values > limits.nested or left < 0:
            raise _too_large(event, f"too many values in the items of {key!r}; one may have {limits.nested}")


def _count_values(item: dict[str, Any], free: frozenset[str], most: int) -> int:
    """How many values are in an item and in its lists and objects; of more than `most`, some number above it. What is
    wrong with each of them is found out one by one, at up to 50 µs.
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
