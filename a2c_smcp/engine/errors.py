"""What goes wrong at one end of a connection. Pure.

Exception
├── IllegalMoveError        our own mistake: nothing has changed
└── PeerError (ValueError)  the peer's mistake, in what it sent or asked for
    └── TooLargeError
"""

__all__ = ["IllegalMoveError", "PeerError", "TooLargeError"]


class IllegalMoveError(Exception):
    """This end may not do that now. Nothing has changed."""


class PeerError(ValueError):
    """The peer may not do that. A request of it is answered with status 400; a packet is a bad one."""


class TooLargeError(PeerError):
    """The peer sends more than it may."""

    def __init__(self, most: int) -> None:
        super().__init__(f"more than {most} bytes")
        self.most = most
