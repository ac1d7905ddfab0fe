"""What is kept of a sign-in from one run to the next, and when its token is renewed. Pure.

mcp restores neither the expiry of a token nor the metadata of its issuer. Without them a refresh token would go to an
address that the MCP server chooses.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import msgspec

__all__ = ["KeptSignIn", "TokenUse"]

#: A token is renewed this many seconds before it expires, or in the last fifth of its life.
_AHEAD: Final = 60.0

TokenUse = Literal["use", "use and renew", "renew"]


@dataclass(frozen=True, slots=True)
class KeptSignIn:
    """A sign-in at one MCP server. The objects are as OAuth has them on the wire."""

    url: str
    """The URL of the MCP server. The tokens are for it and for nobody else."""
    issuer: str = ""
    """Who made the tokens. Only the issuer gets the refresh token."""
    tokens: dict[str, Any] | None = field(default=None, repr=False)
    expires_at: float | None = None
    """Unix time; `None` if the issuer did not say."""
    lifetime: float | None = None
    client: dict[str, Any] | None = field(default=None, repr=False)
    """The client that is registered at the issuer, perhaps with a secret."""
    issuer_metadata: dict[str, Any] | None = None
    resource_metadata: dict[str, Any] | None = None
    signed_in_at: float | None = None
    """Unix time of the sign-in that the tokens come from. A renewal does not change it: two tokens of one sign-in have
    the same rights.
    """
    version: Literal[1] = 1

    @classmethod
    def read(cls, content: bytes) -> "KeptSignIn":
        """From what `written` made. Raises `ValueError` for anything else."""
        return msgspec.json.decode(content, type=cls)

    def written(self) -> bytes:
        return msgspec.json.encode(self)

    @property
    def access_token(self) -> str | None:
        return None if self.tokens is None else self.tokens.get("access_token")

    @property
    def has_refresh_token(self) -> bool:
        return self.tokens is not None and bool(self.tokens.get("refresh_token")) and self.client is not None

    @property
    def secrets(self) -> list[str]:
        """Every text that must not be shown."""
        keys = ("access_token", "refresh_token", "id_token", "client_secret", "registration_access_token")
        parts = [part for part in (self.tokens, self.client) if part is not None]
        return [part[key] for part in parts for key in keys if isinstance(part.get(key), str)]

    def use(self, now: float) -> TokenUse:
        """What to do with the access token at this time. Without one, it is to be renewed."""
        if self.access_token is None:
            return "renew"
        if self.expires_at is None:
            return "use"
        if now >= self.expires_at:
            return "renew"
        ahead = _AHEAD if self.lifetime is None else min(_AHEAD, self.lifetime / 5)
        return "use and renew" if now >= self.expires_at - ahead and self.has_refresh_token else "use"

    def without_tokens(self) -> "KeptSignIn":
        """The client stays registered. The next sign-in uses it again."""
        return replace(self, tokens=None, expires_at=None, lifetime=None)
