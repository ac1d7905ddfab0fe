"""A server without a port: each client has a cable, whose connections are pairs of connected sockets.

uvicorn's HTTP and websockets run as in `a2c server`, and so does all of our server. What we use of other libraries
beyond their documentation:

- uvicorn makes its HTTP protocol with `config`, `server_state` and `app_state`, and takes the application from
  `config.loaded_app`. Why: uvicorn's own server listens on an address.
- aiohttp's connectors make a connection in `_create_connection`, with a protocol of `_factory`. Why: its public
  connectors connect to an address, too.

`tests/testing/test_undocumented.py` names each of them.
"""

import asyncio
import copy
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import aiohttp
from aiohttp.client_proto import ResponseHandler
from uvicorn.server import ServerState

from a2c_smcp.engine.outgoing import Parcel
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.server.app import ServerApp
from a2c_smcp.server.guarded_websocket import GuardedWebSocket
from a2c_smcp.server.uvicorn_parts import GuardedConfig, ServerHTTP

__all__ = ["Cable", "PortlessServer"]

ASGIApp: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

#: Nobody listens at this address: clients reach the server by their cables.
_URL: Final = "http://127.0.0.1"
#: How many seconds the tasks of connections may take to end.
_END_SECONDS: Final = 2.0


class PortlessServer:
    """Serves an application over cables while it is entered."""

    def __init__(self, app: ServerApp) -> None:
        self.app = app
        self.loop = asyncio.get_running_loop()
        self._state = ServerState()
        self._cables: list[Cable] = []
        self._config = GuardedConfig(app, log_config=None, access_log=False, proxy_headers=False)
        self._config.load()

    async def __aenter__(self) -> "PortlessServer":
        return self

    async def __aexit__(self, *_: object) -> None:
        for cable in self._cables:
            cable.is_cut = True
            cable.lose_connections()
        await self.app.engine.shutdown()
        if self._state.tasks:
            tasks = set(self._state.tasks)
            await asyncio.wait(tasks, timeout=_END_SECONDS)
            for task in tasks:
                task.cancel()  # does nothing to one that has ended

    def cable(self) -> "Cable":
        """A way to this server for one client."""
        self._cables.append(cable := Cable(self))
        return cable

    async def accept(
        self, connected: socket.socket, cable: "Cable", around: Callable[[ASGIApp], ASGIApp]
    ) -> asyncio.BaseTransport:
        """Serve a connection. `around` wraps the application for it. Call this in the server's own loop."""
        config = copy.copy(self._config)
        config.loaded_app = around(config.loaded_app)
        transport, _ = await self.loop.connect_accepted_socket(
            lambda: _CableHTTP(cable, config=config, server_state=self._state, app_state={}), connected
        )
        return transport


class Cable:
    """The way of one client to the server. `options` are for the client, which may live in any thread."""

    def __init__(self, server: PortlessServer) -> None:
        self._server = server
        self._transports: list[asyncio.BaseTransport] = []
        self.delay = 0.0
        """Seconds that every message waits before it arrives, in both directions."""
        self.is_cut = False
        """Whether new connections are refused."""
        self.options = LinkOptions(_URL, connector=lambda: _CableConnector(self), backoff=(0.01, 0.1), rejoin_every=0.1)

    def lose_connections(self) -> None:
        """Break what is connected now, without a good-bye. The client may connect again, unless `is_cut`."""
        transports, self._transports = self._transports, []
        for transport in transports:
            if isinstance(transport, asyncio.WriteTransport) and not transport.is_closing():
                transport.abort()

    async def open(self) -> socket.socket:
        """The client's end of a new connection."""
        if self.is_cut:
            raise ConnectionRefusedError("the test has cut this connection")
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(False)
        try:
            accepting = self._accept(theirs)
            if asyncio.get_running_loop() is self._server.loop:
                await accepting
            else:
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(accepting, self._server.loop))
        except BaseException:
            ours.close()
            raise
        return ours

    async def _accept(self, connected: socket.socket) -> None:
        self._transports = [each for each in self._transports if not each.is_closing()]
        self._transports.append(await self._server.accept(connected, self, self._delayed))

    def _delayed(self, app: ASGIApp) -> ASGIApp:
        async def delayed(scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
            async def late_receive() -> Any:
                message = await receive()
                await self._wait()
                return message

            async def late_send(message: Any) -> None:
                await self._wait()
                await send(message)

            await app(scope, late_receive, late_send)

        return delayed

    async def _wait(self) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)


class _CableHTTP(ServerHTTP):
    """HTTP whose websockets are delayed by their cable."""

    def __init__(self, cable: Cable, **options: Any) -> None:
        super().__init__(**options)
        self._cable = cable

    def make_websocket(self, **options: Any) -> GuardedWebSocket:
        return _CableWebSocket(cable=self._cable, peer=self.peer, **options)


class _CableWebSocket(GuardedWebSocket):
    """A websocket whose bytes wait, in both directions and in order, for as long as the cable says."""

    __slots__ = ("_cable", "_late")

    def __init__(self, *args: Any, cable: Cable, **options: Any) -> None:
        super().__init__(*args, **options)
        self._cable = cable
        self._late: deque[tuple[Callable[[Any], None], Any]] = deque()

    def data_received(self, data: bytes) -> None:
        self._later(super().data_received, data)

    def write(self, parcel: Parcel) -> None:
        self._later(super().write, parcel)

    def _later(self, step: Callable[[Any], None], what: Any) -> None:
        if self._cable.delay or self._late:
            self._late.append((step, what))
            self.loop.call_later(self._cable.delay, self._next)
        else:
            step(what)

    def _next(self) -> None:
        step, what = self._late.popleft()
        step(what)


class _CableConnector(aiohttp.BaseConnector):
    """aiohttp's way over a cable."""

    def __init__(self, cable: Cable) -> None:
        super().__init__()
        self._cable = cable

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> ResponseHandler:
        loop = asyncio.get_running_loop()
        try:
            end = await self._cable.open()
        except OSError as error:
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
        # On Windows a pair of sockets is made of TCP.
        is_local = end.family == getattr(socket, "AF_UNIX", None)
        connect: Any = loop.create_unix_connection if is_local else loop.create_connection
        _, protocol = await connect(self._factory, sock=end)
        assert isinstance(protocol, ResponseHandler)
        return protocol
