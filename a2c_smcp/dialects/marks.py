"""The mark by which our server tells a computer that the agent of a request speaks 0.4. Pure.

The server passes the text of a request on and does not decode it. So the mark is put into the text. Computers of other
releases ignore it.
"""

from collections.abc import Mapping
from typing import Final

__all__ = ["is_marked", "marked"]

_FIELD: Final = "a2c_dialect"
_VALUE: Final = "0.4"
_MARK: Final = f'"{_FIELD}":"{_VALUE}",'


def marked(body: str) -> str:
    """The JSON of an accepted request, with the mark as the first field of its payload.

    The name of an event has no brace in it, and every request has fields: the first brace opens the payload.
    """
    payload = body.index("{") + 1
    return f"{body[:payload]}{_MARK}{body[payload:]}"


def is_marked(request: object) -> bool:
    """Whether a request comes from an agent of 0.4 at a server of ours."""
    return isinstance(request, Mapping) and request.get(_FIELD) == _VALUE
