"""What a client knows of its link: how it is to be made, what can be asked of it, and what it tells. Opens nothing."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from a2c_smcp.dialects.handshake import Dialect
from a2c_smcp.errors import SMCPError
from a2c_smcp.link.server_urls import check_server_url
from a2c_smcp.link.transports import Transport, Way
from a2c_smcp.types import Role
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE

__all__ = [
    "AnyLink",
    "Connected",
    "Disconnected",
    "Handler",
    "Joined",
    "KeySource",
    "Left",
    "LinkEvent",
    "LinkFactory",
    "LinkOptions",
    "Membership",
    "Refused",
    "RejoinFailed",
]


@dataclass(frozen=True, slots=True)
class Membership:
    """Who this client is, and where."""

    role: Role
    name: str
    office_id: str


@dataclass(frozen=True, slots=True)
class Connected:
    """There is a connection, for the first time or again. `way` says how it goes."""

    url: str
    way: Way | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection ended. `final` when the client does not connect again by itself."""

    reason: str
    final: bool


@dataclass(frozen=True, slots=True)
class Joined:
    """The client is in its office."""

    membership: Membership
    again: bool
    """Whether it was joined before, on a connection that was lost."""


@dataclass(frozen=True, slots=True)
class Left:
    """The client left its office, because `leave` was called."""

    membership: Membership


@dataclass(frozen=True, slots=True)
class RejoinFailed:
    """The client is connected again, but the office refuses it. `final` when the client does not try any more."""

    membership: Membership
    error: SMCPError
    final: bool


LinkEvent: TypeAlias = Connected | Disconnected | Joined | Left | RejoinFailed
Handler: TypeAlias = Callable[[Any], Awaitable[Any]]
Refused: TypeAlias = Callable[[object, Any, SMCPError], dict[str, Any]]
"""What is answered to an event with this name and payload that has failed."""
KeySource: TypeAlias = Callable[[], str | Awaitable[str | None] | None]
"""Gives the key or the token to show now; `None` for none."""


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """How an agent or a computer reaches its server, and comes back to it. The defaults suit `a2c server`."""

    url: str
    """`https://host[:port]`, or `http://` without TLS. Any other text raises `BadRequestError`. A path belongs to a
    proxy in front of the server."""
    api_key: "str | KeySource | None" = field(default=None, repr=False)
    """The key or the token that the server asks for; `None` for a server without keys. A function, sync or async, is
    called for every connection, and again before the token that it gave ends. It raises `SMCPError` if it has none."""
    api_key_header: str = "x-api-key"
    """The header that carries the key."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further headers of every HTTP request and websocket handshake."""
    transport: Transport = "auto"
    """`auto` tries a websocket, and polls if websockets do not get through. The others use one transport only."""
    proxy: str | None = field(default=None, repr=False)
    """An HTTP proxy. It overrides `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`; `""` means no proxy."""
    ca: str | os.PathLike[str] | None = None
    """A file with certificates to trust, besides those of the system or `SSL_CERT_FILE`."""
    socketio_path: str = "socket.io"
    """Where the server has its Socket.IO endpoint."""
    max_message: int = DEFAULT_MAX_MESSAGE
    """Bytes of one message: the same as the server's `max_message`. A larger request raises `PayloadTooLargeError`."""
    reconnect: bool = True
    """Whether to connect and join again after the connection was lost."""
    connect_timeout: float = 10.0
    """Seconds for one attempt to connect. With `auto`, the attempt by websocket has half of them."""
    membership_timeout: float = 10.0
    """Seconds for the answer to a join or a leave."""
    backoff: tuple[float, float] = (0.2, 2.5)
    """The first and the longest pause between attempts to connect, in seconds. With these, all members are back three
    seconds after their server."""
    rejoin_every: float = 1.0
    """Seconds between attempts to join again, while the old session may still hold the name or the seat."""
    rejoin_report_after: float = 30.0
    """Seconds for which these refusals are not reported. The first refusal after that is reported as `RejoinFailed`."""
    office: str | None = None
    """The office that will be joined, for a load balancer in front of several servers. It goes into the URL as
    `?office=…`, so that one server gets the whole office. `join` is still to be called."""
    connector: Callable[[], Any] | None = field(default=None, repr=False, compare=False)
    """Makes the `aiohttp.BaseConnector` of each connection, for a server that is not reached over TCP. Proxies and
    certificates are then its own business."""

    def __post_init__(self) -> None:
        if not isinstance(self.url, str):
            raise TypeError(f"url must be a text, not {self.url!r}; is an environment variable not set?")
        if not isinstance(self.api_key, str | None) and not callable(self.api_key):
            raise TypeError(f"api_key must be a text, a function or None, not {type(self.api_key).__name__}")
        check_server_url(self.url)


class AnyLink(Protocol):
    """A client's way to its office: a connection of its own (`OfficeLink`), or a seat that it shares with others."""

    @property
    def options(self) -> LinkOptions: ...

    @property
    def membership(self) -> Membership | None:
        """Where this client is, or will be again as soon as it can."""

    @property
    def connected(self) -> bool: ...

    @property
    def joined(self) -> bool: ...

    @property
    def way(self) -> Way | None: ...

    @property
    def problem(self) -> SMCPError | None: ...

    @property
    def server_dialect(self) -> Dialect:
        """What the server speaks."""

    async def open(self) -> None: ...

    def attend(self, membership: Membership) -> None: ...

    async def close(self) -> None: ...

    async def exchange(self, event: str, data: Any, timeout: float) -> str:
        """Send an event and return the JSON of its ack, which the caller reads."""

    async def join(self, membership: Membership) -> None: ...

    async def leave(self) -> None: ...


class LinkFactory(Protocol):
    """Makes a link: from its options, handlers of what the server sends, and a listener to its events."""

    def __call__(
        self, options: LinkOptions, handlers: Mapping[str, Handler], *, on_event: Callable[[LinkEvent], None]
    ) -> AnyLink: ...
