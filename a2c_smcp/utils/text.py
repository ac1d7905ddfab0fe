"""What no name and no URI may hold."""

import re

__all__ = ["has_control_characters"]

# C0 and C1 controls, DEL, the two Unicode line breaks, and surrogates, which no UTF-8 can carry.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def has_control_characters(text: str) -> bool:
    """Whether a text has a character that breaks lines or terminals, or cannot be sent at all."""
    return _CONTROL.search(text) is not None
