"""The head of a `SKILL.md`: the part of YAML that such files use. Pure.

It reads plain and quoted texts, texts over several lines (`|`, `>`), lists in both forms, and one level of nesting.
Everything else is read as text. Unlike YAML, no short file can expand to a large value.
"""

import re
from typing import Any, Final

__all__ = ["LONGEST_HEAD", "split_front_matter"]

_FENCE: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_PAIR: Final = re.compile(r"""(["']?)([A-Za-z0-9_.-]{1,64})\1[ \t]*:(?:[ \t]+(.*))?$""")
#: A text in quotes, with a comment behind it or not.
_QUOTED: Final = re.compile(r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)')\s*(?:\s#.*)?\Z""", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t"}
#: Characters of a head that are read. What comes after them belongs to the body.
LONGEST_HEAD: Final = 64 * 1024


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The fields of the head, and the text after it. A file without a head has no fields."""
    found = _FENCE.match(text[:LONGEST_HEAD])
    return (_fields(found[1].splitlines()), text[found.end() :]) if found else ({}, text)


def _fields(lines: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    at = 0
    while at < len(lines):
        pair = _PAIR.match(lines[at])
        at += 1
        if pair is None:
            continue
        end = at
        while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t-"):
            end += 1
        fields[pair[2]] = _value((pair[3] or "").strip(), lines[at:end])
        at = end
    return fields


def _value(first: str, more: list[str]) -> Any:
    """The value of a key: `first` follows the key in its line, and `more` are the lines below that belong to it."""
    inside = [line.strip() for line in more if line.strip()]
    if first[:1] in ("|", ">"):
        return ("\n" if first[0] == "|" else " ").join(inside)
    if first:
        return _scalar(" ".join([first, *inside]))
    if inside and all(line.startswith("-") for line in inside):
        return [_text(line[1:].strip()) for line in inside]
    pairs = [_PAIR.match(line) for line in inside]
    if pairs and all(pairs):
        return {pair[2]: _text((pair[3] or "").strip()) for pair in pairs if pair}
    return " ".join(inside)


def _scalar(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_text(item.strip()) for item in text[1:-1].split(",") if item.strip()]
    return _text(text)


def _text(text: str) -> str:
    if (quoted := _QUOTED.match(text)) is None:
        return text.partition(" #")[0].rstrip()
    if quoted[1] is None:
        return quoted[2].replace("''", "'")
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), quoted[1])
