"""Who holds the connections of a web server: peers that have shown a key, and strangers. Pure.

Strangers have a fixed number of places. When there are too many strangers, some must go: the oldest of those that keep
us waiting, or that ask again before they are answered. So a stranger that sends its request at once is served, however
many others only hold connections.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, Protocol

__all__ = ["ConnectionPlaces", "PlaceHolder", "put_holder", "vouch"]

#: Where an ASGI scope has its connection.
_EXTENSION: Final = "a2c_smcp.connection"


class PlaceHolder(Protocol):
    """A connection."""

    @property
    def is_waited_for(self) -> bool:
        """Whether it is the peer's turn: to send a request or the rest of it, or to read an answer."""

    def vouch(self, known: bool) -> None:
        """Say whether the peer has shown a key with its latest request."""


class ConnectionPlaces:
    """Counts connections. `known` peers with a key have places of their own; further peers with a key keep the
    places of strangers.

    For a moment, four times as many as `strangers` may come: what they send must be read before we know which of them
    keep us waiting.
    """

    def __init__(self, strangers: int, known: int | None = None) -> None:
        self._most_strangers = strangers
        self._most_known = known
        self._strangers: dict[PlaceHolder, None] = {}
        self._known: set[PlaceHolder] = set()

    @property
    def taken(self) -> int:
        """How many connections have a place."""
        return len(self._strangers) + len(self._known)

    def come(self, holder: PlaceHolder) -> bool:
        """Give a place to a new connection. Returns `False` if there is no place."""
        if len(self._strangers) >= 4 * self._most_strangers:
            return False
        self._strangers[holder] = None
        return True

    @property
    def surplus(self) -> list[PlaceHolder]:
        """The connections that have to go now."""
        many = max(0, len(self._strangers) - self._most_strangers)
        return list(islice((each for each in self._strangers if each.is_waited_for), many))

    def vouch(self, holder: PlaceHolder, known: bool) -> None:
        """Count a connection among the peers with a key, or among the strangers again."""
        if known and holder in self._strangers and (self._most_known is None or len(self._known) < self._most_known):
            del self._strangers[holder]
            self._known.add(holder)
        elif not known and holder in self._known:
            self._known.discard(holder)
            self._strangers[holder] = None

    def leave(self, holder: PlaceHolder) -> None:
        """Forget a connection that has ended."""
        self._strangers.pop(holder, None)
        self._known.discard(holder)


def put_holder(scope: Any, holder: PlaceHolder) -> None:
    scope.setdefault("extensions", {})[_EXTENSION] = holder


def vouch(scope: Mapping[str, Any], known: bool) -> None:
    """Say whether an ASGI request has shown a key. Does nothing if the web server is not ours."""
    holder = (scope.get("extensions") or {}).get(_EXTENSION)
    if holder is not None:
        holder.vouch(known)
