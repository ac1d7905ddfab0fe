"""Splits a line at the prompt into words and options. What the words mean is decided in `utils.values`."""

import json
import re
import shlex
from collections.abc import Collection, Sequence
from typing import Final

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.values import TOO_MANY_DIGITS

__all__ = ["options", "quote", "split"]

_BLANK: Final = re.compile(r"\s*")
#: JSON needs no quotes around it, as a word or after `key=`.
_JSON_AHEAD: Final = re.compile(r"""[^\s='"{\[]*=(?=[{\[])|(?=[{\[])""")
_WORD: Final = re.compile(r"""(?:[^\s'"\\]|'[^']*'|"(?:\\.|[^"\\])*"|\\.)+""", re.DOTALL)
#: After `key=`, a text that begins like JSON may be a plain text.
_PLAIN: Final = re.compile(r"""[^\s'"\\]+(?!\S)""")
_DECODER: Final = json.JSONDecoder()


def split(text: str) -> list[str]:
    """Words as a shell would split them, except that a JSON object or list is one word without quotes."""
    words: list[str] = []
    position = _end(_BLANK, text, 0)
    while position < len(text):
        if ahead := _JSON_AHEAD.match(text, position):
            plain = _PLAIN.match(text, position) if ahead[0] else None
            end = _end_of_json(text, ahead.end(), plain.end() if plain else None)
            words.append(text[position:end])
        elif word := _WORD.match(text, position):
            end = word.end()
            words += shlex.split(word[0])
        else:
            raise BadRequestError("a quotation mark has no partner")
        position = _end(_BLANK, text, end)
        if position == end < len(text):
            raise BadRequestError(f"a blank is missing after {words[-1]!r}")
    return words


def quote(word: str) -> str:
    """The word as a person types it: in quotes if `split` would change it."""
    try:
        return word if split(word) == [word] else shlex.quote(word)
    except BadRequestError:
        return shlex.quote(word)


def options(words: Sequence[str], known: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """The plain words, and the options (`--name value` or `--name=value`) by name."""
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
                f"there is no option --{name}" + (f"; known: --{', --'.join(known)}" if known else "")
            )
        if not equals and (value := next(rest, "")) == "":
            raise BadRequestError(f"--{name} needs a value")
        found[name] = value
    return plain, found


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None
    return match.end()


def _end_of_json(text: str, start: int, otherwise: int | None) -> int:
    """Where the JSON ends. If it is not JSON: `otherwise`, the end of a plain text, or `BadRequestError`."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except json.JSONDecodeError as error:
        if otherwise is not None:
            return otherwise
        raise BadRequestError(f"invalid JSON at column {error.pos + 1}: {error.msg}") from None
    except RecursionError:
        raise BadRequestError("invalid JSON: nested too deeply") from None
    except ValueError:
        raise BadRequestError(TOO_MANY_DIGITS) from None
