"""What a client may do before it has shown a key: one `Admission` for each server, one `Peer` for each connection.

The web server counts a connection before its first byte is read. The Engine.IO socket above it knows whether a key was
shown. The two share these values.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from a2c_smcp.server.limits import AddressLimit, Limits, Place
from a2c_smcp.server.wrong_keys import WrongKeys
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.loop_turns import SharedTurns

__all__ = ["Admission", "Peer", "peer_of", "put_peer"]

logger = logging.getLogger(__name__)

#: Where an ASGI scope has its `Peer`.
_EXTENSION: Final = "a2c_smcp.peer"


@dataclass(slots=True)
class Admission:
    """The limits for clients that are not admitted yet, and what is counted for them."""

    limits: Limits
    addresses: AddressLimit = field(init=False)
    wrong_keys: WrongKeys = field(init=False)
    address_log: LimitedLog = field(init=False)
    """Log lines about clients without a session, limited by address."""
    session_log: LimitedLog = field(init=False)
    """Log lines about sessions, limited by connection. More are allowed: a person may look for a `req_id` in them."""
    turns: SharedTurns = field(default_factory=SharedTurns)
    """The time of all connections without a key."""
    departures: SharedTurns = field(default_factory=SharedTurns)
    """The time in which connections end. Thousands of them may be lost at one moment."""

    def __post_init__(self) -> None:
        self.addresses = AddressLimit(self.limits.connections_per_address)
        self.wrong_keys = WrongKeys(self.limits.wrong_keys)
        self.address_log = LimitedLog(logger)
        self.session_log = LimitedLog(logger, per_second=20)

    def change(self, limits: Limits) -> None:
        """Obey these limits from now on."""
        self.limits = limits
        self.addresses.change(limits.connections_per_address)
        self.wrong_keys.change(limits.wrong_keys)


@dataclass(slots=True, eq=False)
class Peer:
    """The network connection under a request, if the web server is ours."""

    address: str
    trusted: bool
    """Whether this is a proxy that is trusted to name the address of its client."""
    place: Place | None
    known: bool = False
    """Whether this connection has carried a request of a client that has shown a key."""
    _counts: bool = True

    def take_back(self, place: Place) -> None:
        """Take the place of this connection back from a session that has ended."""
        if self._counts:
            self.place = place.give_back()
        else:
            place.leave()

    def welcome(self) -> None:
        """Note that this connection carries a client with a key, which is counted already."""
        self.known = True
        self.leave()

    def leave(self) -> None:
        """Stop counting this connection: it has ended, or its session is counted instead."""
        self._counts = False
        if self.place is not None:
            self.place.leave()


def put_peer(scope: Any, peer: Peer) -> None:
    scope.setdefault("extensions", {})[_EXTENSION] = peer


def peer_of(scope: Mapping[str, Any] | None) -> Peer | None:
    """The connection that an ASGI request came over; `None` if the web server is not ours."""
    peer = ((scope or {}).get("extensions") or {}).get(_EXTENSION)
    return peer if isinstance(peer, Peer) else None
