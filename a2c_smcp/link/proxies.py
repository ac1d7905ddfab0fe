"""Which proxy a connection goes through: an option, else what the environment says. Pure; shows no password."""

import ipaddress
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from a2c_smcp.errors import BadRequestError

__all__ = ["Proxy", "find_proxy"]

_SECURE: Final = ("https", "wss")
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy. `str()` has no password, `url` has it."""

    scheme: str
    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        if not (self.user or self.password):
            return str(self)
        return f"{self.scheme}://{_userinfo(self.user)}:{_userinfo(self.password)}@{self._address}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self._address}"

    @property
    def _address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def find_proxy(url: str, wanted: str | None, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy for a server's URL; `None` for a direct connection. Raises `BadRequestError` if it cannot be used.

    `wanted` overrides the environment; `""` means no proxy. Otherwise `HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY`
    count, by the URL's scheme. They do not count for this machine, and for hosts that `NO_PROXY` names.
    """
    if wanted is not None:
        return _parse(wanted, "the proxy") if wanted.strip() else None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme in _SECURE else 80)
    except ValueError:
        return None  # connecting says what is wrong with the URL
    if _is_this_machine(host) or _is_excluded(host, port, _variable(environ, "NO_PROXY")[1]):
        return None
    for name in ("HTTPS_PROXY" if parts.scheme in _SECURE else "HTTP_PROXY", "ALL_PROXY"):
        found, text = _variable(environ, name)
        if text:
            return _parse(text, f"the proxy in {found}")
    return None


def _variable(environ: Mapping[str, str], name: str) -> tuple[str, str]:
    """A variable's name as it is set, and its value. Lower case comes first, as in other programs."""
    for spelled in (name.lower(), name):
        if text := environ.get(spelled, "").strip():
            return spelled, text
    return name, ""


def _parse(text: str, what: str) -> Proxy:
    """Read a proxy's address. No error quotes it, because it may have a password in it."""
    text = text.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        raise BadRequestError(f"{what} is not a valid URL") from None
    if scheme not in _PORTS:
        raise BadRequestError(f"{what} is not an http:// or https:// URL; give one with --proxy URL")
    if not host:
        raise BadRequestError(f"{what} has no host")
    return Proxy(scheme, host, port or _PORTS[scheme], unquote(parts.username or ""), unquote(parts.password or ""))


def _userinfo(text: str) -> str:
    # aiohttp encodes Basic credentials as Latin-1, proxies expect UTF-8: these characters become its bytes.
    return quote(text.encode().decode("latin-1"), safe="")


def _is_this_machine(host: str) -> bool:
    """Whether a host is this machine. It needs no proxy: a proxy for the outside must not break what runs here."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def _is_excluded(host: str, port: int, no_proxy: str) -> bool:
    host = host.rstrip(".").lower()
    address = _address(host)
    for entry in no_proxy.replace(",", " ").lower().split():
        if entry == "*":
            return True
        if address is not None and "/" in entry:
            with suppress(ValueError):
                if address in ipaddress.ip_network(entry, strict=False):
                    return True
        name, its_port = _split_port(entry)
        if its_port not in (None, str(port)):
            continue
        name = name.removeprefix("*").strip(".")
        if address is not None:
            if _address(name) == address:
                return True
        elif name and (host == name or host.endswith(f".{name}")):
            return True
    return False


def _split_port(entry: str) -> tuple[str, str | None]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":") or None
    name, separator, port = entry.rpartition(":")
    return (name, port) if separator and port.isdigit() and ":" not in name else (entry, None)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
