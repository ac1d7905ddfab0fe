"""Where a console is reached: `[HOST:]PORT` as people type it, and the names in `Host` that mean it. Pure."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from a2c_smcp.web.hosts import is_loopback, is_unspecified

__all__ = ["ConsoleAddress"]

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class ConsoleAddress:
    """A host and a port; port 0 is one that the system picks. `parse` reads it."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "ConsoleAddress":
        """Read `PORT`, `HOST:PORT` or `[IPV6]:PORT`, or raise `ValueError` with what is wrong."""
        if text.isascii() and text.isdigit():
            text = f"127.0.0.1:{text}"
        try:
            parts = urlsplit(f"//{text}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if host is None or port is None or parts.netloc != text or parts.username is not None:
            raise ValueError(f"{text[:100]!r} is no [HOST:]PORT")
        if is_unspecified(host):
            raise ValueError(f"{host} is every address: name the host that people will type, so that it can be checked")
        return cls(host, port)

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)

    def origins(self, *, tls: bool) -> frozenset[str]:
        """The origins that a page of this console can have. A loopback address has several names."""
        scheme, usual = ("https", 443) if tls else ("http", 80)
        names = _LOOPBACK if self.is_local else (self.netloc,)
        names = (*names, self.netloc)
        ports = ("", f":{self.port}") if self.port == usual else (f":{self.port}",)
        return frozenset(f"{scheme}://{name}{port}" for name in names for port in ports)

    @property
    def netloc(self) -> str:
        """The host as it is written in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host
