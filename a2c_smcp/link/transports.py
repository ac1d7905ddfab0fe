"""How a connection reaches its server, as a value. Imports no network library: callers of a shared seat need none."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from a2c_smcp.link.proxies import Proxy

__all__ = ["Transport", "Way"]

#: `auto` tries a websocket, and polls if websockets do not get through.
Transport: TypeAlias = Literal["auto", "websocket", "polling"]


@dataclass(frozen=True, slots=True)
class Way:
    """How a connection reaches the server. `str()` gives it for people to read."""

    transport: str
    """`websocket` or `polling`."""
    proxy: Proxy | None = None
    no_websocket: str = ""
    """Why it polls, if a websocket was wanted."""

    def __str__(self) -> str:
        reason = f" (no websocket: {self.no_websocket})" if self.no_websocket else ""
        return f"{self.transport}{reason}, " + (f"through the proxy {self.proxy}" if self.proxy else "direct")
