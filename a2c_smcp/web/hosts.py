"""Which names a server without keys answers to. Pure.

A page of any web site can have its own name resolve to 127.0.0.1 (DNS rebinding): then the browser takes this server
for part of that site. What the page cannot change are the names that the browser sends along, in `Host` and `Origin`.
"""

import ipaddress
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from a2c_smcp.errors import ForbiddenError

__all__ = ["AllowedHosts", "is_loopback", "is_unspecified"]

_ANY: Final = "*"


def is_loopback(host: str) -> bool:
    """Whether a host name or address, without a port, can only mean this machine."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # No host outside can have a name under `localhost` (RFC 6761).
        return host == "localhost" or host.endswith(".localhost")
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def is_unspecified(host: str) -> bool:
    """Whether an address stands for all of a machine's, as `0.0.0.0` does: one to bind, and no name for others."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


class AllowedHosts:
    """Loopback names, and those that the operator added; `*` stands for every name."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(_plain(name) for name in names)

    def check(self, hosts: Iterable[str], origins: Iterable[str]) -> None:
        """Raise `ForbiddenError` unless there is a `Host`, and every `Host` and `Origin` has an allowed name."""
        hosts = list(hosts)
        if not hosts:
            raise ForbiddenError("the request names no Host")
        for what, given, allows in (("Host", hosts, self.allows_host), ("Origin", origins, self.allows_origin)):
            for value in given:
                if not allows(value):
                    raise ForbiddenError(
                        f"this server has no key and does not answer to the {what} {value[:100]!a}; its operator can "
                        "allow that name with --allowed-host"
                    )

    def allows_host(self, host: str) -> bool:
        """Whether a `Host` header, with or without a port, has an allowed name."""
        try:
            parts = urlsplit(f"//{host}")
            name, _ = parts.hostname, parts.port
        except ValueError:
            return False
        if name is None or parts.netloc != host or parts.username is not None:
            return False
        return _ANY in self._names or is_loopback(_plain(name)) or _plain(name) in self._names

    def allows_origin(self, origin: str) -> bool:
        """Whether an `Origin` header has an allowed name. `null`, a page that hides its own, has none."""
        scheme, separator, host = origin.partition("://")
        return bool(scheme and separator) and self.allows_host(host)


def _plain(name: str) -> str:
    return name.lower().removesuffix(".").removeprefix("[").removesuffix("]")
