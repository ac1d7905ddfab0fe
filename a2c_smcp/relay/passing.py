"""Which errors pass by themselves: the one table that decides about every retry. Pure.

The class of an error decides. A subclass without a row of its own counts as its parent.
"""

from enum import Enum
from typing import Final

from a2c_smcp.errors import (
    ConnectionLostError,
    InternalError,
    NameTakenError,
    NotFoundError,
    NotInRoomError,
    RequestTimeoutError,
    RoomFullError,
    SMCPError,
    TooManyRequestsError,
    UncodedRefusalError,
)

__all__ = ["RETRY_SECONDS", "Passing", "passes", "passing_of"]


class Passing(Enum):
    """What has to happen before the same request can succeed."""

    SOON = "soon"
    """Only time must pass: a server comes back, an old session ends, a queue empties."""
    WITH_A_PEER = "with a peer"
    """Somebody comes into the office: the computer that was asked, or this client itself."""
    BY_A_PERSON = "by a person"
    """Somebody changes a key, a name, a certificate or the request itself."""


_TABLE: Final[dict[type[SMCPError], Passing]] = {
    ConnectionLostError: Passing.SOON,
    RequestTimeoutError: Passing.SOON,
    TooManyRequestsError: Passing.SOON,
    # A fault of the server passes: it may be about to stop, or wait for NATS.
    InternalError: Passing.SOON,
    # The server may not have noticed yet that the old session of this client has ended. A refusal without a code may
    # have the same cause.
    RoomFullError: Passing.SOON,
    NameTakenError: Passing.SOON,
    UncodedRefusalError: Passing.SOON,
    NotFoundError: Passing.WITH_A_PEER,
    NotInRoomError: Passing.WITH_A_PEER,
    SMCPError: Passing.BY_A_PERSON,
}

#: How many seconds to wait before the next attempt. Somebody who has corrected a key looks at once whether it works.
RETRY_SECONDS: Final[dict[Passing, float]] = {Passing.SOON: 1.0, Passing.WITH_A_PEER: 5.0, Passing.BY_A_PERSON: 1.5}


def passing_of(error: SMCPError) -> Passing:
    """What has to happen before an error is over."""
    return next(_TABLE[kind] for kind in type(error).__mro__ if kind in _TABLE)


def passes(error: SMCPError) -> bool:
    """Whether time alone may help."""
    return passing_of(error) is Passing.SOON
