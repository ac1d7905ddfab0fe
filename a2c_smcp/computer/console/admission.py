"""Who may use a console: links that work once, and the sessions that they open. Pure: the time is handed in.

A link carries a token in its fragment, which no browser sends to a server. The page posts it once, and gets the key of
a session. Of tokens and keys only digests are kept.
"""

import hashlib
import secrets
from collections import OrderedDict
from typing import Final

__all__ = ["MAX_LINKS", "MAX_SESSIONS", "VisitorBook"]

#: How many links may be unused at a time: one more, and the oldest stops working.
MAX_LINKS: Final = 8
#: How many browsers may be in: one more, and the one that was silent longest has to leave.
MAX_SESSIONS: Final = 16
#: How long an unused link works, in seconds.
LINK_SECONDS: Final = 3600.0


class VisitorBook:
    """Tokens that work once, and sessions."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[bytes, float] = OrderedDict()
        self._sessions: OrderedDict[bytes, None] = OrderedDict()

    def new_token(self, now: float) -> str:
        """A token for one link."""
        token = secrets.token_urlsafe(24)
        self._tokens[_digest(token)] = now + LINK_SECONDS
        while len(self._tokens) > MAX_LINKS:
            self._tokens.popitem(last=False)
        return token

    def redeem(self, token: str, now: float) -> str | None:
        """The key of a new session for a token that was not used yet; `None` for every other."""
        # The digest is what is looked up: how long that takes says nothing about a token.
        expires = self._tokens.pop(_digest(token), None)
        if expires is None or expires < now:
            return None
        key = secrets.token_urlsafe(32)
        self._sessions[_digest(key)] = None
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return key

    def knows(self, key: str) -> bool:
        """Whether this is the key of a session; if so, it was the last one to be heard."""
        digest = _digest(key)
        if digest not in self._sessions:
            return False
        self._sessions.move_to_end(digest)
        return True


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
