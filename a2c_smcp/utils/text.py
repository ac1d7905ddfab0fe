"""What no name and no URI may hold, and what peers chose as a log line may have it."""

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["MAX_QUOTED", "cut", "has_control_characters", "in_log", "req_id_in_log"]

#: How many characters of what a peer wrote a log line or an error message may have.
MAX_QUOTED: Final = 2000

# C0 and C1 controls, DEL, the two Unicode line breaks, and surrogates, which no UTF-8 can carry.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def has_control_characters(text: str) -> bool:
    """Whether a text has a character that breaks lines or terminals, or cannot be sent at all."""
    return _CONTROL.search(text) is not None


def cut(text: str, most: int = MAX_QUOTED) -> str:
    """What a peer wrote, as a log line or an error message may have it: not longer than that, with a mark if it was."""
    return text if len(text) <= most else text[:most] + "…"


def in_log(value: object) -> str:
    """What a peer chose, as a log line may have it: short, and on that line."""
    text = cut(str(value), 100)
    return repr(text) if has_control_characters(text) else text


def req_id_in_log(payload: object) -> str:
    """The `req_id` of a request that may be none, for the log."""
    return in_log(payload.get("req_id") if isinstance(payload, Mapping) else None)
