"""Names of keys, and what a terminal sends for them. Pure."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from a2c_smcp.errors import BadRequestError

__all__ = ["KEY_NAMES", "key_bytes", "text_bytes"]

_CURSOR: Final[Mapping[str, str]] = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_OTHERS: Final[Mapping[str, bytes]] = {
    "enter": b"\r",
    "tab": b"\t",
    "shift-tab": b"\x1b[Z",
    "escape": b"\x1b",
    "space": b" ",
    "backspace": b"\x7f",
    "delete": b"\x1b[3~",
    "insert": b"\x1b[2~",
    "page-up": b"\x1b[5~",
    "page-down": b"\x1b[6~",
    **{f"f{number}": f"\x1bO{letter}".encode() for number, letter in zip(range(1, 5), "PQRS", strict=True)},
    **{
        f"f{number}": f"\x1b[{code}~".encode()
        for number, code in zip(range(5, 13), (15, 17, 18, 19, 20, 21, 23, 24), strict=True)
    },
}
#: What may stand behind `ctrl-`, beside letters.
_CONTROLS: Final[Mapping[str, bytes]] = {
    "space": b"\0",
    "@": b"\0",
    "[": b"\x1b",
    "\\": b"\x1c",
    "]": b"\x1d",
    "_": b"\x1f",
}
KEY_NAMES: Final = (*_CURSOR, *_OTHERS, "ctrl-c", "ctrl-d", "alt-x")
_LETTER: Final = re.compile(r"[a-z]")


def key_bytes(names: Sequence[str], *, application_keys: bool = False) -> bytes:
    """What a terminal sends for these keys, such as `["ctrl-c", "up", "enter"]`. Raises `BadRequestError` for a name
    that is no key, with the names that are near.
    """
    return b"".join(_key(name.strip().lower(), name, application_keys) for name in names)


def text_bytes(text: str, *, pasted: bool = False) -> bytes:
    """What a terminal sends when a person types or pastes this text. A new line is the key Enter, as in every terminal.

    Escape sequences in the text would be keys that nobody named, so control characters other than tab and new line are
    refused with `BadRequestError`.
    """
    lines = text.replace("\r\n", "\n").replace("\n", "\r")
    if bad := re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]", lines):
        raise BadRequestError(f"the text holds the control character U+{ord(bad[0]):04X}: send keys for that")
    typed = lines.encode()
    return b"\x1b[200~" + typed + b"\x1b[201~" if pasted else typed


def _key(name: str, as_given: str, application_keys: bool) -> bytes:
    if name in _CURSOR:
        return f"\x1b{'O' if application_keys else '['}{_CURSOR[name]}".encode()
    if name in _OTHERS:
        return _OTHERS[name]
    modifier, _, key = name.partition("-")
    if modifier == "ctrl" and _LETTER.fullmatch(key):
        return bytes([ord(key) & 0x1F])
    if modifier == "ctrl" and key in _CONTROLS:
        return _CONTROLS[key]
    if modifier == "alt" and key:
        return b"\x1b" + (key.encode() if len(key) == 1 else _key(key, as_given, application_keys))
    near = difflib.get_close_matches(name, KEY_NAMES, 3)
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; keys are {', '.join(KEY_NAMES)}"
    raise BadRequestError(f"there is no key {as_given!r}{hint}")
