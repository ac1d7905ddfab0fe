"""uvicorn as `a2c server` runs it: its HTTP with the guards of `a2c_smcp.web.guarded_http`, its websockets with those
of `a2c_smcp.server.guarded_websocket`, and both with the counts of a peer. What we use of uvicorn for that, beyond its
documentation, is here:

- HTTP makes its websocket by calling `ws_protocol_class`. Why: the websocket continues with the peer of the request.
- `ProxyHeadersMiddleware.trusted_hosts` answers `address in …`. Why: only a trusted proxy may name its client.

`tests/server/test_uvicorn_parts.py` has a test for each.
"""

from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from a2c_smcp.server.admission import Admission, Peer, put_peer
from a2c_smcp.server.app import ServerApp
from a2c_smcp.server.guarded_websocket import GuardedWebSocket
from a2c_smcp.server.offices import MAX_OFFICE_ID
from a2c_smcp.web.guarded_http import BoundedConfig, GuardedHTTP, HttpBounds

__all__ = ["GuardedConfig", "ServerHTTP"]


class GuardedConfig(BoundedConfig):
    """A uvicorn configuration for a `ServerApp`, with its rules of admission. Takes the options of `uvicorn.Config`."""

    def __init__(self, app: ServerApp, **options: Any) -> None:
        self.admission = app.switchboard.admission
        limits = self.admission.limits
        fixed: dict[str, Any] = {"http": ServerHTTP, "ws": GuardedWebSocket}
        # A URL may have an office in it. A percent-encoded character has 12 bytes.
        bounds = HttpBounds(header_timeout=limits.header_timeout, max_url=1024 + 12 * MAX_OFFICE_ID)
        super().__init__(app, bounds, self.admission.turns, **{**options, **fixed})

    def trusts(self, address: str) -> bool:
        """Whether a proxy at this address is trusted."""
        app = self.loaded_app
        return isinstance(app, ProxyHeadersMiddleware) and address in app.trusted_hosts


class ServerHTTP(GuardedHTTP):
    """HTTP that counts the connections of each address, and refuses too many."""

    config: GuardedConfig

    def __init__(self, config: GuardedConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self.admission: Admission = config.admission
        self.peer = self._new_peer()
        self.ws_protocol_class = self.make_websocket  # type: ignore[assignment]

    def _new_peer(self) -> Peer:
        address = self.client[0] if self.client else "unknown"
        return Peer(address, self.config.trusts(address), None)

    def make_websocket(self, **options: Any) -> GuardedWebSocket:
        """The websocket that continues with the peer of the request."""
        return GuardedWebSocket(peer=self.peer, **options)

    @property
    def known(self) -> bool:
        return self.peer.known

    # --- from the network

    def let_in(self) -> bool:
        self.peer = self._new_peer()
        # A proxy's clients are counted when they open a session, by the addresses that it gives.
        if not self.peer.trusted:
            address = self.peer.address
            self.peer.place = self.admission.addresses.knock(address)
            if self.peer.place is None:
                self.admission.address_log.warn(address, "refused a connection from %s: too many of them", address)
                self.refuse(b"429 Too Many Requests")
                return False
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.peer.leave()
        super().connection_lost(exc)

    # --- from the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.peer.trusted:
            self.peer = self._new_peer()  # the next request of a proxy may come from another client
        put_peer(self.scope, self.peer)
