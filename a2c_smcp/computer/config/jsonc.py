"""Scans JSON with comments and trailing commas into nodes that know their places in the text. Pure.

It knows nothing of configs. With these places a caller can put a piece in or take one out, and the rest of the text
stays as it is.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "LINE_END",
    "JsoncError",
    "Node",
    "NodeMember",
    "blank_from",
    "blank_until",
    "comments",
    "read_jsonc",
    "scan",
    "value_of",
]

LINE_END: Final = re.compile(r"\r\n|\r|\n")

_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*(?s:.*?)\*/)*")
_STRING: Final = re.compile(r'"(?:\\.|[^"\\\x00-\x1f])*"')
_COMMENT: Final = re.compile(_STRING.pattern + r"|//[^\r\n]*|/\*(?s:.*?)\*/")
_SCALAR: Final = re.compile(r"-?[0-9][-+.0-9eE]*|true|false|null")
_CLOSERS: Final = {"{": "}", "[": "]"}


class JsoncError(ValueError):
    """The text is not JSON, even with comments. The message says where."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        ends = [found.end() for found in LINE_END.finditer(text, 0, position)]
        column = position - (ends[-1] if ends else 0) + 1
        super().__init__(f"invalid JSON at line {len(ends) + 1}, column {column}: {problem}")


@dataclass(frozen=True, slots=True)
class Node:
    """A value, written as `text[start:end]`. An object or a list has `members`."""

    start: int
    end: int
    value: Any = None
    """The value of a string, a number or a word; `None` for an object (`opener` is "{") and a list ("[")."""
    opener: str = ""
    members: "tuple[NodeMember, ...]" = ()

    @property
    def is_object(self) -> bool:
        return self.opener == "{"

    @property
    def is_list(self) -> bool:
        return self.opener == "["

    def get(self, name: str) -> "Node | None":
        """The value of a key. If the key stands there several times, the last one counts, as usual in JSON."""
        return next((member.node for member in reversed(self.members) if self.is_object and member.name == name), None)

    def text_of(self, name: str) -> str | None:
        """The value of a key, if it is a text."""
        node = self.get(name)
        return node.value if node is not None and isinstance(node.value, str) else None


@dataclass(frozen=True, slots=True)
class NodeMember:
    """One value of an object or a list, with its key (in an object) and the place of the comma after it."""

    start: int
    node: Node
    name: str | None = None
    comma: int | None = None


@dataclass(slots=True)
class _Open:
    """An object or a list that is not closed yet."""

    start: int
    opener: str
    members: list[NodeMember] = field(default_factory=list)
    key: tuple[int, str] | None = None


def read_jsonc(text: str, on_repeated: Callable[[str, int], None]) -> Any:
    """The value of a text. `on_repeated` is told each key that stands in an object several times, and how often.

    Raises `JsoncError`.
    """
    if (node := scan(text)) is None:
        raise JsoncError(text, len(text), "there is no value")
    return value_of(node, on_repeated)


def value_of(node: Node, on_repeated: Callable[[str, int], None] = lambda key, count: None) -> Any:
    """The value of a node, as `read_jsonc` reads it."""
    if node.is_list:
        return [value_of(member.node, on_repeated) for member in node.members]
    if not node.is_object:
        return node.value
    for name, count in Counter(member.name or "" for member in node.members).items():
        if count > 1:
            on_repeated(name, count)
    return {member.name: value_of(member.node, on_repeated) for member in node.members}


def scan(text: str) -> Node | None:
    """The one value of a text; `None` if it has only blanks and comments. Raises `JsoncError`."""
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
                    raise JsoncError(text, position, "there is more text after the value")
                return node
            node, position = _after_member(text, position, stack, node)


def _value(text: str, position: int, stack: list[_Open]) -> tuple[Node | None, int]:
    """Read a scalar, or open an object or a list. Returns `None` and a place if a member has to be read next."""
    opener = text[position : position + 1]
    if opener in _CLOSERS:
        if len(stack) == 64:  # a config file has five levels
            raise JsoncError(text, position, "nested too deeply")
        stack.append(_Open(position, opener))
        return _member_or_end(text, position + 1, stack)
    found = _STRING.match(text, position) or _SCALAR.match(text, position)
    if found is None:
        unended = "this string does not end on its line, or has a control character in it"
        raise JsoncError(text, position, unended if opener == '"' else "expected a value")
    return Node(position, found.end(), _decoded(text, found)), found.end()


def _member_or_end(text: str, position: int, stack: list[_Open]) -> tuple[Node | None, int]:
    """After an opener or a comma: close the innermost object or list, or find the place of its next value."""
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
    """Add a value to the object or list around it, and go on there."""
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
        raise JsoncError(text, token.start(), "this is neither a string nor a number") from None


def blank_until(text: str, position: int) -> int:
    """Where the blanks and comments that start here end."""
    found = _BLANK.match(text, position)
    assert found is not None
    return found.end()


def blank_from(text: str, start: int, end: int) -> int:
    """Where the last comment between two places ends, or `start`. Only blanks follow from there to `end`."""
    return max((stop for _, stop in comments(text, start, end)), default=start)


def comments(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Where each comment starts and ends."""
    for piece in _COMMENT.finditer(text, start, len(text) if end is None else end):
        if not piece[0].startswith('"'):
            yield piece.span()
