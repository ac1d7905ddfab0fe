"""Hosts that show the token of a person or a machine, made by an issuer: a server on the kit as a protected resource
(MCP's authorization, RFC 9728).

mcp's own `TokenVerifier` is not used: it answers a token with yes or no. Here somebody without rights is told 403, an
issuer that is silent makes it 503, and both are told why. What mcp does with a token that counts, is used.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from a2c_smcp.errors import ForbiddenError, InternalError, UnauthorizedError
from a2c_smcp.oidc.checking import CheckedToken, TokenChecker
from a2c_smcp.oidc.sign_in import SIGN_IN_PATH, SignIn
from a2c_smcp.web.hosts import Refusal

__all__ = ["CheckPerson", "TokenGate"]

CheckPerson: TypeAlias = Callable[[CheckedToken], None]
"""Raises `ForbiddenError` for somebody who may not use this server."""


class TokenGate:
    """Decides by its token whether a request is let in, and says where to sign in."""

    def __init__(self, checker: TokenChecker, sign_in: SignIn, check: CheckPerson = lambda _: None) -> None:
        self.checker = checker
        self.sign_in = sign_in
        self._check = check

    def describes(self, path: str) -> bool:
        """Whether somebody asks where to sign in: at the root, or for the path of the endpoint."""
        return path == SIGN_IN_PATH or path.startswith(f"{SIGN_IN_PATH}/")

    def description(self) -> bytes:
        return json.dumps(self.sign_in.metadata()).encode()

    async def admit(self, given: Mapping[str, Sequence[str]]) -> tuple[AuthenticatedUser, CheckedToken] | Refusal:
        """Whose request this is, or why it is refused. `given` has the values of each header."""
        scheme, _, token = " ".join(given.get("authorization", ())).partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return Refusal(401, "a token is needed; the header WWW-Authenticate says where to sign in")
        try:
            checked = await self.checker.check(token.strip())
            self._check(checked)
        except UnauthorizedError as error:
            return Refusal(401, error.message)
        except ForbiddenError as error:
            return Refusal(403, error.message)
        except InternalError as error:
            return Refusal(503, error.message)
        return AuthenticatedUser(_access_token(token, checked, self.sign_in)), checked

    def challenge(self, refusal: Refusal, given: Mapping[str, Sequence[str]]) -> str:
        """The value of `WWW-Authenticate` for a refusal with 401 (RFC 6750, RFC 9728)."""
        # RFC 6750, 3: without credentials there is no error to name.
        error = ', error="invalid_token"' if "authorization" in given else ""
        return f'Bearer resource_metadata="{self.sign_in.metadata_url}"{error}'


def _access_token(token: str, checked: CheckedToken, sign_in: SignIn) -> AccessToken:
    """What mcp compares, so that nobody uses the session of somebody else. Our code reads nothing of it."""
    claims = checked.claims
    client = next((claims[name] for name in ("client_id", "azp") if isinstance(claims.get(name), str)), "")
    return AccessToken(
        token=token.strip(),
        client_id=client or claims["sub"],
        scopes=str(claims.get("scope", "")).split(),
        expires_at=int(checked.expires_at),
        resource=sign_in.audiences[0],
        subject=claims["sub"],
        claims={"iss": claims["iss"]},
    )
