"""Tokens of an issuer (OpenID Connect) as credentials, beside keys: what they allow, and for how long.

The libraries that check signatures are imported with the first checker: 10 MiB that a server with keys need not have.
"""

import hashlib
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

from a2c_smcp.errors import ForbiddenError, UnauthorizedError
from a2c_smcp.oidc.key_pacing import KEY_PACING, KeyPacing
from a2c_smcp.oidc.sign_in import SignIn
from a2c_smcp.oidc.token_rules import TokenRules
from a2c_smcp.server.auth import APIKeyAuthentication, Credentials, Key, SyncAPIKeyAuthentication
from a2c_smcp.server.offices import Grant
from a2c_smcp.utils.token_times import looks_like_token

__all__ = ["OidcAuthentication", "SyncOidcAuthentication"]

logger = logging.getLogger(__name__)

#: OpenID Connect allows no longer ones.
_LONGEST_SUBJECT: Final = 255


class _TokenDoor:
    """What both colours decide in the same way."""

    def __init__(self, sign_in: SignIn, rules: TokenRules | None, keys: Any) -> None:
        self.sign_in = sign_in
        self.rules = rules or TokenRules()
        self.keys = keys

    def _known_key(self, credentials: Credentials) -> Grant | None:
        if self.keys is None:
            return None
        try:
            grant: Grant = self.keys.grant(credentials)
        except UnauthorizedError:
            return None
        return grant

    def _token(self, credentials: Credentials) -> str:
        """The token that a client shows. Raises `UnauthorizedError`, which says where to sign in."""
        scheme, _, bearer = credentials.headers.get("authorization", "").partition(" ")
        shown = [credentials.token, bearer.strip() if scheme.lower() == "bearer" else None]
        found = next((each for each in shown if each and looks_like_token(each)), None)
        if found is None:
            known = any(shown) or any(name.endswith("key") for name in credentials.headers)
            said = "the key or token is not known here" if known else "no credentials"
            raise self.refusal(UnauthorizedError(f"{said}; sign in, for instance with a2c login"))
        return found

    def refusal(self, error: UnauthorizedError) -> UnauthorizedError:
        """The error with the issuer in it, for clients that can sign in."""
        return UnauthorizedError(error.message, {"issuer": self.sign_in.issuer, "audience": self.sign_in.audiences[0]})

    def regrant(self, claims: Mapping[str, Any], expires_at: float) -> Grant:
        """What somebody with these claims may do by the rules of now. Raises `ForbiddenError`."""
        allowed = self.rules.allowed(claims)
        about = "\0".join((str(claims["iss"]), str(claims["sub"])))
        fingerprint = hashlib.sha256(f"a2c token fingerprint {about}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return Grant(
            allowed.name,
            allowed.roles,
            allowed.offices,
            fingerprint,
            expires_at,
            claims,
            names=allowed.names,
            subject=self._subject(str(claims["sub"])),
        )

    def _subject(self, subject: str) -> str:
        """Whose token it is, as computers are told; empty if that would look like somebody else's key."""
        keys = () if self.keys is None else self.keys.grants()
        is_key = any(grant.key == subject for grant in keys)
        return "" if is_key or len(subject) > _LONGEST_SUBJECT else subject

    def current(self, grant: Grant) -> Grant | None:
        """What an earlier grant allows now; `None` if it does not count any more."""
        if grant.claims is None:
            found: Grant | None = None if self.keys is None else self.keys.current(grant)
            return found
        try:
            return self.regrant(grant.claims, grant.expires_at)
        except ForbiddenError:
            return None

    def revoke(self, fingerprints: Iterable[str]) -> None:
        """Accept the keys with these fingerprints no more. Who may come with a token is up to the rules."""
        if self.keys is not None:
            self.keys.revoke(fingerprints)


class OidcAuthentication(_TokenDoor):
    """Lets clients in that show a token of `issuer` for one of `audience`, or one of `keys`.

    The token comes in the `auth` payload or as `Authorization: Bearer …`. `rules` say what its claims allow. A session
    ends with its token, unless its client brings a new one with `server:authenticate`.
    """

    def __init__(
        self,
        issuer: str,
        audience: str | Iterable[str],
        *,
        rules: TokenRules | None = None,
        keys: "Iterable[Key | str] | APIKeyAuthentication" = (),
        client_id: str | None = None,
        scopes: Iterable[str] = (),
        pacing: KeyPacing = KEY_PACING,
    ) -> None:
        sign_in, ring = SignIn(issuer, _several(audience), client_id, tuple(scopes)), None
        if isinstance(keys, APIKeyAuthentication):
            ring = keys
        elif given := list(keys):
            ring = APIKeyAuthentication(given)
        super().__init__(sign_in, rules, ring)
        from a2c_smcp.oidc.checking import TokenChecker

        self.checker = TokenChecker(issuer, sign_in.audiences, leeway=self.rules.leeway, pacing=pacing)

    def use_rules(self, rules: TokenRules) -> None:
        """Apply these rules from now on. `Switchboard.check_grants` ends sessions that they do not allow."""
        self.rules = rules
        self.checker.change_leeway(rules.leeway)

    async def __aenter__(self) -> Self:
        await self.checker.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.checker.__aexit__()

    async def authenticate(self, credentials: Credentials) -> Grant:
        """Return what the token or the key allows, or raise `UnauthorizedError` or `ForbiddenError`."""
        if (known := self._known_key(credentials)) is not None:
            return known
        try:
            checked = await self.checker.check(self._token(credentials))
            return self.regrant(checked.claims, checked.expires_at)
        except UnauthorizedError as error:
            raise self.refusal(error) from None


class SyncOidcAuthentication(_TokenDoor):
    """`OidcAuthentication` for the threaded server."""

    def __init__(
        self,
        issuer: str,
        audience: str | Iterable[str],
        *,
        rules: TokenRules | None = None,
        keys: "Iterable[Key | str] | SyncAPIKeyAuthentication" = (),
        client_id: str | None = None,
        scopes: Iterable[str] = (),
        pacing: KeyPacing = KEY_PACING,
    ) -> None:
        sign_in, ring = SignIn(issuer, _several(audience), client_id, tuple(scopes)), None
        if isinstance(keys, SyncAPIKeyAuthentication):
            ring = keys
        elif given := list(keys):
            ring = SyncAPIKeyAuthentication(given)
        super().__init__(sign_in, rules, ring)
        from a2c_smcp.oidc.checking import SyncTokenChecker

        self.checker = SyncTokenChecker(issuer, sign_in.audiences, leeway=self.rules.leeway, pacing=pacing)

    def authenticate(self, credentials: Credentials) -> Grant:
        """Return what the token or the key allows, or raise `UnauthorizedError` or `ForbiddenError`."""
        if (known := self._known_key(credentials)) is not None:
            return known
        try:
            checked = self.checker.check(self._token(credentials))
            return self.regrant(checked.claims, checked.expires_at)
        except UnauthorizedError as error:
            raise self.refusal(error) from None


def _several(audience: str | Iterable[str]) -> tuple[str, ...]:
    return (audience,) if isinstance(audience, str) else tuple(audience)
