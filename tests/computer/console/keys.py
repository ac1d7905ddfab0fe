"""The key of a browser, for visitors that are none: what WebCrypto does, with the same forms of keys and signatures."""

import base64

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


class DeviceKey:
    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.public = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.compressed = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)

    def sign(self, text: bytes) -> bytes:
        r, s = decode_dss_signature(self._key.sign(text, ec.ECDSA(SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")
