"""How the console and servers on the kit are served: uvicorn with the guards of `a2c_smcp.web.guarded_http`, and a
bounded number of connections. Strangers cannot take the places of peers with a key.
"""

import socket
from collections.abc import Callable
from typing import Any, Final

from a2c_smcp.utils.loop_turns import SharedTurns
from a2c_smcp.web.connection_places import ConnectionPlaces, put_holder
from a2c_smcp.web.guarded_http import BoundedConfig, GuardedHTTP, HttpBounds

__all__ = ["STRANGERS", "SurfaceConfig", "SurfaceHTTP"]

#: How many connections without a key may stay.
STRANGERS: Final = 128


class SurfaceConfig(BoundedConfig):
    """A uvicorn configuration for an application that calls `vouch` for requests with a key. Takes the options of
    `uvicorn.Config`.
    """

    def __init__(
        self,
        app: Any,
        *,
        places: ConnectionPlaces | None = None,
        bounds: HttpBounds | None = None,
        admits: Callable[[socket.socket], bool] | None = None,
        **options: Any,
    ) -> None:
        self.admits = admits
        """Whether a peer may come in at all; `None` if everybody may."""
        self.places = ConnectionPlaces(STRANGERS) if places is None else places
        # No proxy headers: a peer must not choose which address the log shows. `backlog` is also the number of
        # connections that asyncio accepts in one turn of the loop.
        fixed: dict[str, Any] = {"http": SurfaceHTTP, "ws": "none", "proxy_headers": False, "backlog": 2 * STRANGERS}
        super().__init__(app, bounds or HttpBounds(), SharedTurns(), **{**options, **fixed})


class SurfaceHTTP(GuardedHTTP):
    """HTTP whose peer counts as a stranger until the application vouches for it."""

    config: SurfaceConfig

    def __init__(self, config: SurfaceConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self._places = config.places
        self._known = False

    @property
    def known(self) -> bool:
        return self._known

    def vouch(self, known: bool) -> None:
        """Say whether the peer has shown a key with its latest request."""
        if known is not self._known:
            self._known = known
            self._places.vouch(self, known)

    def let_in(self) -> bool:
        admits = self.config.admits
        if admits is not None and not admits(self.transport.get_extra_info("socket")):
            self.refuse(b"403 Forbidden")
            return False
        if not self._places.come(self):
            self.logger.warning("refused a connection: there are %d others", self._places.taken)
            self.refuse(b"503 Service Unavailable")
            return False
        # In the turn after the next, because by then what came with the connection has been read.
        self.loop.call_soon(self.loop.call_soon, self._make_room)
        return True

    def _make_room(self) -> None:
        for leaving in self._places.surplus:
            assert isinstance(leaving, SurfaceHTTP)
            self._places.leave(leaving)
            # No answer is sent: a browser that sends a request at this moment would take it for the answer to that
            # request.
            leaving.send_away()

    def connection_lost(self, exc: Exception | None) -> None:
        self._places.leave(self)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        put_holder(self.scope, self)
