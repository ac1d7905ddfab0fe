"""Tokens as an attacker makes them, and as a careless issuer does."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.oidc.issuer import Issuer

__all__ = ["AUDIENCE", "claims_of", "forged_tokens", "hmac_signed", "signed", "unsigned"]

AUDIENCE = "https://office.example.com"


def claims_of(issuer: Issuer, **changes: Any) -> dict[str, Any]:
    """The claims of a right token, with some changes; `None` leaves a claim out."""
    now = int(time.time())
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 600, **changes}
    return {name: value for name, value in claims.items() if value is not None}


def signed(issuer: Issuer, head: dict[str, Any] | None = None, algorithm: str = "RS256", **changes: Any) -> str:
    """A token with the issuer's own key."""
    key = issuer.signing_key()
    private = jwt.PyJWK({**key["jwk"], "alg": algorithm}).key
    return jwt.encode(claims_of(issuer, **changes), private, algorithm, headers={"kid": key["kid"], **(head or {})})


def _text(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(issuer: Issuer, algorithm: str = "none", **changes: Any) -> str:
    return f"{_text({'alg': algorithm, 'kid': issuer.signing_key()['kid']})}.{_text(claims_of(issuer, **changes))}."


def hmac_signed(issuer: Issuer, secret: str) -> str:
    """A token that takes the public key for the secret of HMAC: key confusion."""
    body = f"{_text({'alg': 'HS256', 'kid': issuer.signing_key()['kid']})}.{_text(claims_of(issuer))}"
    digest = hmac.new(secret.encode(), body.encode(), hashlib.sha256).digest()
    return f"{body}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def forged_tokens(issuer: Issuer) -> dict[str, str]:
    """Tokens that must not count, by what is wrong with them."""
    stranger, key = rsa.generate_private_key(65537, 2048), issuer.signing_key()
    own = jwt.PyJWK.from_dict(json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(stranger.public_key())), "RS256")
    foreign = jwt.encode(claims_of(issuer), stranger, "RS256", headers={"kid": key["kid"]})
    carried = {"kid": key["kid"], "jwk": {"kty": "RSA", "n": "AQAB", "e": "AQAB"}, "jku": "http://127.0.0.1:1/jwks"}
    assert own is not None
    right = signed(issuer)
    head, body, signature = right.split(".")
    swapped = _text(claims_of(issuer, sub="root"))
    return {
        "no signature": unsigned(issuer),
        "no signature, another spelling": unsigned(issuer, "nOnE"),
        "no algorithm": unsigned(issuer, ""),
        "signature left out": f"{head}.{body}.",
        "HMAC with the public key": hmac_signed(issuer, key["pem"]),
        "HMAC with the public key, without its last line break": hmac_signed(issuer, key["pem"].rstrip()),
        "the key of a stranger": foreign,
        "a key that the token brings": jwt.encode(claims_of(issuer), stranger, "RS256", headers=carried),
        "claims of another token": f"{head}.{swapped}.{signature}",
        "another algorithm than the key is for": signed(issuer, algorithm="PS256"),
        "another audience": signed(issuer, aud="https://other.example.com"),
        "no audience": signed(issuer, aud=None),
        "an audience that contains ours": signed(issuer, aud=f"{AUDIENCE}.evil.example"),
        "another issuer": signed(issuer, iss="https://evil.example"),
        "no subject": signed(issuer, sub=None),
        "expired": signed(issuer, exp=int(time.time()) - 60),
        "no end": signed(issuer, exp=None),
        "an end that is not a time": signed(issuer, exp="never"),
        "not yet": signed(issuer, nbf=int(time.time()) + 600),
        "bound to a key of its client": signed(issuer, cnf={"jkt": "x"}),
        "something that must be understood": signed(issuer, {"crit": ["b64"], "b64": False}),
        "a logout token": signed(issuer, {"typ": "logout+jwt"}),
        "not JSON": "bm90.anNvbg.eA",
        "nonsense": "....",
    }
