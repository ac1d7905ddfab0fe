"""Which request a message is, or answers, from its ends: it may be too long to be kept, or to be read for that. Pure.

A JSON-RPC message is an object whose `id` stands among its first members or its last ones; what is large is between.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from a2c_smcp.utils.pipes import LongLine

__all__ = ["Answered", "answered_by", "request_in"]

_TEXT: Final = rb'"(?:[^"\\]|\\.)*"'
#: A member whose value is no object and no list.
_MEMBER: Final = re.compile(rb"\s*(%b)\s*:\s*(%b|-?\d+|true|false|null)\s*" % (_TEXT, _TEXT))


@dataclass(frozen=True, slots=True)
class Answered:
    """What a line says of the request that it answers."""

    is_answer: bool
    """Whether it may answer a request: a line with a `method` is a request or a notification of the server's own."""
    request_id: int | str | None = None
    """`None` where it does not show."""


def answered_by(line: LongLine) -> Answered:
    """The request that this line answers, as far as its ends tell."""
    members = _members(line)
    if "method" in members:
        return Answered(is_answer=False)
    return Answered(is_answer=True, request_id=_id(members))


def request_in(line: LongLine) -> int | str | None:
    """The id of the request that this line is; `None` if it is a notification or an answer."""
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
    """The members after the last object or list; a text with a comma in it ends the search."""
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
    except ValueError:  # not UTF-8, or an escape that is none
        return
    members.setdefault(key, value)
