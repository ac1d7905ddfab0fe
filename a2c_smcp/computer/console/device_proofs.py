"""How a remembered browser proves who it is: it signs a challenge. Pure: the time is handed in.

The signed text names the challenge, the origin of the page and the computer. So a signature that was made for another
origin or another computer is worth nothing here. A challenge takes no memory until its signature was accepted: an
attacker may ask for a million challenges.
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

from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["Challenges", "decoded", "is_public_key", "is_signed", "signed_text"]

#: The page has the same text.
_CONTEXT: Final = "a2c-smcp console: let this browser in"


class Challenges:
    """The challenges of one run. Each works for a minute and for one signature.

    A challenge is 8 bytes of time in milliseconds, 16 random bytes, and 32 bytes that only we can make of those.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._used: BoundedDict[str, None] = BoundedDict(CONSOLE_LIMITS.challenges)

    def new(self, now: float) -> str:
        """A new challenge. Nothing of it is remembered."""
        stamp = int(now * 1000).to_bytes(8, "big") + secrets.token_bytes(16)
        return _encoded(stamp + self._mac(stamp))

    def is_open(self, challenge: str, now: float) -> bool:
        """Whether this challenge is ours, not answered yet, and not too old."""
        given = decoded(challenge, 8 + 16 + 32)
        self._used.forget_before(now - CONSOLE_LIMITS.challenge_seconds)
        if given is None or challenge in self._used or len(self._used) >= CONSOLE_LIMITS.challenges:
            return False
        stamp, mac = given[:24], given[24:]
        age = int(now * 1000) - int.from_bytes(stamp[:8], "big")
        return hmac.compare_digest(mac, self._mac(stamp)) and 0 <= age <= CONSOLE_LIMITS.challenge_seconds * 1000

    def close(self, challenge: str, now: float) -> None:
        """Note that this challenge was answered. It is not accepted again."""
        self._used.put(challenge, None, now)

    def _mac(self, stamp: bytes) -> bytes:
        return hmac.digest(self._key, stamp, hashlib.sha256)


def signed_text(challenge: str, origin: str, computer: str) -> bytes:
    """The text that a browser signs."""
    return "\n".join((_CONTEXT, challenge, origin, computer)).encode()


def decoded(text: str, length: int) -> bytes | None:
    """`length` bytes from base64url without padding; `None` if the text is not their one correct spelling."""
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
    return len(point) == 1 + 32 + 32


def is_signed(public_key: bytes, signature: bytes, text: bytes) -> bool:
    """Whether this is WebCrypto's signature of the text with the key: two numbers of 32 bytes each."""
    r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    try:
        key = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), public_key)
        key.verify(encode_dss_signature(r, s), text, ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True
