"""What somebody signs in with at one server, and whether a person has agreed to it. Pure.

A server names the issuer, the audience and the client of a sign-in by itself. A hostile server names those of an honest
one, and could use the token there. So a token is asked for only if all of them were configured or confirmed for this
server's address.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from a2c_smcp.errors import BadRequestError
from a2c_smcp.login.kept_login import KeptLogin
from a2c_smcp.utils.text import printable

__all__ = ["USUAL_SCOPES", "Combination", "GivenSignIn", "check_resource", "combined"]

#: What is needed to know the person and to renew the token. Everybody may ask an issuer for it.
USUAL_SCOPES: Final = ("openid", "profile", "email", "offline_access")
#: Characters of one text that a person is shown, and how many scopes.
_LONGEST: Final = 500
_MOST_SCOPES: Final = 50


@dataclass(frozen=True, slots=True)
class GivenSignIn:
    """What a person has configured with the options of `a2c login`; `None` for what they left to the server."""

    issuer: str | None = None
    audience: str | None = None
    client_id: str | None = None
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Combination:
    """What a sign-in at the server `url` is with, and what the token is for."""

    url: str
    issuer: str
    audience: str
    client_id: str | None
    """`None`: a new one that only this machine knows."""
    scopes: tuple[str, ...]
    open_options: tuple[str, ...]
    """The options for what only the server has named; with all of them nobody has to be asked."""

    def is_kept(self, kept: KeptLogin | None) -> bool:
        """Whether somebody has agreed to just this for this server before."""
        return (
            kept is not None
            and (kept.url, kept.issuer, kept.resource, kept.scope)
            == (self.url, self.issuer, self.audience, " ".join(self.scopes))
            and self.client_id in (None, kept.client_id)
        )

    def shown(self) -> str:
        """All of it, for a person who decides."""
        rows = {
            "server": self.url,
            "issuer": self.issuer,
            "audience": self.audience,
            "client id": self.client_id or "a new one, which the issuer gives to this machine",
            "scopes": " ".join(self.scopes) or "none",
        }
        lines = [f"  {name:10}{value}" for name, value in rows.items()]
        if not _may_ask_for(self.audience, self.url):
            lines.append("The audience is another address than the server's.")
        first = "This server wants a token of yours. It can use the token wherever this audience counts:"
        return "\n".join([first, *lines])

    def refusal(self) -> str:
        """Why nothing is done where nobody can be asked, and what to do."""
        options = " and ".join(self.open_options)
        return (
            f"{self.shown()}\nNobody has confirmed this for this server, and there is no terminal to ask at. If it is "
            f"what the people who run the server told you, say so with {options}"
        )


def combined(
    url: str, issuer: str, audience: str, client_id: str | None, scopes: Sequence[str], given: GivenSignIn
) -> Combination:
    """What the server at `url` names, with what is given. `scopes` is all that is asked for. Ask `check_resource` about
    the audience. Raises `BadRequestError` if the two do not fit, or if a person could not be shown it as it is.
    """
    texts = [issuer, audience, *([client_id] if client_id else []), *scopes]
    if len(scopes) > _MOST_SCOPES or any(len(each) > _LONGEST or printable(each) != each for each in texts):
        raise BadRequestError("what this server says about signing in is too long or has hidden characters in it")
    if given.issuer is not None and given.issuer.rstrip("/") != issuer.rstrip("/"):
        raise BadRequestError(f"this server takes tokens of {issuer}, not of {given.issuer}")
    asked = [each for each in scopes if each not in USUAL_SCOPES]
    if given.scopes and (more := [each for each in asked if each not in given.scopes]):
        raise BadRequestError(f"this server wants more scopes than you gave: {' '.join(more)}")
    is_open = {
        "--issuer": given.issuer is None,
        "--audience": given.audience is None,
        "--client-id": given.client_id is None and client_id is not None,
        "--scope": bool(asked) and not given.scopes,
    }
    missing = tuple(name for name, is_missing in is_open.items() if is_missing)
    return Combination(url, issuer, audience, given.client_id or client_id, tuple(scopes), missing)


def check_resource(resource: str, url: str, audience: str | None) -> None:
    """Raise `BadRequestError` if a server at `url` wants tokens for another server (RFC 9728, 3.3): it could use them
    there. If a person names the `audience`, the tokens must be for that one.
    """
    if audience is not None:
        if resource != audience:
            raise BadRequestError(f"this server wants tokens for {printable(resource)[:300]}, not for {audience}")
    elif not _may_ask_for(resource, url):
        raise BadRequestError(
            f"this server wants tokens for another server, {printable(resource)[:300]}, and could use them there; if"
            " you trust it with such tokens, give that name with --audience"
        )


def _may_ask_for(resource: str, url: str) -> bool:
    """Whether the resource is no web address, or one at the server's own origin."""
    place = _origin(resource)
    return place[0] not in ("http", "https") or place == _origin(url)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        raise BadRequestError("the server names a resource that is not a URL") from None
