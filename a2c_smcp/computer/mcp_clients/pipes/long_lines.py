"""The id in a long JSON-RPC message, found at its two ends: the message is too long to be kept or parsed. Pure.

The `id` of a JSON-RPC message stands among its first members or among its last ones. The large part is between them.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from a2c_smcp.utils.pipes import LongLine

__all__ = ["Answered", "answered_by", "request_in"]

_TEXT: Final = rb'"(?:[^"\\]|\\.)*"'
#: A member whose value is neither an object nor a list.
_MEMBER: Final = re.compile(rb"\s*(%b)\s*:\s*(%b|-?\d+|true|false|null)\s*" % (_TEXT, _TEXT))


@dataclass(frozen=True, slots=True)
class Answered:
    """The request that a line answers."""

    is_answer: bool
    """`False` for a line with a `method`: it is a request or a notification of the server."""
    request_id: int | str | None = None
    """`None` if the ends of the line do not show it."""


def answered_by(line: LongLine) -> Answered:
    """The request that this line answers, as far as its ends show."""
    members = _members(line)
    if "method" in members:
        return Answered(is_answer=False)
    return Answered(is_answer=True, request_id=_id(members))


def request_in(line: LongLine) -> int | str | None:
    """The id of this line if it is a request; `None` if it is a notification or an answer."""
    members = _members(line)
    return _id(members) if "method" in members else None


def _members(line: LongLine) -> dict[str, object]:
    return {**_last_members(line.tail), **_first_members(line.head)}


def _id(members: dict[str, object]) -> int | str | None:
    request_id = members.get("id")
    return request_id if isinstance(request_id, int | str) and not isinstance(request_id, bool) else None


def _first_members(head: bytes) -> dict[str, object]:
    """The members before the first object or list."""
    head = head.lstrip()
    members: dict[str, object] = {}
    position = 1 if head.startswith(b"{") else len(head)
    while (found := _MEMBER.match(head, position)) and head[found.end() : found.end() + 1] == b",":
        _note(members, found)
        position = found.end() + 1
    return members


def _last_members(tail: bytes) -> dict[str, object]:
    """The members after the last object or list. The search stops at a text with a comma in it."""
    members: dict[str, object] = {}
    rest = tail.rstrip()
    if rest.endswith(b"}"):
        rest = rest[:-1]
        while (comma := rest.rfind(b",")) >= 0 and (found := _MEMBER.fullmatch(rest, comma + 1)):
            _note(members, found)
            rest = rest[:comma]
    return members


def _note(members: dict[str, object], found: re.Match[bytes]) -> None:
    try:
        key, value = json.loads(found[1]), json.loads(found[2])
    except ValueError:  # invalid UTF-8, or an invalid escape
        return
    members.setdefault(key, value)
