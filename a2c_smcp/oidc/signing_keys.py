"""The public keys with which tokens are checked, and when to ask the issuer for them. Pure: the clock is handed in."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from a2c_smcp.oidc.key_pacing import KEY_PACING, KeyPacing

__all__ = ["ALGORITHMS", "KeyBook", "SigningKey", "read_keys"]

_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_ED25519: Final = "EdDSA"
#: Signatures with public keys only. `none` is not here, nor is HMAC: a public key could be passed off as its secret.
ALGORITHMS: Final = frozenset({*_RSA, *_CURVES.values(), _ED25519})
#: In bits.
_SMALLEST_RSA: Final = 2048
#: Keys of one issuer, at most. Real issuers have two or three.
_MOST_KEYS: Final = 64


@dataclass(frozen=True, slots=True)
class SigningKey:
    """One public key of an issuer, and the algorithms that it is for."""

    kid: str | None
    algorithms: frozenset[str]
    key: Any = field(repr=False)


def read_keys(document: Mapping[str, Any]) -> tuple[SigningKey, ...]:
    """The keys of a JSON Web Key Set that check signatures. All others are left out: an issuer may have keys of kinds
    that are newer than this code. A symmetric key is never used, because everybody who knows it could make tokens.
    """
    entries = document.get("keys")
    if not isinstance(entries, list):
        return ()
    read = (_read_key(entry) for entry in entries[:_MOST_KEYS] if isinstance(entry, dict))
    return tuple(key for key in read if key is not None)


def _read_key(entry: Mapping[str, Any]) -> SigningKey | None:
    if entry.get("kty") not in ("RSA", "EC", "OKP") or entry.get("use", "sig") != "sig":
        return None
    public = {name: value for name, value in entry.items() if name not in ("d", "p", "q", "dp", "dq", "qi", "oth")}
    try:
        key = jwt.PyJWK(public).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    algorithms = _algorithms(key)
    if "alg" in entry:
        algorithms &= {entry["alg"]} if isinstance(entry["alg"], str) else set()
    kid = entry.get("kid")
    return SigningKey(kid if isinstance(kid, str) else None, algorithms, key) if algorithms else None


def _algorithms(key: object) -> frozenset[str]:
    """The algorithms that a key is for. They follow from the key alone, so that a token cannot choose one."""
    match key:
        case rsa.RSAPublicKey() if key.key_size >= _SMALLEST_RSA:
            return _RSA
        case ec.EllipticCurvePublicKey() if key.curve.name in _CURVES:
            return frozenset({_CURVES[key.curve.name]})
        case ed25519.Ed25519PublicKey():
            return frozenset({_ED25519})
    return frozenset()


class KeyBook:
    """What is known of an issuer's keys."""

    def __init__(self, pacing: KeyPacing = KEY_PACING) -> None:
        self._pacing = pacing
        self._keys: Sequence[SigningKey] = ()
        self._read_at: float | None = None
        self.asked_at: float | None = None
        """When the issuer was asked last."""
        self.problem: str | None = None
        """Why the last request failed; `None` if it did not."""

    @property
    def was_read(self) -> bool:
        """Whether keys of the issuer were read since the start."""
        return self._read_at is not None

    def find(self, kid: str | None, algorithm: str, now: float) -> SigningKey | None:
        """The key for a token whose header has this key id and algorithm; `None` if it is not known. Without a key id
        only one key may fit.
        """
        if self._read_at is None or now - self._read_at > self._pacing.kept:
            return None
        fitting = [key for key in self._keys if algorithm in key.algorithms and kid in (key.kid, None)]
        return fitting[0] if fitting and (kid is not None or len(fitting) == 1) else None

    def wants_refresh(self, now: float) -> bool:
        """Whether to ask the issuer again although the key is known."""
        if self.asked_at is None or self._read_at is None:
            return True
        wait = self._pacing.retry if self.problem else self._pacing.fresh
        return now - self._read_at > self._pacing.fresh and now - self.asked_at > wait

    def pause(self, now: float) -> float:
        """How many seconds to wait before the issuer is asked for a key that is not known."""
        return 0.0 if self.asked_at is None else max(0.0, self.asked_at + self._pacing.pause - now)

    def asking(self, now: float) -> None:
        self.asked_at = now

    def take(self, keys: Iterable[SigningKey], now: float) -> None:
        """Use these keys of the issuer from now on, and no others."""
        self._keys, self._read_at, self.problem = tuple(keys), now, None

    def failed(self, problem: str) -> None:
        self.problem = problem
