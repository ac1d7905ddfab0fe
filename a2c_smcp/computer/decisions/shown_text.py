"""Shows a person what others wrote, before the person decides: every cut is marked. Pure.

Agents, MCP servers and files choose these texts. `utils/text.py` makes their invisible characters visible. A card hides
passwords and keys, because others may see the screen. Each has a mark of its own, so that two of them do not look
alike, and the person can have them shown. Nothing else is hidden: what could do something, such as a command in the
place of a password, is shown.
"""

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from a2c_smcp.utils.secret_shapes import (
    MASK,
    follows_secret_option,
    hidden,
    is_named_like_a_secret,
    named_value,
)
from a2c_smcp.utils.text import visible, words

__all__ = [
    "TOO_DEEP",
    "ArgumentRow",
    "argument_rows",
    "as_text",
    "card_text",
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
    is_secret: bool = False
    """Whether its name, or its place in a command line, says that it is a secret."""


def argument_rows(arguments: Mapping[str, Any]) -> list[ArgumentRow]:
    """All arguments of a call, with a row for each value. If there are too many, the rest is shown as JSON."""
    rows = list(islice(_rows_of("", arguments, 0, is_secret=False), _MOST_ROWS + 1))
    if len(rows) > _MOST_ROWS:
        items = iter(arguments.items())
        first = islice(items, _MOST_ROWS)
        rows = [_row(_child("", name), value, is_named_like_a_secret(name)) for name, value in first]
        rest = dict(items)
        rows += [ArgumentRow("…", _laid_out(rest), is_text=False)] if rest else []
    return rows


def _rows_of(path: str, value: Any, depth: int, *, is_secret: bool) -> Iterator[ArgumentRow]:
    is_shallow = depth < 8
    if is_shallow and isinstance(value, Mapping) and (value or not depth):
        named = named_value(value)
        for name, inner in value.items():
            secret = is_secret or name == named or is_named_like_a_secret(str(name))
            yield from _rows_of(_child(path, str(name)), inner, depth + 1, is_secret=secret)
    elif is_shallow and isinstance(value, list | tuple) and len(value) <= _MOST_ROWS and _is_complex(value):
        for index, inner in enumerate(value):
            secret = is_secret or follows_secret_option(value, index)
            yield from _rows_of(f"{path}[{index}]", inner, depth + 1, is_secret=secret)
    else:
        yield _row(path, value, is_secret)


def _is_complex(value: Iterable[Any]) -> bool:
    """Whether one of the first values would be hard to read on one line."""
    return any(map(_wants_rows, islice(value, _MOST_ROWS)))


def _wants_rows(value: Any) -> bool:
    """Whether a value is hard to read inside the JSON of a list: an object, a list, or a text with several lines."""
    return (isinstance(value, Mapping | list | tuple) and bool(value)) or (isinstance(value, str) and "\n" in value)


def _row(name: str, value: Any, is_secret: bool) -> ArgumentRow:
    if isinstance(value, str):
        return ArgumentRow(name, value, is_text=True, is_secret=is_secret)
    flat = not isinstance(value, Mapping | list | tuple) or not _is_complex(value)
    is_secret = is_secret and not isinstance(value, bool | None)
    return ArgumentRow(name, _json(value, None) if flat else _laid_out(value), is_text=False, is_secret=is_secret)


def _laid_out(value: Any) -> str:
    text = _json(value, None)
    # Python takes seconds to lay out megabytes of JSON over several lines.
    return text if len(text) > 100_000 else _json(value)


def _child(path: str, name: str) -> str:
    if re.fullmatch(r"[\w-]+", name):
        return f"{path}.{name}" if path else name
    return f"{path}[{json.dumps(name, ensure_ascii=False)}]"


# --- secrets on a card

#: Nobody who sees a card can try out which password has the mark on it.
_KEY: Final = os.urandom(16)
#: What can be nothing but a password or a key: a word that is no path and no address, or lines of base64.
_WORD: Final = re.compile(
    r"(?![/~.])(?!.*(?:\.\.|//))[A-Za-z0-9_+/=.~!#%^*-]{1,8000}"
    r"|(?:\s|\\n)*+(?:[A-Za-z0-9+/=]{16,80}+(?:\s|\\n)*+)++(?:[A-Za-z0-9+/=]{1,15}(?:\s|\\n)*+)?"
)
#: Longer texts are shown as they are: to look through megabytes takes seconds, and no password is sent like this.
_MOST_LOOKED_AT: Final = 200_000
_JSON_QUOTES: Final = re.compile(r'"(.*)"', re.DOTALL)


def card_text(row: ArgumentRow, text: str) -> str:
    """The text of a row, or its beginning, as a card shows it: passwords and keys are hidden."""
    if len(text) > _MOST_LOOKED_AT:
        return text
    if row.is_secret and text and (mark := _mark(_JSON_QUOTES.sub(r"\1", text))) is not None:
        return mark
    return hidden(text, _mark)


def _mark(secret: str) -> str | None:
    """Stands for a secret, and differs from those of others; `None` for what might be something else."""
    if not _WORD.fullmatch(secret):
        return None
    digest = hashlib.blake2b(secret.encode(), key=_KEY, digest_size=3).hexdigest()
    return f"{MASK} ({len(secret)} characters, #{digest})"


# --- names


def has_mixed_scripts(name: str) -> bool:
    """Whether a name has letters of several scripts, such as a Latin word with a Cyrillic `а`."""
    scripts = {unicodedata.name(letter, "UNKNOWN").split()[0] for letter in name if letter.isalpha()}
    return len(scripts - _EAST_ASIAN) > 1
