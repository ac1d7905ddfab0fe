"""The host of a URL, as a rule compares it. Pure: names are looked up elsewhere.

Programs disagree about odd URLs. A URL that two programs may read as two hosts has no host here. A URL with a user, an
international name in an unusual spelling, or an address inside another address has a host that no `allow` takes.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import idna

from a2c_smcp.computer.rules.fits import Fit, any_of
from a2c_smcp.utils.addresses import innermost
from a2c_smcp.utils.text import first_invisible_character, has_control_characters

__all__ = [
    "HOST_CLASSES",
    "Host",
    "HostAddresses",
    "HostPattern",
    "default_port",
    "host_fit",
    "host_of",
    "is_in_class",
    "name_to_look_up",
    "parse_host_pattern",
]

#: The addresses to which a name leads; `None` if nobody knows.
HostAddresses: TypeAlias = Callable[[str], Iterable[str] | None]

#: Browsers drop or replace these characters; other programs take them as a part of the host.
_ODD: Final = re.compile(r"[\x00-\x20\x7f\\]")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_NAME: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ssh": 22}
_WEB: Final = frozenset({"http", "https"})
#: A name whose last label looks like this is an address in a form that few people can read: `0x7f.1`, `2130706433`.
_NUMERIC: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z")
#: Two versions of the standard for international names read these characters in two ways.
_DISPUTED: Final = re.compile("[\u00df\u1e9e\u03c2\u200c\u200d]")
#: What a rule may name instead of a host. Nothing on the internet has these addresses.
HOST_CLASSES: Final[Mapping[str, tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]]] = {
    # `0.0.0.0` and `::` are reached like loopback; `::/96` once had IPv4 addresses in it.
    "loopback": tuple(map(ipaddress.ip_network, ("127.0.0.0/8", "0.0.0.0/8", "::/96"))),
    "private": tuple(
        map(
            ipaddress.ip_network,
            ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10"),
        )
    ),
    "link_local": tuple(map(ipaddress.ip_network, ("169.254.0.0/16", "fe80::/10"))),
}


@dataclass(frozen=True, slots=True)
class Host:
    name: str
    """In lower case, in ASCII, without a dot at its end."""
    port: int | None
    scheme: str = "https"
    is_plain: bool = True
    """Whether the URL says it without a user, and as every program reads it."""

    @property
    def is_address(self) -> bool:
        return _address(self.name) is not None


@dataclass(frozen=True, slots=True)
class HostPattern:
    """`example.com` over http or https at their own ports, `*.example.com` for every name below it, with `:8443` at
    that port only, and with `wss://` over that protocol only. Or a class: `loopback`, `private`, `link_local`.
    """

    name: str
    below: bool
    port: int | None
    scheme: str | None = None

    @property
    def is_class(self) -> bool:
        return self.name in HOST_CLASSES and not self.below

    def fit(self, host: Host, addresses: HostAddresses) -> Fit:
        if self.scheme not in (None, host.scheme):
            return Fit.FAILS
        if self.port is not None and host.port is not None and self.port != host.port:
            return Fit.FAILS
        if not self._names(host):
            return self._leads_there(host, addresses)
        # An `allow` is for what the person wrote. A `deny` of a host is for all of it, over any protocol, at any port.
        if not host.is_plain or (self.scheme is None and host.scheme not in _WEB):
            return Fit.MISFIT
        wanted = default_port(host.scheme) if self.port is None else self.port
        return Fit.HOLDS if wanted == host.port else Fit.MISFIT

    def _names(self, host: Host) -> bool:
        if self.below:
            return host.name.endswith(f".{self.name}")
        return host.name == self.name or (self.is_class and is_in_class(self.name, host.name))

    def _leads_there(self, host: Host, addresses: HostAddresses) -> Fit:
        """Whether the name resolves to an address of the class. An `allow` never relies on that: it may change."""
        if not self.is_class or host.is_address:
            return Fit.FAILS
        found = addresses(host.name)
        is_there = found is None or any(is_in_class(self.name, each) for each in found)
        return Fit.MISFIT if is_there else Fit.FAILS

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        scheme, port = f"{self.scheme}://" if self.scheme else "", "" if self.port is None else f":{self.port}"
        return f"{scheme}{'*.' if self.below else ''}{name}{port}"


def host_fit(patterns: tuple[HostPattern, ...], url: str, addresses: HostAddresses) -> Fit:
    """Whether a text is a URL of one of the hosts."""
    host = host_of(url)
    return Fit.MISFIT if host is None else any_of(pattern.fit(host, addresses) for pattern in patterns)


def name_to_look_up(patterns: tuple[HostPattern, ...], url: str) -> str | None:
    """The name whose addresses must be known before the patterns can be compared, if there is one."""
    if not any(pattern.is_class for pattern in patterns) or (host := host_of(url)) is None:
        return None
    return None if host.is_address or is_in_class("loopback", host.name) else host.name


def default_port(scheme: str) -> int | None:
    return _DEFAULT_PORTS.get(scheme)


@lru_cache(maxsize=64)
def host_of(url: str) -> Host | None:
    """The host of a URL; `None` for a text that is no URL with a host, or an odd one."""
    if _ODD.search(url) or has_control_characters(url) or first_invisible_character(url) or not _SCHEME.match(url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    authority = parts.netloc
    if authority.count("@") > 1 or authority.endswith(":"):
        return None
    behind = url.split("://", 1)[1].removeprefix(authority)
    if behind[:1] in ("?", "#") and "@" in behind.partition("/")[0]:  # some programs go on to the @
        return None
    name = _normal(parts.hostname or "")
    if name is None:
        return None
    is_plain = "@" not in authority and name[1]
    return Host(name[0], default_port(parts.scheme) if port is None else port, parts.scheme, is_plain)


def parse_host_pattern(text: str) -> HostPattern:
    """Read what a person wrote. Raises `ValueError` that says what to write instead."""
    found = _SCHEME.match(text)
    rest = text if found is None else text[found.end() :]
    if "/" in rest or "@" in rest or _ODD.search(rest):
        raise ValueError("must be a host such as 'example.com' or '*.example.com:8443', not a URL")
    below = rest.startswith("*.")
    name, port = None, None
    try:
        parts = urlsplit(f"//{rest[2:] if below else rest}")
        name, port = _normal(parts.hostname or ""), parts.port
    except ValueError:
        pass
    if name is None:
        raise ValueError("must be a host such as 'example.com'; only a '*.' at its start stands for other names")
    return HostPattern(name[0], below, port, None if found is None else found[1].lower())


def _normal(name: str) -> tuple[str, bool] | None:
    """The one form of a host's name, and whether every program reads it so; `None` if programs may disagree."""
    if not name or "%" in name:
        return None
    if ":" in name:
        try:
            address = ipaddress.IPv6Address(name)
        except ValueError:
            return None
        inner = innermost(address)
        return str(inner), inner is address
    found = (name.lower(), True) if name.isascii() else _international(name.lower())
    if found is None:
        return None
    ascii_name = found[0].removesuffix(".")
    if not _NAME.fullmatch(ascii_name):
        return None
    if _NUMERIC.match(ascii_name.rpartition(".")[2]):
        try:
            return str(ipaddress.IPv4Address(ascii_name)), found[1]
        except ValueError:
            return None
    return ascii_name, found[1]


def _international(name: str) -> tuple[str, bool] | None:
    if _DISPUTED.search(name):
        return None
    try:
        return idna.encode(name).decode().lower(), True
    except idna.IDNAError:
        pass
    try:
        # For example letters of full width, which most programs take as the letters that they look like.
        return idna.encode(name, uts46=True).decode().lower(), False
    except idna.IDNAError:
        return None


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return None


def is_in_class(host_class: str, name: str) -> bool:
    """Whether a name or an address is of this class by itself."""
    if (address := _address(name)) is None:
        # No host outside can have a name under `localhost` (RFC 6761).
        is_here = name == "localhost" or name.endswith((".localhost", "localhost.localdomain"))
        return host_class == "loopback" and is_here
    inner = innermost(address)
    return any(inner.version == network.version and inner in network for network in HOST_CLASSES[host_class])
