"""The engine's websocket under our uvicorn, with the counts of a peer."""

from typing import TYPE_CHECKING, Any

from a2c_smcp.engine.direct import DirectWebSocket
from a2c_smcp.server.admission import Peer, put_peer

if TYPE_CHECKING:
    from a2c_smcp.server.uvicorn_parts import GuardedConfig

__all__ = ["GuardedWebSocket"]


class GuardedWebSocket(DirectWebSocket):
    """A websocket that shares its turns with the other connections of the server."""

    __slots__ = ("peer",)

    def __init__(self, config: "GuardedConfig", *args: Any, peer: Peer, **kwargs: Any) -> None:
        admission = config.admission
        super().__init__(config, *args, turns=admission.turns, departures=admission.departures, **kwargs)
        self.peer = peer

    def asked(self) -> None:
        # Behind a proxy that is trusted, a middleware puts the client's own address into the scope.
        put_peer(self.scope, self.peer)

    def lost(self) -> None:
        self.peer.leave()
