"""Makes texts of strangers safe to look at: one table of invisible characters, and how they are shown. Pure.

Agents, MCP servers and files choose these texts. A character that shows as nothing, controls the terminal, or changes
the direction of its neighbours is written as an escape, as in JSON.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

__all__ = [
    "MAX_QUOTED",
    "as_one_line",
    "cut",
    "first_invisible_character",
    "harmless",
    "has_control_characters",
    "in_log",
    "on_one_line",
    "printable",
    "quoted",
    "req_id_in_log",
    "visible",
    "well_formed",
    "words",
]

#: How many characters of a peer's text a log line or an error message may quote.
MAX_QUOTED: Final = 2000

# Unicode's categories Cc (except tabs and line breaks), Cf, Cs, Zl and Zp, and other characters that show as nothing:
# fillers, variation selectors, the braille blank, and reserved code points (Unicode's Default_Ignorable_Code_Point). A
# test compares this with the tables of the Python that runs it. The two selectors that choose how an emoji is drawn are
# visible after a symbol.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u115f-\u1160"
    "\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d159"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "(?<![\xa9\xae\u203c\u2049\u2100-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff][\ufe0e\ufe0f])"
)
# C0 and C1 controls, DEL, the two Unicode line breaks, and surrogates, which no UTF-8 can carry.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_JOINERS: Final = "\u200c\u200d"


# --- shown to people


def visible(text: str) -> str:
    """The text with an escape, as in JSON, for every character that a person would not see. A JSON text keeps its
    meaning.
    """
    return _HIDDEN.sub(_escape, text)


def words(text: str, most: int = 100) -> list[str]:
    """The text in parts: every second part is an escape, so that a page can tell it from a typed backslash. After
    `most` escapes the rest is one part.
    """
    parts: list[str] = []
    end = 0
    for number, hidden in enumerate(_HIDDEN.finditer(text)):
        if number == most:
            return [*parts, text[end : hidden.start()], visible(text[hidden.start() :]), ""]
        parts += [text[end : hidden.start()], _escape(hidden)]
        end = hidden.end()
    return [*parts, text[end:]]


def _escape(hidden: re.Match[str]) -> str:
    return _escaped(hidden[0])


@lru_cache(maxsize=4096)
def _escaped(characters: str) -> str:
    return json.dumps(characters)[1:-1]


def harmless(text: str) -> str:
    """A text of several lines for a terminal: `visible`, but line breaks stay."""
    return visible(text.replace("\r\n", "\n"))


def printable(text: str) -> str:
    """A text for a terminal that stays on one line."""
    return visible(text).replace("\n", "\\n")


def quoted(text: str) -> str:
    """A text that others wrote: indented, and cut after 4,000 characters."""
    if len(text) > 4000:
        text = f"{text[:4000]}… ({len(text)} characters)"
    return "\n".join(f"  {line}" for line in text.split("\n"))


def cut(text: str, most: int = MAX_QUOTED) -> str:
    """A peer's text for a log line or an error message. A text over the limit is cut, with a mark."""
    return text if len(text) <= most else text[:most] + "…"


def in_log(value: object) -> str:
    """A peer's value for a log line: short, and without line breaks."""
    # Check before printing: a list may be nested deeper than Python can print.
    plain = value is None or isinstance(value, str | int | float)
    text = cut(str(value), 100) if plain else f"a {type(value).__name__}"
    return repr(text) if has_control_characters(text) or first_invisible_character(text) else text


def as_one_line(text: str) -> str:
    """The words of a text with one blank between them."""
    return " ".join(text.split())


def on_one_line(error: object) -> str:
    """An error for a log line: its message may contain a peer's text."""
    return cut(printable(cut(str(error))))


def req_id_in_log(payload: object) -> str:
    """The `req_id` for the log, if the request has one."""
    return in_log(payload.get("req_id") if isinstance(payload, Mapping) else None)


# --- kept out of names and messages


def has_control_characters(text: str) -> bool:
    """Whether a text has a character that breaks lines or terminals, or cannot be sent at all."""
    return _CONTROL.search(text) is not None


def first_invisible_character(text: str) -> str | None:
    """The first character that shows as nothing or changes the direction of others, if there is one.

    U+200C and U+200D are part of how some languages and emoji are written: they are allowed between visible characters.
    """
    for at, character in enumerate(text):
        if not _is_invisible(character):
            continue
        around = (text[at - 1 : at], text[at + 1 : at + 2])
        if character in _JOINERS and all(side and not side.isspace() and not _is_invisible(side) for side in around):
            continue
        return character
    return None


def _is_invisible(character: str) -> bool:
    return _HIDDEN.match(character) is not None and not has_control_characters(character)


def well_formed(text: str) -> str:
    """The text with U+FFFD for lone surrogates. They come from broken files, and would end a connection."""
    return _SURROGATES.sub("\ufffd", text)
