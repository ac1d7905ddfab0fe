"""What the other end of a connection may do. Times are in seconds. Pure."""

from dataclasses import dataclass

__all__ = ["EngineBounds"]


@dataclass(frozen=True, slots=True)
class EngineBounds:
    """The limits of one session."""

    max_message: int = 1_000_000
    """Bytes of one message, and of one POST."""
    first_messages: int | None = None
    """Bytes that these may have until `admit` is called; `None` for no difference."""
    queued_bytes: int = 64 * 1024 * 1024
    """Bytes that may wait for a peer that reads slowly."""
    ping_interval: float = 25.0
    ping_timeout: float = 20.0
    connect_timeout: float = 45.0
    """How long a session may be in no namespace."""
    poll_packets: int = 16
    """Packets that one poll returns. Older clients end the session if there are more."""
    post_packets: int = 4096
    """Packets that one POST may have. A polling client writes everything that it has in one POST."""
    bad_packets: int = 10
    """Packets that do not decode, after which a session is ended. 1 is what the protocol asks for."""
    other_characters: int = 100
    """Characters of an Engine.IO packet that is not a message. `2probe` is the longest that a client needs."""
    connect_characters: int = 16 * 1024
    """Characters of a Socket.IO packet that is neither an event nor an ack."""
    forgives_polls: bool = True
    """Whether a session goes on if its client gives up a poll, or sends a second one: the second takes the place of
    the first. The protocol ends the session then."""
