"""The mark by which our server tells a computer that the agent of a request speaks 0.4. Pure.

The server passes the text of a request on and does not decode it. So the mark is put into the text, by
`server.own_fields`. Computers of other releases ignore it.
"""

from typing import Final

__all__ = ["MARK", "MARK_FIELD", "is_marked"]

MARK_FIELD: Final = "a2c_dialect"
MARK: Final = "0.4"


def is_marked(request: object) -> bool:
    """Whether a request comes from an agent of 0.4 at a server of ours."""
    return isinstance(request, dict) and request.get(MARK_FIELD) == MARK
