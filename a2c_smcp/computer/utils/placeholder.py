"""`${input:id}` in a text: where it stands. Knows neither configs nor what an input's value is."""

import re
from typing import Final

__all__ = ["PLACEHOLDER", "holds_placeholder"]

#: An id may hold anything but a closing brace.
PLACEHOLDER: Final = re.compile(r"\$\{input:([^}]*)\}")


def holds_placeholder(value: object) -> bool:
    """Whether this is a text with an `${input:id}` in it."""
    return isinstance(value, str) and PLACEHOLDER.search(value) is not None
