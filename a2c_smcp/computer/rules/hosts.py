"""The host of a URL, as a rule compares it. Pure: nothing is looked up.

Programs disagree about odd URLs. A URL that two programs may read as two hosts has no host here.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import idna

__all__ = ["Host", "HostPattern", "host_of", "parse_host_pattern"]

#: Browsers drop or replace these characters; other programs take them as a part of the host.
_ODD: Final = re.compile(r"[\x00-\x20\x7f\\]")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ssh": 22}
#: A name whose last label looks like this is an address in a form that few people can read: `0x7f.1`, `2130706433`.
_NUMERIC: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z")


@dataclass(frozen=True, slots=True)
class Host:
    name: str
    """In lower case, in ASCII, without a dot at its end."""
    port: int | None


@dataclass(frozen=True, slots=True)
class HostPattern:
    """`example.com`, `*.example.com` for every name below it, and with `:8443` for that port only."""

    name: str
    below: bool
    port: int | None

    def matches(self, host: Host) -> bool:
        if self.port is not None and host.port != self.port:
            return False
        return host.name.endswith(f".{self.name}") if self.below else host.name == self.name

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{'*.' if self.below else ''}{name}{'' if self.port is None else f':{self.port}'}"


def host_of(url: str) -> Host | None:
    """The host of a URL; `None` for a text that is no URL with a host, or an odd one."""
    if _ODD.search(url) or "://" not in url:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    authority = parts.netloc
    if not parts.scheme or authority.count("@") > 1:
        return None
    name = _normal(parts.hostname or "")
    return None if name is None else Host(name, _DEFAULT_PORTS.get(parts.scheme) if port is None else port)


def parse_host_pattern(text: str) -> HostPattern:
    """Read what a person wrote. Raises `ValueError` that says what to write instead."""
    if "/" in text or "@" in text or _ODD.search(text):
        raise ValueError("must be a host such as 'example.com' or '*.example.com:8443', not a URL")
    below = text.startswith("*.")
    try:
        parts = urlsplit(f"//{text[2:] if below else text}")
        name, port = _normal(parts.hostname or ""), parts.port
    except ValueError:
        name, port = None, None
    if name is None or "*" in name:
        raise ValueError("must be a host such as 'example.com'; only a '*.' at its start stands for other names")
    return HostPattern(name, below, port)


def _normal(name: str) -> str | None:
    """The one form of a host's name; `None` if programs may disagree about it."""
    if not name or "%" in name:
        return None
    if ":" in name:
        try:
            return str(ipaddress.IPv6Address(name))
        except ValueError:
            return None
    try:
        ascii_name = idna.encode(name, uts46=True).decode() if not name.isascii() else name.lower()
    except idna.IDNAError:
        return None
    ascii_name = ascii_name.lower().removesuffix(".")
    if not ascii_name or ascii_name.startswith(".") or ".." in ascii_name or ascii_name.endswith("."):
        return None
    if _NUMERIC.match(ascii_name.rpartition(".")[2]):
        try:
            return str(ipaddress.IPv4Address(ascii_name))
        except ValueError:
            return None
    return ascii_name
