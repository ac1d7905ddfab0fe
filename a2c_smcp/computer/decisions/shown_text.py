"""What others wrote, as a person is shown it before they decide: nothing hidden, and nothing cut without saying so.

Pure. Agents, MCP servers and files choose these texts; which characters of them nobody sees is in `utils/text.py`.
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

#: What stands in the place of a value that nests without end.
TOO_DEEP: Final = "(nested too deeply to be shown)"
#: How many rows the arguments of a call are taken apart into; more than that are shown as JSON.
_MOST_ROWS: Final = 200
_DEEPEST: Final = 8
#: Scripts that are written together in one word, as Japanese does, and beside Latin letters everywhere.
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
    """The same of so many characters of JSON, and whether there are more. What is not shown costs nothing."""
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
    """One argument, or one part of a nested one: where it is, and its value as text with real line breaks."""

    name: str
    """A path, such as `to[0].address`."""
    text: str
    is_text: bool
    """Whether the value is a text, and not the JSON of something else."""


def argument_rows(arguments: Mapping[str, Any]) -> list[ArgumentRow]:
    """The whole call, a row for each value. What has too many parts for that is shown as JSON, in full."""
    rows = list(islice(_rows_of("", arguments, 0), _MOST_ROWS + 1))
    if len(rows) > _MOST_ROWS:
        items = iter(arguments.items())
        rows = [_row(_child("", name), value) for name, value in islice(items, _MOST_ROWS)]
        rest = dict(items)
        rows += [ArgumentRow("…", _laid_out(rest), is_text=False)] if rest else []
    return rows


def _rows_of(path: str, value: Any, depth: int) -> Iterator[ArgumentRow]:
    if depth < _DEEPEST and isinstance(value, Mapping) and (value or not depth):
        for name, inner in value.items():
            yield from _rows_of(_child(path, str(name)), inner, depth + 1)
    elif depth < _DEEPEST and isinstance(value, list | tuple) and len(value) <= _MOST_ROWS and _is_complex(value):
        for index, inner in enumerate(value):
            yield from _rows_of(f"{path}[{index}]", inner, depth + 1)
    else:
        yield _row(path, value)


def _is_complex(value: Iterable[Any]) -> bool:
    """Whether something in it is hard to read on one line; what is long is judged by its beginning."""
    return any(map(_wants_rows, islice(value, _MOST_ROWS)))


def _wants_rows(value: Any) -> bool:
    """Whether it would be hard to read inside the JSON of a list: an object, or a text with several lines."""
    return (isinstance(value, Mapping | list | tuple) and bool(value)) or (isinstance(value, str) and "\n" in value)


def _row(name: str, value: Any) -> ArgumentRow:
    if isinstance(value, str):
        return ArgumentRow(name, value, is_text=True)
    flat = not isinstance(value, Mapping | list | tuple) or not _is_complex(value)
    return ArgumentRow(name, _json(value, None) if flat else _laid_out(value), is_text=False)


def _laid_out(value: Any) -> str:
    text = _json(value, None)
    # Characters of JSON that is laid out over several lines; Python takes seconds for megabytes of it.
    return text if len(text) > 100_000 else _json(value)


def _child(path: str, name: str) -> str:
    if re.fullmatch(r"[\w-]+", name):
        return f"{path}.{name}" if path else name
    return f"{path}[{json.dumps(name, ensure_ascii=False)}]"


# --- names


def has_mixed_scripts(name: str) -> bool:
    """Whether letters of several scripts stand in one name, as in a Latin word with a Cyrillic `а`."""
    scripts = {unicodedata.name(letter, "UNKNOWN").split()[0] for letter in name if letter.isalpha()}
    return len(scripts - _EAST_ASIAN) > 1


def asks_for_secret(*texts: str | None) -> bool:
    """Whether words like these ask a person for a password."""
    return any(text is not None and _SECRET.search(text) is not None for text in texts)
