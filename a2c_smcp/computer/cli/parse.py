"""What a person types after a command: words, options, and values as JSON, `@file` or `key=value`. Reads files."""

import json
import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final

from a2c_smcp.errors import BadRequestError

__all__ = ["json_value", "options", "split", "text_value", "values"]

_BLANK: Final = re.compile(r"\s*")
#: JSON needs no quotes of the shell's around it, alone or behind `key=`.
_JSON_AHEAD: Final = re.compile(r"""[^\s='"{\[]*=(?=[{\[])|(?=[{\[])""")
_WORD: Final = re.compile(r"""(?:[^\s'"\\]|'[^']*'|"(?:\\.|[^"\\])*"|\\.)+""", re.DOTALL)
_DECODER: Final = json.JSONDecoder()


def split(text: str) -> list[str]:
    """Words as a shell would split them, save that a JSON object or list is one word as it stands."""
    words: list[str] = []
    position = _end(_BLANK, text, 0)
    while position < len(text):
        if ahead := _JSON_AHEAD.match(text, position):
            end = _end_of_json(text, ahead.end())
            words.append(text[position:end])
        elif word := _WORD.match(text, position):
            end = word.end()
            words += shlex.split(word[0])
        else:
            raise BadRequestError("a quotation is not closed")
        position = _end(_BLANK, text, end)
        if position == end < len(text):
            raise BadRequestError(f"there is something right behind {words[-1]!r}: a blank is missing")
    return words


def options(words: Sequence[str], known: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """The words that are no options, and the options `--name value` or `--name=value` by name."""
    plain: list[str] = []
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            plain.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        if name not in known:
            raise BadRequestError(
                f"there is no option --{name}; " + (f"known: --{', --'.join(known)}" if known else "")
            )
        if not equals and (value := next(rest, "")) == "":
            raise BadRequestError(f"--{name} needs a value")
        found[name] = value
    return plain, found


def values(words: Sequence[str], texts: Collection[str] = ()) -> dict[str, Any]:
    """An object: one word of JSON, or `@file`, or any number of `key=value`.

    The value of a `key=value` is JSON if it can be, else text; always text for the keys in `texts`.
    """
    if len(words) == 1 and words[0].startswith(("{", "[", "@")):
        value = json_value(words[0])
        if not isinstance(value, dict):
            raise BadRequestError("must be a JSON object")
        return value
    return dict(_pair(word, texts) for word in words)


def json_value(word: str) -> Any:
    """What a word of JSON, or the JSON in `@file`, says."""
    text = _file(word[1:]) if word.startswith("@") else word
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRequestError(f"invalid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise BadRequestError("invalid JSON: nested too deeply") from None


def text_value(word: str) -> Any:
    """A value that is text unless it is plainly JSON; `@file` is what the file holds, without its last line break."""
    if word.startswith("@"):
        return _file(word[1:]).removesuffix("\n")
    return json_value(word) if word.startswith(("{", "[", '"')) else word


def _pair(word: str, texts: Collection[str]) -> tuple[str, Any]:
    key, equals, value = word.partition("=")
    if not key or not equals:
        raise BadRequestError(f"{word!r} is neither JSON, nor @file, nor key=value")
    if key in texts:
        return key, value
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


def _file(name: str) -> str:
    try:
        return Path(name).expanduser().read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadRequestError(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadRequestError(f"{name} cannot be read: it is not UTF-8 text") from None


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None
    return match.end()


def _end_of_json(text: str, start: int) -> int:
    try:
        return _DECODER.raw_decode(text, start)[1]
    except json.JSONDecodeError as error:
        raise BadRequestError(f"invalid JSON at column {error.pos + 1}: {error.msg}") from None
    except RecursionError:
        raise BadRequestError("invalid JSON: nested too deeply") from None
