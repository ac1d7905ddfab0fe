"""How the names of secrets look: of variables, headers, keys of a config, and arguments. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["ARGUMENT_LIKE_A_SECRET", "NAMED_LIKE_A_SECRET", "holds_secret"]

_CERTAIN: Final = (
    r"api[_-]?key|authorization|bearer|cookie|credential|jwt|passphrase|passw(?:or)?d|private[_-]?key|pwd|secret"
    r"|token(?!s)"
)
#: Of a variable, a header, or a key of a config. `key` alone is a secret there, and so is everything with `auth`.
NAMED_LIKE_A_SECRET: Final = re.compile(
    rf"{_CERTAIN}|auth|key|pat$|pin$|private|session|signature|token", re.IGNORECASE
)
#: Of an argument of a tool. There `key` may be one of a piano, and `author` wrote a book.
ARGUMENT_LIKE_A_SECRET: Final = re.compile(_CERTAIN, re.IGNORECASE)


def holds_secret(name: str, value: Any) -> bool:
    """Whether an argument is named like a secret, or a field inside its value is. A flag is no secret."""
    if isinstance(value, bool | None):
        return False
    if ARGUMENT_LIKE_A_SECRET.search(name):
        return True
    if isinstance(value, Mapping):
        return any(holds_secret(str(key), child) for key, child in value.items())
    return isinstance(value, list | tuple) and any(holds_secret("", child) for child in value)
