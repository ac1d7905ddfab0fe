"""IP addresses that stand inside other addresses. Pure."""

import ipaddress
from typing import Final, TypeAlias

__all__ = ["IPAddress", "innermost"]

IPAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def innermost(ip: IPAddress) -> IPAddress:
    """The IPv4 address to which an IPv6 address leads (mapped, 6to4, Teredo, NAT64); any other address as it is."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
    if inner is None and ip in _NAT64:
        inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return inner or ip
