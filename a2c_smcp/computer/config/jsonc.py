"""JSON with comments and trailing commas, scanned into nodes that know where they stand in the text. Pure.

It knows nothing of configs. A caller that changes a text puts pieces in and takes pieces out by these places, so that
everything else in the text stays as it is.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "LINE_END",
    "MAX_DEPTH",
    "JsoncError",
    "Node",
    "NodeMember",
    "blank_from",
    "blank_until",
    "comments",
    "read_jsonc",
    "scan",
]

#: Levels of objects and lists; a config file has five.
MAX_DEPTH: Final = 64
LINE_END: Final = re.compile(r"\r\n|\r|\n")

_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*(?s:.*?)\*/)*")
_STRING: Final = re.compile(r'"(?:\\.|[^"\\\x00-\x1f])*"')
_COMMENT: Final = re.compile(_STRING.pattern + r"|//[^\r\n]*|/\*(?s:.*?)\*/")
_SCALAR: Final = re.compile(r"-?[0-9][-+.0-9eE]*|true|false|null")
_CLOSERS: Final = {"{": "}", "[": "]"}


class JsoncError(ValueError):
    """A text that is no JSON, even with comments; says at which place."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        ends = [found.end() for found in LINE_END.finditer(text, 0, position)]
        column = position - (ends[-1] if ends else 0) + 1
        super().__init__(f"invalid JSON at line {len(ends) + 1}, column {column}: {problem}")


@dataclass(frozen=True, slots=True)
class Node:
    """A value: `text[start:end]` is how it is written. `members` are those of an object or a list."""

    start: int
    end: int
    value: Any = None
    """What a string, a number or a word means; `None` for an object or a list, whose `opener` says which it is."""
    opener: str = ""
    members: "tuple[NodeMember, ...]" = ()

    @property
    def is_object(self) -> bool:
        return self.opener == "{"

    @property
    def is_list(self) -> bool:
        return self.opener == "["

    def get(self, name: str) -> "Node | None":
        """The value of a key; the last one, if it stands there several times, as readers of JSON have it."""
        return next((member.node for member in reversed(self.members) if self.is_object and member.name == name), None)

    def text_of(self, name: str) -> str | None:
        """The value of a key, if it is a text."""
        node = self.get(name)
        return node.value if node is not None and isinstance(node.value, str) else None


@dataclass(frozen=True, slots=True)
class NodeMember:
    """One value of an object or a list, with its key, if it has one, and the place of the comma after it."""

    start: int
    node: Node
    name: str | None = None
    comma: int | None = None


@dataclass(slots=True)
class _Open:
    """An object or a list whose end is still to come."""

    start: int
    opener: str
    members: list[NodeMember] = field(default_factory=list)
    key: tuple[int, str] | None = None


def read_jsonc(text: str, on_repeated: Callable[[str, int], None]) -> Any:
    """What a text means. `on_repeated` is told a key that an object has several times, and how often. Raises
    `JsoncError`.
    """

    def value_of(node: Node) -> Any:
        if node.is_list:
            return [value_of(member.node) for member in node.members]
        if not node.is_object:
            return node.value
        for name, count in Counter(member.name or "" for member in node.members).items():
            if count > 1:
                on_repeated(name, count)
        return {member.name: value_of(member.node) for member in node.members}

    if (node := scan(text)) is None:
        raise JsoncError(text, len(text), "there is no value")
    return value_of(node)


def scan(text: str) -> Node | None:
    """The one value of a text; `None` if there are blanks and comments only. Raises `JsoncError`."""
    position = blank_until(text, 1 if text.startswith("\ufeff") else 0)
    if position == len(text):
        return None
    stack: list[_Open] = []
    while True:
        node, position = _value(text, position, stack)
        while node is not None:
            position = blank_until(text, position)
            if not stack:
                if position != len(text):
                    raise JsoncError(text, position, "there is more after the end")
                return node
            node, position = _after_member(text, position, stack, node)


def _value(text: str, position: int, stack: list[_Open]) -> tuple[Node | None, int]:
    """Read a scalar, or open an object or a list; `None` if its first member comes next."""
    opener = text[position : position + 1]
    if opener in _CLOSERS:
        if len(stack) == MAX_DEPTH:
            raise JsoncError(text, position, "nested too deeply")
        stack.append(_Open(position, opener))
        return _member_or_end(text, position + 1, stack)
    found = _STRING.match(text, position) or _SCALAR.match(text, position)
    if found is None:
        unended = "this text has no end on its line, or a control character in it"
        raise JsoncError(text, position, unended if opener == '"' else "expected a value")
    return Node(position, found.end(), _decoded(text, found)), found.end()


def _member_or_end(text: str, position: int, stack: list[_Open]) -> tuple[Node | None, int]:
    """After an opener or a comma: the end of the innermost object or list, or the place of its next value."""
    inner = stack[-1]
    position = blank_until(text, position)
    if text[position : position + 1] == _CLOSERS[inner.opener]:
        stack.pop()
        return Node(inner.start, position + 1, None, inner.opener, tuple(inner.members)), position + 1
    if inner.opener == "[":
        return None, position
    found = _STRING.match(text, position)
    if found is None:
        raise JsoncError(text, position, "expected a key in double quotes")
    inner.key = (position, _decoded(text, found))
    position = blank_until(text, found.end())
    if text[position : position + 1] != ":":
        raise JsoncError(text, position, "expected a colon")
    return None, blank_until(text, position + 1)


def _after_member(text: str, position: int, stack: list[_Open], node: Node) -> tuple[Node | None, int]:
    """Take a value into the object or list that it is in, and go on there."""
    inner = stack[-1]
    start, name = inner.key or (node.start, None)
    inner.key = None
    if text[position : position + 1] == ",":
        inner.members.append(NodeMember(start, node, name, position))
        return _member_or_end(text, position + 1, stack)
    inner.members.append(NodeMember(start, node, name))
    if text[position : position + 1] != _CLOSERS[inner.opener]:
        raise JsoncError(text, position, f"expected a comma or {_CLOSERS[inner.opener]}")
    return _member_or_end(text, position, stack)


def _decoded(text: str, token: re.Match[str]) -> Any:
    try:
        return json.loads(token[0])
    except ValueError:
        raise JsoncError(text, token.start(), "this is neither a text nor a number") from None


def blank_until(text: str, position: int) -> int:
    """Where the blanks and comments end that start here."""
    found = _BLANK.match(text, position)
    assert found is not None
    return found.end()


def blank_from(text: str, start: int, end: int) -> int:
    """Where the last comment between two places ends, or `start`: what follows up to `end` are blanks only."""
    return max((stop for _, stop in comments(text, start, end)), default=start)


def comments(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Where each comment starts and ends."""
    for piece in _COMMENT.finditer(text, start, len(text) if end is None else end):
        if not piece[0].startswith('"'):
            yield piece.span()
