"""Whether a token is valid: its form, its signature and its claims. Pure: keys and clock are handed in."""

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt
from jwt.types import Options

from a2c_smcp.errors import UnauthorizedError
from a2c_smcp.oidc.signing_keys import ALGORITHMS, SigningKey
from a2c_smcp.utils.token_times import looks_like_token

__all__ = ["Expected", "TokenHead", "check_claims", "read_claims", "read_head"]

_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt", "application/jwt"})
#: PyJWT checks the signature alone. The claims are checked here, with our clock and our words.
_SIGNATURE_ONLY: Final[Options] = {
    "verify_signature": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}


@dataclass(frozen=True, slots=True)
class TokenHead:
    kid: str | None
    algorithm: str


@dataclass(frozen=True, slots=True)
class Expected:
    """What a token must say."""

    issuer: str
    audiences: frozenset[str]
    """One of these must be among the token's."""
    leeway: float
    """Seconds by which the clocks may differ."""


def read_head(token: str) -> TokenHead:
    """What a token says about its signature. Raises `UnauthorizedError`."""
    if not looks_like_token(token):
        raise UnauthorizedError("the token is not a signed JSON Web Token")
    head = _head(token)
    algorithm, kid, kind = head.get("alg"), head.get("kid"), head.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise UnauthorizedError("the token is signed with an algorithm that is not accepted here")
    if "crit" in head or not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise UnauthorizedError("this kind of token is not accepted here")
    return TokenHead(kid if isinstance(kid, str) else None, algorithm)


def read_claims(token: str, head: TokenHead, key: SigningKey) -> Mapping[str, Any]:
    """The claims of a token whose signature is right. Give them to `check_claims` next. Raises `UnauthorizedError`."""
    if head.algorithm not in key.algorithms:
        raise UnauthorizedError("the key of the token is for another algorithm")
    try:
        return jwt.decode(token, key.key, algorithms=[head.algorithm], options=_SIGNATURE_ONLY)
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise UnauthorizedError("the signature of the token is wrong") from None


def check_claims(claims: Mapping[str, Any], expected: Expected, now: float) -> float:
    """Until when the token is valid, in seconds since 1970. Raises `UnauthorizedError` if it is not valid now."""
    if not isinstance(claims.get("iss"), str) or claims["iss"] != expected.issuer:
        raise UnauthorizedError("the token comes from another issuer")
    given = claims.get("aud")
    audiences = given if isinstance(given, list) else [given]
    if not any(isinstance(each, str) and each in expected.audiences for each in audiences):
        raise UnauthorizedError("the token is for another audience")
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise UnauthorizedError("the token does not say whom it is about")
    # RFC 9449 and RFC 8705: such a token is valid only together with a proof, which this server does not check.
    if "cnf" in claims:
        raise UnauthorizedError("the token is bound to a key of its client; a bearer token is needed")
    until = _moment(claims, "exp")
    if until is None:
        raise UnauthorizedError("the token does not say when it expires (exp)")
    if until + expected.leeway <= now:
        raise UnauthorizedError("the token has expired")
    for name in ("nbf", "iat"):
        if (_moment(claims, name) or 0) - expected.leeway > now:
            raise UnauthorizedError("the token is not valid yet; compare the clocks")
    return until + expected.leeway


def _moment(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UnauthorizedError(f"the claim {name} of the token is not a time")
    try:
        return float(value)
    except OverflowError:
        raise UnauthorizedError(f"the claim {name} of the token is not a time") from None


def _head(token: str) -> dict[str, Any]:
    part = token.split(".")[0]
    try:
        value = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UnauthorizedError("the token is not a signed JSON Web Token")
    return value
