"""Shows a person what others wrote, before the person decides: nothing is hidden, and every cut is marked. Pure.

Agents, MCP servers and files choose these texts. `utils/text.py` makes their invisible characters visible.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from a2c_smcp.utils.text import visible, words

__all__ = [
    "TOO_DEEP",
    "ArgumentRow",
    "argument_rows",
    "as_text",
    "asks_for_secret",
    "has_mixed_scripts",
    "text_start",
    "visible",
    "words",
]

#: Shown instead of a value that nests too deeply.
TOO_DEEP: Final = "(nested too deeply to be shown)"
#: How many rows are shown for the arguments of a call. The rest is shown as JSON.
_MOST_ROWS: Final = 200
#: Scripts that may stand together in one word, as in Japanese, also with Latin letters.
_EAST_ASIAN: Final = frozenset(
    {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "KATAKANA-HIRAGANA", "IDEOGRAPHIC"}
)
_SECRET: Final = re.compile(
    r"pass(?:word|phrase|code|wd)|\bpin\b|secret|credential|\btoken\b|api[ _-]?key|private[ _-]?key"
    r"|密码|口令|密钥|密碼|パスワード",
    re.IGNORECASE,
)


def as_text(value: Any) -> str:
    """A JSON value as a person reads it: exact, indented, and with nothing hidden."""
    return visible(_json(value))


def text_start(value: Any, most: int) -> tuple[str, bool]:
    """`as_text` of the first `most` characters of JSON, and whether there are more. The rest costs no time."""
    parts: list[str] = []
    length = 0
    try:
        for part in json.JSONEncoder(indent=2, ensure_ascii=False, default=str).iterencode(value):
            parts.append(part)
            length += len(part)
            if length > most:
                break
    except RecursionError:
        return TOO_DEEP, False
    return visible("".join(parts)[:most]), length > most


def _json(value: Any, indent: int | None = 2) -> str:
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    except RecursionError:
        return TOO_DEEP


# --- the arguments of a call


@dataclass(frozen=True, slots=True)
class ArgumentRow:
    """One argument, or a part of a nested one. Its value is a text with real line breaks."""

    name: str
    """Where it stands, such as `to[0].address`."""
    text: str
    is_text: bool
    """Whether the value is a text itself, and not shown as JSON."""


def argument_rows(arguments: Mapping[str, Any]) -> list[ArgumentRow]:
    """All arguments of a call, with a row for each value. If there are too many, the rest is shown as JSON."""
    rows = list(islice(_rows_of("", arguments, 0), _MOST_ROWS + 1))
    if len(rows) > _MOST_ROWS:
        items = iter(arguments.items())
        rows = [_row(_child("", name), value) for name, value in islice(items, _MOST_ROWS)]
        rest = dict(items)
        rows += [ArgumentRow("…", _laid_out(rest), is_text=False)] if rest else []
    return rows


def _rows_of(path: str, value: Any, depth: int) -> Iterator[ArgumentRow]:
    is_shallow = depth < 8
    if is_shallow and isinstance(value, Mapping) and (value or not depth):
        for name, inner in value.items():
            yield from _rows_of(_child(path, str(name)), inner, depth + 1)
    elif is_shallow and isinstance(value, list | tuple) and len(value) <= _MOST_ROWS and _is_complex(value):
        for index, inner in enumerate(value):
            yield from _rows_of(f"{path}[{index}]", inner, depth + 1)
    else:
        yield _row(path, value)


def _is_complex(value: Iterable[Any]) -> bool:
    """Whether one of the first values would be hard to read on one line."""
    return any(map(_wants_rows, islice(value, _MOST_ROWS)))


def _wants_rows(value: Any) -> bool:
    """Whether a value is hard to read inside the JSON of a list: an object, a list, or a text with several lines."""
    return (isinstance(value, Mapping | list | tuple) and bool(value)) or (isinstance(value, str) and "\n" in value)


def _row(name: str, value: Any) -> ArgumentRow:
    if isinstance(value, str):
        return ArgumentRow(name, value, is_text=True)
    flat = not isinstance(value, Mapping | list | tuple) or not _is_complex(value)
    return ArgumentRow(name, _json(value, None) if flat else _laid_out(value), is_text=False)


def _laid_out(value: Any) -> str:
    text = _json(value, None)
    # Python takes seconds to lay out megabytes of JSON over several lines.
    return text if len(text) > 100_000 else _json(value)


def _child(path: str, name: str) -> str:
    if re.fullmatch(r"[\w-]+", name):
        return f"{path}.{name}" if path else name
    return f"{path}[{json.dumps(name, ensure_ascii=False)}]"


# --- names


def has_mixed_scripts(name: str) -> bool:
    """Whether a name has letters of several scripts, such as a Latin word with a Cyrillic `а`."""
    scripts = {unicodedata.name(letter, "UNKNOWN").split()[0] for letter in name if letter.isalpha()}
    return len(scripts - _EAST_ASIAN) > 1


def asks_for_secret(*texts: str | None) -> bool:
    """Whether one of these texts seems to ask the person for a password."""
    return any(text is not None and _SECRET.search(text) is not None for text in texts)
