"""Certificates for tests, each its own issuer."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Certificate:
    cert: str
    key: str


def self_signed(folder: Path, *names: str, expired: bool = False) -> Certificate:
    """A certificate for these names and addresses, and its key, as files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.datetime.now(datetime.UTC)
    hour = datetime.timedelta(hours=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 2 * hour)
        .not_valid_after(now - hour if expired else now + hour)
        .add_extension(x509.SubjectAlternativeName([*map(_general_name, names)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    stem = f"{names[0]}-expired" if expired else names[0]
    cert_file, key_file = folder / f"{stem}.pem", folder / f"{stem}.key"
    cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return Certificate(str(cert_file), str(key_file))


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
