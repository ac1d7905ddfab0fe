"""How a browser that is remembered shows that it is the one: it signs a challenge. Pure: the time is handed in.

What is signed names the challenge, the origin of the page and the computer: a signature that a page of another origin,
or another computer, has coaxed out of the browser is worth nothing here. A challenge costs no memory until a signature
of it was accepted: an attacker who asks for a million challenges fills nothing.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["CHALLENGE_SECONDS", "MAX_USED", "Challenges", "decoded", "is_public_key", "is_signed", "signed_text"]

#: How long a challenge can be answered.
CHALLENGE_SECONDS: Final = 60.0
#: How many challenges that were answered are remembered; no more are accepted in this time.
MAX_USED: Final = 1024
#: The page has the same text.
_CONTEXT: Final = "a2c-smcp console: let this browser in"
_NONCE: Final = 16
_TIME: Final = 8
_HALF: Final = 32


class Challenges:
    """The challenges of one run: each is good for a minute, and for one signature."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._used: BoundedDict[str, None] = BoundedDict(MAX_USED)

    def new(self, now: float) -> str:
        """A challenge. Nothing is remembered of it."""
        stamp = int(now * 1000).to_bytes(_TIME, "big") + secrets.token_bytes(_NONCE)
        return _encoded(stamp + self._mac(stamp))

    def is_open(self, challenge: str, now: float) -> bool:
        """Whether this is a challenge of ours that was not answered and is not too old."""
        given = decoded(challenge, _TIME + _NONCE + _HALF)
        self._used.forget_before(now - CHALLENGE_SECONDS)
        if given is None or challenge in self._used or len(self._used) >= MAX_USED:
            return False
        stamp, mac = given[: _TIME + _NONCE], given[_TIME + _NONCE :]
        age = int(now * 1000) - int.from_bytes(stamp[:_TIME], "big")
        return hmac.compare_digest(mac, self._mac(stamp)) and 0 <= age <= CHALLENGE_SECONDS * 1000

    def close(self, challenge: str, now: float) -> None:
        """Remember that this challenge was answered: it is not accepted again."""
        self._used.put(challenge, None, now)

    def _mac(self, stamp: bytes) -> bytes:
        return hmac.digest(self._key, stamp, hashlib.sha256)


def signed_text(challenge: str, origin: str, computer: str) -> bytes:
    """What a browser signs."""
    return "\n".join((_CONTEXT, challenge, origin, computer)).encode()


def decoded(text: str, length: int) -> bytes | None:
    """So many bytes, written in base64url without padding in the one way that there is; `None` for anything else."""
    try:
        found = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (UnicodeEncodeError, binascii.Error, ValueError):
        return None
    return found if len(found) == length and _encoded(found) == text else None


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def is_public_key(point: bytes) -> bool:
    """Whether these bytes are a point of P-256, uncompressed, as WebCrypto exports a key."""
    try:
        EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)
    except ValueError:
        return False
    return len(point) == 2 * _HALF + 1


def is_signed(public_key: bytes, signature: bytes, text: bytes) -> bool:
    """Whether WebCrypto made this signature of the text with the key: two numbers, one after the other."""
    r, s = (int.from_bytes(half, "big") for half in (signature[:_HALF], signature[_HALF:]))
    try:
        key = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), public_key)
        key.verify(encode_dss_signature(r, s), text, ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True
