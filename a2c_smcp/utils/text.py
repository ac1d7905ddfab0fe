"""Characters that no name and no URI may have, and texts of peers made short and safe for a log line."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

__all__ = [
    "MAX_QUOTED",
    "cut",
    "first_invisible_character",
    "harmless",
    "has_control_characters",
    "in_log",
    "on_one_line",
    "printable",
    "req_id_in_log",
    "well_formed",
]

#: How many characters of what a peer wrote a log line or an error message may have.
MAX_QUOTED: Final = 2000

# C0 and C1 controls, DEL, the two Unicode line breaks, and surrogates, which no UTF-8 can carry.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_MOVES_THE_CURSOR = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_RULES_THE_TERMINAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")

# What shows as nothing and is not in the category of format characters: fillers, variation selectors, the braille
# blank, and code points that are reserved for more of the kind (Unicode's Default_Ignorable_Code_Point).
_SHOWS_NOTHING = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U0001d159\U000e0000-\U000e0fff]"
)
_JOINERS: Final = "\u200c\u200d"


def has_control_characters(text: str) -> bool:
    """Whether a text has a character that breaks lines or terminals, or cannot be sent at all."""
    return _CONTROL.search(text) is not None


def cut(text: str, most: int = MAX_QUOTED) -> str:
    """A text of a peer for a log line or an error message: if it is longer than the limit it is cut, with a mark."""
    return text if len(text) <= most else text[:most] + "…"


def printable(text: str) -> str:
    """A text that stays on its line and has no power over the terminal."""
    return _MOVES_THE_CURSOR.sub("\ufffd", text)


def harmless(text: str) -> str:
    """A text of several lines that has no power over the terminal."""
    return _RULES_THE_TERMINAL.sub("\ufffd", text.replace("\r\n", "\n"))


def first_invisible_character(text: str) -> str | None:
    """The first character that shows as nothing or changes the direction of others, if there is one.

    U+200C and U+200D are part of how some languages and emoji are written: they are fine between visible characters.
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
    return unicodedata.category(character) == "Cf" or _SHOWS_NOTHING.match(character) is not None


def in_log(value: object) -> str:
    """A value of a peer for a log line: short, and without line breaks."""
    # Looked at before it is printed: a list may be nested deeper than Python prints.
    plain = value is None or isinstance(value, str | int | float)
    text = cut(str(value), 100) if plain else f"a {type(value).__name__}"
    return repr(text) if has_control_characters(text) or first_invisible_character(text) else text


def on_one_line(error: object) -> str:
    """An error for a log line: what a peer wrote may be in its words."""
    return printable(cut(str(error)))


def req_id_in_log(payload: object) -> str:
    """The `req_id` of a request that may be none, for the log."""
    return in_log(payload.get("req_id") if isinstance(payload, Mapping) else None)


def well_formed(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which come out of broken files and would end a connection."""
    return _SURROGATES.sub("\ufffd", text)
