"""What happens on a connection, as the two ends of it say. Pure.

The ends return these, and the shells pass them on. A `Said` is made for every message, so none of them is frozen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from a2c_smcp.engine.packets import Greeting

__all__ = [
    "CLIENT_DISCONNECT",
    "FELL_BEHIND",
    "PING_TIMEOUT",
    "SERVER_DISCONNECT",
    "TOO_LARGE",
    "TRANSPORT_CLOSE",
    "TRANSPORT_ERROR",
    "UNREADABLE",
    "AckCame",
    "BadPacket",
    "EngineEvent",
    "Greeted",
    "Knocked",
    "LetIn",
    "Said",
    "SaidGoodbye",
    "SessionEnded",
    "TurnedAway",
]

# Why a session ended: the words of Engine.IO, and ours.
CLIENT_DISCONNECT: Final = "client disconnect"
SERVER_DISCONNECT: Final = "server disconnect"
TRANSPORT_CLOSE: Final = "transport close"
TRANSPORT_ERROR: Final = "transport error"
PING_TIMEOUT: Final = "ping timeout"
FELL_BEHIND: Final = "fell behind"
TOO_LARGE: Final = "message too large"
#: What the peer did, if it has closed its websocket because of what we sent.
UNREADABLE: Final = "it cannot receive a message as large as the last one"


@dataclass(slots=True)
class Greeted:
    """The server has opened the session."""

    greeting: Greeting


@dataclass(slots=True)
class SessionEnded:
    """The session has ended, and nothing more is said about its namespaces."""

    reason: str
    why: str = ""
    """What the peer did, if that was the reason."""


@dataclass(slots=True)
class BadPacket:
    """A packet that is not one. It was dropped; the session goes on."""

    why: str
    number: int
    """How many there were in this session."""


@dataclass(slots=True)
class Knocked:
    """A client asks to be let into a namespace: `let_in` or `turn_away` is next."""

    namespace: str
    data: Mapping[str, Any] | None


@dataclass(slots=True)
class LetIn:
    """The server has let this client into a namespace."""

    namespace: str
    data: Mapping[str, Any] | None


@dataclass(slots=True)
class TurnedAway:
    """The server has not let this client into a namespace."""

    namespace: str
    data: Any


@dataclass(slots=True)
class SaidGoodbye:
    """The peer has left a namespace, or ended it for this end. The session goes on."""

    namespace: str


@dataclass(slots=True)
class Said:
    """An event. With an ack id, it is to be answered by `answer`."""

    namespace: str
    ack_id: int | None
    body: str
    """JSON: an array, if the peer keeps to the protocol. It is not decoded."""
    binary: bool = False
    """Whether it had attachments. They are dropped, so the event cannot be served."""


@dataclass(slots=True)
class AckCame:
    """An ack of what this end asked with `ask`."""

    waiter: Any
    """What was handed to `ask`."""
    body: str
    binary: bool = False


EngineEvent: TypeAlias = (
    Said | AckCame | Knocked | SaidGoodbye | BadPacket | SessionEnded | LetIn | TurnedAway | Greeted
)
