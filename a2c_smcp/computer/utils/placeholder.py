"""`${input:id}` and `${env:NAME}` in a text: where they stand. Knows neither configs nor values."""

import re
from typing import Final

__all__ = ["PLACEHOLDER", "holds_placeholder"]

#: Groups: the kind, `input` or `env`, and the name, which may hold anything but a closing brace.
PLACEHOLDER: Final = re.compile(r"\$\{(input|env):([^}]*)\}")


def holds_placeholder(value: object) -> bool:
    """Whether this is a text with a placeholder in it."""
    return isinstance(value, str) and PLACEHOLDER.search(value) is not None
