"""Whose tokens a server takes: what clients are told about it (RFC 9728). Pure."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

__all__ = ["SIGN_IN_PATH", "SignIn"]

#: Where a server says whose tokens it takes (RFC 9728).
SIGN_IN_PATH: Final = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True, slots=True)
class SignIn:
    """Whose tokens a server takes: what clients are told, and what is checked."""

    issuer: str
    audiences: tuple[str, ...]
    """The names of this server in tokens. A token must have one of them; clients ask for the first one."""
    client_id: str | None = None
    """The id with which `a2c login` asks the issuer; `None` if it registers itself."""
    scopes: tuple[str, ...] = ()
    """What `a2c login` asks the issuer for, beside what it needs itself."""

    def metadata(self) -> dict[str, Any]:
        """What a client needs for a sign-in, as RFC 9728 has it."""
        return {
            "resource": self.audiences[0],
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
            **({"scopes_supported": list(self.scopes)} if self.scopes else {}),
            **({} if self.client_id is None else {"a2c_client_id": self.client_id}),
        }

    @property
    def metadata_url(self) -> str:
        """Where the metadata is, if the first audience is the URL of the server (RFC 9728, 3.1)."""
        parts = urlsplit(self.audiences[0])
        return f"{parts.scheme}://{parts.netloc}{SIGN_IN_PATH}{parts.path.rstrip('/')}"
