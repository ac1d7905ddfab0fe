"""Which addresses a server may send us to while we sign in. Pure: names are resolved elsewhere.

A server names the addresses of its metadata and of its issuer. A server on the internet must not make this machine
send requests to itself, to its own network, or to the metadata service of a cloud.
"""

import ipaddress
from collections.abc import Iterable
from enum import IntEnum
from urllib.parse import urlsplit

from a2c_smcp.oidc.sign_in_errors import SignInError
from a2c_smcp.utils.addresses import innermost

__all__ = ["Nearness", "UnsafeAddressError", "check_address", "nearness"]


class Nearness(IntEnum):
    """How near an address is to this computer."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2
    SPECIAL = 3
    """Link-local, multicast and reserved addresses. Clouds have their metadata services there."""


class UnsafeAddressError(SignInError):
    """An address that is not used for signing in. The message names the host, and nothing else of the address."""


def nearness(address: str) -> Nearness:
    """How near an IP address is. IPv4 addresses inside IPv6 ones count as what they are."""
    ip = innermost(ipaddress.ip_address(address.partition("%")[0]))
    if ip.is_loopback:
        return Nearness.LOOPBACK
    if ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip.is_reserved:
        return Nearness.SPECIAL
    return Nearness.PUBLIC if ip.is_global else Nearness.PRIVATE


def check_address(url: str, found: Iterable[str], server: Nearness, *, has_secrets: bool) -> None:
    """Raise `UnsafeAddressError` if this URL, whose host has the addresses `found`, must not be used.

    No address may be nearer to this computer than the server is. What carries secrets goes over `https`; only
    addresses of this computer are excepted.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host:
        raise UnsafeAddressError(f"the server names an address for signing in that is no web address: {parts.scheme}:")
    places = [nearness(address) for address in found]
    if any(place > server for place in places):
        raise UnsafeAddressError(
            f"the server sends sign-ins to {host}, which is nearer to this computer than the server itself is; this"
            " is refused"
        )
    is_here = bool(places) and all(place is Nearness.LOOPBACK for place in places)
    if has_secrets and parts.scheme != "https" and not is_here:
        raise UnsafeAddressError(f"the server sends sign-ins to {host} without TLS; only https:// is used")
