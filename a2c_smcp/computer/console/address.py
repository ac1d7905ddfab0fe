"""The address of a console: `[HOST:]PORT` as people type it, and the origins of its page. Pure."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from a2c_smcp.web.hosts import is_loopback, is_unspecified

__all__ = ["ConsoleAddress"]

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class ConsoleAddress:
    """A host and a port. With port 0 the system picks one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "ConsoleAddress":
        """Read `PORT`, `HOST:PORT` or `[IPV6]:PORT`. Raises `ValueError` with the reason."""
        if text.isascii() and text.isdigit():
            text = f"127.0.0.1:{text}"
        try:
            parts = urlsplit(f"//{text}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if host is None or port is None or parts.netloc != text or parts.username is not None:
            raise ValueError(f"{text[:100]!r} is not a [HOST:]PORT")
        if is_unspecified(host):
            raise ValueError(f"{host} means every address; give the host name that people will type in the browser")
        return cls(host, port)

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)

    def origins(self, *, tls: bool) -> frozenset[str]:
        """The origins that the page can have. A loopback address has several names."""
        scheme, usual = ("https", 443) if tls else ("http", 80)
        names = {self.netloc, *(_LOOPBACK if self.is_local else ())}
        ports = ("", f":{self.port}") if self.port == usual else (f":{self.port}",)
        return frozenset(f"{scheme}://{name}{port}" for name in names for port in ports)

    @property
    def netloc(self) -> str:
        """The host as it is written in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host
