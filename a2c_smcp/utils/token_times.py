"""What a client reads in its own token: whether it is one, and when it is to be replaced. Pure; nothing is checked."""

import base64
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["looks_like_token", "renewal_pause", "token_claims"]

#: Characters of a token. Those with long lists of groups have a quarter of this.
_LONGEST: Final = 32 * 1024
_FORM: Final = re.compile(r"[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*")
#: The part of its life after which a token is replaced.
_USED: Final = 0.75
#: Seconds between two attempts to replace a token, at least.
_SHORTEST: Final = 1.0


def looks_like_token(text: str) -> bool:
    """Whether a text has the form of a signed token (RFC 7515, compact)."""
    return len(text) <= _LONGEST and _FORM.fullmatch(text) is not None


def token_claims(token: str) -> Mapping[str, Any]:
    """The claims of a token that nobody has checked; empty if there are none."""
    if not looks_like_token(token):
        return {}
    part = token.split(".")[1]
    try:
        value = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def renewal_pause(token: str | None, now: float) -> float | None:
    """After how many seconds to replace a token; `None` for one that has ended, and for a key, which has no end."""
    claims = token_claims(token or "")
    until, since = claims.get("exp"), claims.get("iat")
    if isinstance(until, bool) or not isinstance(until, int | float) or not math.isfinite(until):
        return None
    # A clock that is late must not make the token look longer-lived than it is.
    left = until - max(now, since if isinstance(since, int | float) and not isinstance(since, bool) else now)
    return max(left * _USED, _SHORTEST) if left > 0 else None
