"""Who may use a console: links that work once, and the sessions that they open. Pure: the time is handed in.

A link has a token in its fragment, which no browser sends to a server. The page posts the token once and gets the key
of a session. Only digests of tokens and keys are kept. A remembered browser gets a session without a link.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.errors import TooManyRequestsError
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["PageSession", "VisitorBook"]


@dataclass(slots=True, eq=False)
class PageSession:
    """One tab of a browser."""

    name: str
    """The name under which this page decides. The tabs of a remembered browser share it."""
    device: str | None = None
    """The id of the browser, if it is remembered."""
    streams: int = 0
    followed_until: float = float("-inf")
    is_over: bool = False

    def is_in_use(self, now: float) -> bool:
        """Whether somebody may look at this page: it follows the events, by itself or through another tab."""
        return self.streams > 0 or now < self.followed_until


class VisitorBook:
    """Tokens that work once, and sessions."""

    def __init__(self) -> None:
        self._tokens: BoundedDict[bytes, None] = BoundedDict(CONSOLE_LIMITS.links)
        self._sessions: OrderedDict[bytes, PageSession] = OrderedDict()

    @property
    def sessions(self) -> tuple[PageSession, ...]:
        """The open sessions. The one that was silent longest comes first."""
        return tuple(self._sessions.values())

    def new_token(self, now: float) -> str:
        """A token for one link."""
        token = secrets.token_urlsafe(24)
        self._tokens.put(_digest(token), None, now)
        return token

    def discard(self, token: str) -> None:
        """Make a token useless."""
        self._tokens.pop(_digest(token))

    def redeem(self, token: str, session: Callable[[], PageSession], now: float) -> tuple[str, PageSession] | None:
        """A key and the session that `session` makes; `None` if the token is unknown, used, or too old.

        Raises `TooManyRequestsError` if every session is in use. The token then still works later.
        """
        # The digest is looked up: the time that this takes tells nothing about a token.
        digest = _digest(token)
        self._tokens.forget_before(now - CONSOLE_LIMITS.link_seconds)
        if digest not in self._tokens:
            return None
        self._make_room(now)
        self._tokens.pop(digest)
        return self.admit(session(), now)

    def admit(self, session: PageSession, now: float) -> tuple[str, PageSession]:
        """Open a session without a token. Returns its key and the session.

        Raises `TooManyRequestsError` if every session is in use.
        """
        self._make_room(now)
        key = secrets.token_urlsafe(32)
        self._sessions[_digest(key)] = session
        return key, session

    def find(self, key: str) -> PageSession | None:
        """The session with this key. It counts as heard now."""
        digest = _digest(key)
        if (session := self._sessions.get(digest)) is not None:
            self._sessions.move_to_end(digest)
        return session

    def end(self, *sessions: PageSession) -> None:
        """End these sessions: their keys no longer work."""
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
            # A page whose stream was cut comes back soon.
            session.followed_until = max(session.followed_until, clock() + 15.0)

    def _make_room(self, now: float) -> None:
        if len(self._sessions) < CONSOLE_LIMITS.sessions:
            return
        silent = next((digest for digest, session in self._sessions.items() if not session.is_in_use(now)), None)
        if silent is None:
            raise TooManyRequestsError(
                f"{CONSOLE_LIMITS.sessions} pages follow this computer already; close one, and try again"
            )
        self._sessions.pop(silent).is_over = True


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
