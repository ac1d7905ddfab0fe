"""What no name and no URI may hold, and what peers chose as a log line may have it."""

import re
from collections.abc import Mapping

__all__ = ["has_control_characters", "in_log", "req_id_in_log"]

# C0 and C1 controls, DEL, the two Unicode line breaks, and surrogates, which no UTF-8 can carry.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def has_control_characters(text: str) -> bool:
    """Whether a text has a character that breaks lines or terminals, or cannot be sent at all."""
    return _CONTROL.search(text) is not None


def in_log(value: object) -> str:
    """What a peer chose, as a log line may have it: short, and on that line."""
    text = str(value)[:100]
    return repr(text) if has_control_characters(text) else text


def req_id_in_log(payload: object) -> str:
    """The `req_id` of a request that may be none, for the log."""
    return in_log(payload.get("req_id") if isinstance(payload, Mapping) else None)
