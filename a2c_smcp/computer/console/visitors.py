"""Who may use a console: links that work once, and the sessions that they open. Pure: the time is handed in.

A link carries a token in its fragment, which no browser sends to a server. The page posts it once, and gets the key of
a session. Of tokens and keys only digests are kept. A browser that is remembered gets a session without a link.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from a2c_smcp.errors import TooManyRequestsError
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["ALIVE_SECONDS", "LINK_SECONDS", "MAX_LINKS", "MAX_SESSIONS", "PageSession", "VisitorBook"]

#: How many links may be unused at a time: one more, and the oldest stops working.
MAX_LINKS: Final = 8
#: How many sessions there may be. One more ends the session that was silent longest, among those not in use.
MAX_SESSIONS: Final = 16
#: How long an unused link works, in seconds.
LINK_SECONDS: Final = 3600.0
#: How long a page that said that it follows is in use. It says so every 20 s; in the background a browser may let it
#: speak once a minute.
ALIVE_SECONDS: Final = 150.0
#: A page whose stream was cut is in use for so long: it comes back at once.
_BACK_SECONDS: Final = 15.0


@dataclass(slots=True, eq=False)
class PageSession:
    """One tab of a browser."""

    name: str
    """What people read where this page decided. Tabs of a browser that is remembered share a name."""
    device: str | None = None
    """The id of the browser, if it is remembered."""
    streams: int = 0
    followed_until: float = float("-inf")
    is_over: bool = False

    def is_in_use(self, now: float) -> bool:
        """Whether somebody may look at this page: it follows, by itself or through another tab."""
        return self.streams > 0 or now < self.followed_until


class VisitorBook:
    """Tokens that work once, and sessions."""

    def __init__(self) -> None:
        self._tokens: BoundedDict[bytes, None] = BoundedDict(MAX_LINKS)
        self._sessions: OrderedDict[bytes, PageSession] = OrderedDict()

    @property
    def sessions(self) -> tuple[PageSession, ...]:
        """The sessions that are open; the one that was silent longest comes first."""
        return tuple(self._sessions.values())

    def new_token(self, now: float) -> str:
        """A token for one link."""
        token = secrets.token_urlsafe(24)
        self._tokens.put(_digest(token), None, now)
        return token

    def discard(self, token: str) -> None:
        """Let a token work no more."""
        self._tokens.pop(_digest(token))

    def redeem(self, token: str, session: Callable[[], PageSession], now: float) -> tuple[str, PageSession] | None:
        """A session and its key; `None` if the token is unknown, was used, or is too old. `session` makes the session.

        Raises `TooManyRequestsError` if every session is in use; the token can be used later then.
        """
        # The digest is what is looked up: how long that takes says nothing about a token.
        digest = _digest(token)
        self._tokens.forget_before(now - LINK_SECONDS)
        if digest not in self._tokens:
            return None
        self._make_room(now)
        self._tokens.pop(digest)
        return self.admit(session(), now)

    def admit(self, session: PageSession, now: float) -> tuple[str, PageSession]:
        """Open a session without a token; returns its key, and the session.

        Raises `TooManyRequestsError` if every session is in use.
        """
        self._make_room(now)
        key = secrets.token_urlsafe(32)
        self._sessions[_digest(key)] = session
        return key, session

    def find(self, key: str) -> PageSession | None:
        """The session with this key. From now on it is the one that was heard last."""
        digest = _digest(key)
        if (session := self._sessions.get(digest)) is not None:
            self._sessions.move_to_end(digest)
        return session

    def end(self, *sessions: PageSession) -> None:
        """Forget these: their keys work no more."""
        for session in sessions:
            session.is_over = True
        self._sessions = OrderedDict(
            (digest, session) for digest, session in self._sessions.items() if session not in sessions
        )

    @contextmanager
    def following(self, session: PageSession, clock: Callable[[], float]) -> Iterator[None]:
        """The session has a stream while inside."""
        session.streams += 1
        try:
            yield
        finally:
            session.streams -= 1
            session.followed_until = max(session.followed_until, clock() + _BACK_SECONDS)

    def _make_room(self, now: float) -> None:
        if len(self._sessions) < MAX_SESSIONS:
            return
        silent = next((digest for digest, session in self._sessions.items() if not session.is_in_use(now)), None)
        if silent is None:
            raise TooManyRequestsError(f"{MAX_SESSIONS} pages follow this computer already; close one, and try again")
        self._sessions.pop(silent).is_over = True


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
