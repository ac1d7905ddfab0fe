"""Who holds the connections of a web server: strangers, who have a fixed number of places, and those who have shown a
key. Pure.

When there are too many strangers, some go: the oldest of those that keep us waiting, or that ask again before they are
answered. So nobody who asks at once is kept out by others who only hold connections, however many they are.
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
        """Whether it is the peer's turn: to send a request, the rest of one, or to read an answer."""

    def vouch(self, known: bool) -> None:
        """Say whether the peer has shown a key with its latest request."""


class ConnectionPlaces:
    """Counts connections. Of those that are known there may be `known`; one more keeps the place of a stranger.

    More than `strangers` may come at a time, four times as many at most: what they send must be read before anybody can
    say who of them keeps us waiting.
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
        """Give a place to a new connection; whether there was one."""
        # How many times the strangers that may stay may come in one go.
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
        """Count a connection among those that are known, or no longer."""
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
    """Say of an ASGI request whether it has shown a key. Does nothing where the web server is not ours."""
    holder = (scope.get("extensions") or {}).get(_EXTENSION)
    if holder is not None:
        holder.vouch(known)
