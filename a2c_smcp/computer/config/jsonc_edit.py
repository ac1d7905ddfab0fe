"""Puts a member into the text of JSON with comments, laid out like its neighbours, or takes one out. Pure."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from a2c_smcp.computer.config.jsonc import LINE_END, Node, NodeMember, blank_from, comments, scan

__all__ = ["TextStyle", "indented", "line_indent", "with_member", "without_member"]

_INDENT: Final = re.compile(r"[\r\n]([ \t]+)(?=[\"{\[])")


# --- putting in


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How a text is laid out."""

    newline: str
    unit: str
    """The indentation of one level."""

    @classmethod
    def of(cls, text: str) -> "TextStyle":
        newline, unit = LINE_END.search(text), _INDENT.search(text)
        return cls(newline[0] if newline else "\n", unit[1] if unit else "  ")


def with_member(text: str, node: Node, key: str | None, value: str) -> str:
    """The text with one more member at the end of an object or a list."""
    style = TextStyle.of(text)
    close = node.end - 1
    last = node.members[-1] if node.members else None
    has_comma = last is not None and last.comma is not None
    begin = node.start + 1 if last is None else last.node.end if last.comma is None else last.comma + 1
    spot = blank_from(text, begin, close)
    outer = line_indent(text, node.start)
    on_one_line = last is not None and not LINE_END.search(text, node.start, node.end)
    inner = outer + style.unit
    if last is not None and _is_first_of_its_line(text, last.start):
        inner = line_indent(text, last.start)
    break_before = " " if on_one_line else style.newline + inner
    break_after = "" if on_one_line or LINE_END.search(text, spot, close) else style.newline + outer
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    comma = "," if last is not None and not has_comma else ""
    member = f"{name}{indented(value, '' if on_one_line else inner, style)}{',' if has_comma else ''}"
    return text[:begin] + comma + text[begin:spot] + break_before + member + break_after + text[spot:]


def indented(value: str, indent: str, style: TextStyle) -> str:
    """A value with its lines indented by their depth, except the first line. Lines inside a comment stay."""
    node = scan(value)
    assert node is not None
    steps = sorted(_steps(node))
    held = {found.end() for begin, stop in comments(value) for found in LINE_END.finditer(value, begin, stop)}
    lines, depth, step = [], 0, 0
    start = 0
    for number, end in enumerate([*(found.end() for found in LINE_END.finditer(value)), len(value)]):
        line = value[start:end].rstrip("\r\n")
        first = start + len(line) - len(line.lstrip(" \t"))
        while step < len(steps) and steps[step][0] <= first:
            depth += steps[step][1]
            step += 1
        if number and line.strip() and start not in held:
            line = indent + style.unit * depth + line.lstrip(" \t")
        lines.append(line)
        start = end
    return style.newline.join(lines)


def _steps(node: Node) -> Iterable[tuple[int, int]]:
    """Where the depth changes, and by how much: after each opener, and at each closer."""
    todo = [node]
    while todo:
        found = todo.pop()
        if found.opener:
            yield found.start + 1, 1
            yield found.end - 1, -1
            todo += [member.node for member in found.members]


def line_indent(text: str, position: int) -> str:
    """The blanks at the beginning of the line of this place."""
    line = text[_line_start(text, position) : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _line_start(text: str, position: int) -> int:
    return max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1


def _is_first_of_its_line(text: str, position: int) -> bool:
    return not text[_line_start(text, position) : position].strip(" \t\ufeff")


# --- taking out


def without_member(text: str, node: Node, member: NodeMember) -> str:
    """The text without a member of an object or a list, and without the comma that it leaves over."""
    for start, end in sorted(_removed(text, node.members, member), reverse=True):
        text = text[:start] + text[end:]
    return text


def _removed(text: str, members: Sequence[NodeMember], member: NodeMember) -> list[tuple[int, int]]:
    """The places to take out: the member, one comma, and what would be left of their lines."""
    number = members.index(member)
    end = member.node.end
    places: list[tuple[int, int]] = []
    if member.comma is not None:
        if not text[end : member.comma].strip():
            end = member.comma + 1
        else:
            places.append((member.comma, member.comma + 1))
    elif number:
        comma = members[number - 1].comma
        assert comma is not None
        places.append((comma, comma + 1))
    return [*places, _with_its_blanks(text, member.start, end)]


def _with_its_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """A place with its whole lines, if nothing else stands there; otherwise with the blanks on one side of it."""
    after = end + len(text[end:]) - len(text[end:].lstrip(" \t"))
    line_end = LINE_END.match(text, after)
    if _is_first_of_its_line(text, start) and line_end:
        return _line_start(text, start), line_end.end()
    if line_end or text[after : after + 1] in ("}", "]"):
        before = len(text[:start].rstrip(" \t"))
        return (before, end) if text[before - 1 : before] == "," else (start, end)
    return start, after
