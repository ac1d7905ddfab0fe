"""By which names a web server may be reached: the one check of `Host` and `Origin`. Pure.

Any web site can let its own name resolve to 127.0.0.1 (DNS rebinding). Then the browser takes this server for a part of
that site. A page of the site cannot change the names that the browser sends in `Host` and `Origin`.
"""

import ipaddress
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from a2c_smcp.errors import ForbiddenError
from a2c_smcp.utils.text import in_log

__all__ = ["AllowedHosts", "OwnOrigins", "Refusal", "is_loopback", "is_unspecified", "values_by_name"]

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
    """Whether an address means all addresses of a machine, as `0.0.0.0` does. It can be bound, but not connected to."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused: the status of the answer, and its text."""

    status: int
    reason: str


def values_by_name(headers: Iterable[tuple[str, str]]) -> Mapping[str, list[str]]:
    """The values of each header, by its name."""
    given: dict[str, list[str]] = {}
    for name, value in headers:
        given.setdefault(name, []).append(value)
    return given


class AllowedHosts:
    """The loopback names, and those that the operator added; `*` allows every name."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(_plain(name) for name in names)

    def refusal(self, hosts: Collection[str], origins: Iterable[str], forwarded: Iterable[str] = ()) -> Refusal | None:
        """Why a request with these values of `Host`, `Origin` and `X-Forwarded-Host` is refused; `None` if it is not.
        There must be exactly one `Host`, and all names must be allowed.
        """
        if len(hosts) != 1 or not all(map(self.allows_host, (*hosts, *forwarded))):
            return Refusal(421, f"this server does not answer to the name {in_log(', '.join((*hosts, *forwarded)))}")
        if foreign := [origin for origin in origins if not self.allows_origin(origin)]:
            return Refusal(403, f"requests from {in_log(', '.join(foreign))} are not served")
        return None

    def check(self, hosts: Collection[str], origins: Iterable[str], forwarded: Iterable[str] = ()) -> None:
        """Raise `ForbiddenError` if `refusal` refuses the request. The text says how to allow a name."""
        if (refusal := self.refusal(hosts, origins, forwarded)) is not None:
            raise ForbiddenError(f"{refusal.reason}; its operator can allow a name with --allowed-host, or set a key")

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
        """Whether an `Origin` header has an allowed name. `null`, from a page that hides its origin, has none."""
        scheme, separator, host = origin.partition("://")
        return bool(scheme and separator) and self.allows_host(host)


class OwnOrigins(AllowedHosts):
    """Allows the exact origins of our own pages, such as `http://127.0.0.1:8000`, and no other name."""

    def __init__(self, origins: Iterable[str]) -> None:
        super().__init__()
        self._origins = frozenset(origins)
        self._hosts = frozenset(origin.partition("://")[2] for origin in self._origins)

    def allows_host(self, host: str) -> bool:
        return host.lower() in self._hosts

    def allows_origin(self, origin: str) -> bool:
        return origin.lower() in self._origins


def _plain(name: str) -> str:
    return name.lower().removesuffix(".").removeprefix("[").removesuffix("]")
