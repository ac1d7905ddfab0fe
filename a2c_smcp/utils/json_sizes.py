"""How large a JSON value is, how deep it nests, and how it is cut to a size. Pure.

Peers choose the values. So no function takes longer than the value is large, and every limit ends the work at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from a2c_smcp.utils.text import cut
from a2c_smcp.wire import codec

__all__ = [
    "CUT_MARK",
    "Budget",
    "cut_into",
    "cut_value",
    "flat_weight",
    "has_more_values",
    "is_deeper",
    "json_or_none",
    "nests_deeper",
    "weight",
    "weight_of_json",
]

#: The mark in the place of something that was cut.
CUT_MARK: Final = "…"
_SCALARS: Final = frozenset({int, float, bool})
_CONTAINERS: Final = frozenset({dict, list})
#: A value that is cut keeps this many levels.
_DEEPEST: Final = 64
#: About how many bytes Python needs for any value, for an object, and for a field of an object with its name.
_VALUE: Final = 48
_OBJECT: Final = 184
_FIELD: Final = 80

# --- how many bytes


def weight(value: Any, most: int) -> int:
    """About how many bytes a JSON value needs in memory. Above `most` the number is not exact."""
    total, waiting = 0, [value]
    while waiting and total <= most:
        item = waiting.pop()
        total += _VALUE
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, dict):
            total += _FIELD * len(item)
            if total <= most:
                total += sum([len(key) for key in item if isinstance(key, str)])
                waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            total += 8 * len(item)
            if total <= most:
                waiting.extend(item)
    return total


def weight_of_json(text: bytes) -> int:
    """The same by the JSON text of a value, which is much faster. Characters inside texts may count too high."""
    objects, lists, fields = text.count(b"{"), text.count(b"["), text.count(b":")
    return len(text) + _OBJECT * objects + _FIELD * fields + _VALUE * (lists + text.count(b","))


def flat_weight(value: Mapping[str, Any]) -> int | None:
    """The same for an object that holds neither objects nor lists; `None` for others. It runs for every call, so a
    small object must cost almost nothing.
    """
    total = 0
    for name, item in value.items():
        total += _FIELD + _VALUE + len(name)
        if type(item) is str:
            total += len(item)
        elif item is not None and type(item) not in _SCALARS:
            return None
    return total


def json_or_none(value: Any) -> str | None:
    """The value as JSON; `None` if it nests too deeply, or holds objects that are not JSON."""
    try:
        return codec.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return None


# --- how many values, how deep


def has_more_values(text: str, most: int) -> bool:
    """Whether a JSON text has more values than this, without decoding it.

    Each value but the outermost follows a comma, or is the first of its list or object. Counting these characters takes
    a millisecond per megabyte, but includes those inside texts. Only if that count is too high, texts are skipped.
    """
    if len(text) < 2 * most:
        return False
    return sum(map(text.count, ",[{")) >= most and _more_than(most).match(text) is not None


@lru_cache(maxsize=8)
def _more_than(most: int) -> re.Pattern[str]:
    # Nothing here is tried twice: each repeat is possessive.
    text = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
    return re.compile(rf'(?:[^"\[{{,]*+(?:{text}[^"\[{{,]*+)*+[,\[{{]){{{most}}}+', re.DOTALL)


def nests_deeper(text: str, values: list[Any], most: int) -> bool:
    """Whether one of the values, which were read from this JSON text, has more than this many levels."""
    # Counting brackets is far cheaper than walking, and most messages have fewer than the limit.
    return _has_more_than(most, text) and any(is_deeper(value, most) for value in values)


def _has_more_than(most: int, text: str) -> bool:
    """Whether a text has more opening brackets than this. Counting all of them takes thirty times as long."""
    left = most
    for bracket in "[{":
        at = text.find(bracket)
        while at >= 0:
            left -= 1
            if left < 0:
                return True
            at = text.find(bracket, at + 1)
    return False


def is_deeper(value: Any, most: int) -> bool:
    """Whether a value that was read from JSON has more than this many levels of lists and objects."""
    level = [value] if type(value) in _CONTAINERS else []
    depth = 0
    while level:
        depth += 1
        if depth > most:
            return True
        level = [
            child
            for container in level
            for child in (container.values() if type(container) is dict else container)
            if type(child) in _CONTAINERS  # takes a third of the time of `isinstance`, and JSON has no subclasses
        ]
    return False


# --- cutting


@dataclass(slots=True)
class Budget:
    """The room for several values that are cut to fit."""

    left: int


def cut_value(value: Any, most: int) -> Any:
    """A copy of about `most` bytes, with marks where something is missing."""
    return cut_into(value, Budget(most))


def cut_into(value: Any, room: Budget, depth: int = 0) -> Any:
    """A copy of a JSON value that fits into the rest of the room, with marks where something is missing."""
    room.left -= _VALUE + 8
    if isinstance(value, str):
        kept = value[: max(0, room.left)]
        room.left -= len(kept)
        return value if len(kept) == len(value) else f"{kept}{CUT_MARK} ({len(value)} characters)"
    if not isinstance(value, Mapping | list | tuple):
        return value
    if room.left <= 0 or depth > _DEEPEST:
        return CUT_MARK
    if isinstance(value, Mapping):
        copy: dict[Any, Any] = {}
        for key, child in value.items():
            if room.left <= 0:
                copy[CUT_MARK] = f"{len(value) - len(copy)} more"
                break
            room.left -= _FIELD + len(str(key))
            copy[cut(str(key))] = cut_into(child, room, depth + 1)
        return copy
    items: list[Any] = []
    for child in value:
        if room.left <= 0:
            items.append(f"{CUT_MARK} ({len(value) - len(items)} more)")
            break
        items.append(cut_into(child, room, depth + 1))
    return items
