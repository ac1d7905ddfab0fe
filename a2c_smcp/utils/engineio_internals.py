"""What we use of python-engineio that its documentation does not offer; `test_engineio_internals.py` names each thing.

Nothing else in the package imports `engineio`, or overrides a method of it whose name begins with an underscore. Why we
need so much of it: its own loops spend tasks, timers and queues on every message, and its queues have no end.

- *Packets* (`Packet`, the numbers of their types) are read and written by us.
- *A server's connection* (`AsyncSocket`) is made by the library, which takes no class of ours: `adopt`
  replaces its class afterwards by one with the same layout. A connection has the attributes below, calls
  `_upgrade_websocket` for a polling client that moves to a websocket, and `_websocket_handler` for every websocket.
- *A server* (`EngineServer`) keeps its connections in `sockets` and its handlers in `handlers`, and makes the queue of
  a connection with `create_queue`. Under ASGI the `environ` of a request, which `translate_request` in the server's
  `_async` makes, has `asgi.scope`, `asgi.receive`, and the first message of its body.
- *A client* (`AsyncClient`) sends every request through `_send_request`, opens its websocket in `_connect_websocket`,
  reads it in `_read_loop_websocket`, which calls `ws.receive`, and hands every packet to `_receive_packet`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping
from typing import Any, Final, Protocol

import engineio
from engineio import async_socket
from engineio.exceptions import (
    ConnectionError,
    ContentTooLongError,
    QueueEmpty,
    SocketIsClosedError,
    UnknownPacketError,
)
from engineio.packet import CLOSE, MESSAGE, NOOP, PING, PONG, UPGRADE, Packet

from a2c_smcp.utils.light_queue import LightQueue

__all__ = [
    "CLOSE",
    "MESSAGE",
    "NOOP",
    "NO_GREETING",
    "PING",
    "PONG",
    "UPGRADE",
    "AsyncClient",
    "AsyncSocket",
    "ConnectionError",
    "ContentTooLongError",
    "EngineServer",
    "Packet",
    "QueueEmpty",
    "SocketIsClosedError",
    "UnknownPacketError",
    "abandoned",
    "adopt",
    "body_of",
    "lighten",
    "scope_of",
]

#: The words of the error for a server that does not greet as an Engine.IO server.
NO_GREETING: Final = "OPEN packet"


# --- servers


class EngineServer(Protocol):
    """An `engineio.AsyncServer` or `engineio.Server`: the `eio` of python-socketio's server, and the `server` of a
    connection.
    """

    sockets: MutableMapping[str, Any]
    """The connections by their ids. A connection that has ended may stay here for a while."""
    handlers: MutableMapping[str, Callable[..., Any]]
    max_http_buffer_size: int
    ping_interval: float
    ping_timeout: float
    reason: Any

    def on(self, event: str, handler: Callable[..., Any]) -> None: ...
    def start_background_task(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...
    def send_packet(self, sid: str, pkt: Packet) -> Any: ...


class AsyncSocket(async_socket.AsyncSocket):  # type: ignore[misc]  # engineio ships no types
    """A connection of an asyncio server. The library creates it; `adopt` gives it our class."""

    sid: str
    server: EngineServer
    queue: "LightQueue[Packet | None]"
    """The packets to write; `None` ends the writer, or one poll."""
    last_ping: float | None
    connected: bool
    upgrading: bool
    """Whether a polling client is changing to a websocket; its polls return at once."""
    upgraded: bool
    """Whether it is a websocket."""
    closing: bool
    closed: bool

    async def move_to_websocket(self, environ: Any) -> Any:
        """A polling client asks for a websocket."""
        return await super()._upgrade_websocket(environ)

    async def serve_websocket(self, ws: Any) -> None:
        """Read and write until it ends. `ws` has `wait`, which raises `OSError` at the end, `send` and `close`."""
        await super()._websocket_handler(ws)

    async def _upgrade_websocket(self, environ: Any) -> Any:
        return await self.move_to_websocket(environ)

    async def _websocket_handler(self, ws: Any) -> None:
        await self.serve_websocket(ws)


def adopt(connection: Any, kind: type) -> None:
    """Give a connection one of our classes. The library offers no way to choose the class that it creates."""
    connection.__class__ = kind


class _FirstMessage:
    """The first message of a request's body."""

    __slots__ = ("event",)

    def __init__(self, event: Any) -> None:
        self.event = event


def lighten(server: Any) -> None:
    """Let the connections of an asyncio server use less memory. The library makes a class for each request, and that
    class keeps the connection alive until a full garbage collection.
    """
    server.create_queue = LightQueue
    translate = server._async["translate_request"]

    async def translated(*request: Any) -> Any:
        environ = await translate(*request)
        if "asgi.receive" in environ:
            environ["wsgi.input"] = _FirstMessage(environ["wsgi.input"].event)
        return environ

    if server._async["asyncio"] and asyncio.iscoroutinefunction(translate):
        server._async = {**server._async, "translate_request": translated}


def scope_of(environ: Mapping[str, Any]) -> Any:
    """The ASGI scope of a request; `None` if the web server uses WSGI."""
    return environ.get("asgi.scope")


async def body_of(environ: Mapping[str, Any], length: int) -> AsyncGenerator[bytes, None]:
    """The body of a POST, in parts as they arrive. The library's reader would read a body without a length to its
    end.
    """
    source = environ["wsgi.input"]
    if "asgi.receive" not in environ:
        yield await source.read(length)
        return
    message = source.event
    while True:
        yield message.get("body") or b""
        if not message.get("more_body"):
            return
        message = await environ["asgi.receive"]()
        if message["type"] == "http.disconnect":
            raise SocketIsClosedError


async def abandoned(environ: Mapping[str, Any]) -> None:
    """Return when the client of a GET no longer waits for its answer. Never returns if nobody can tell."""
    if "asgi.receive" not in environ:
        await asyncio.get_running_loop().create_future()
    # Its body has arrived, so the next message says that the client has gone. A client that sends more of a body does
    # not wait either.
    await environ["asgi.receive"]()


# --- clients


class AsyncClient(engineio.AsyncClient):  # type: ignore[misc]  # engineio ships no types
    """A client whose steps can be replaced one by one."""

    sid: str | None
    state: str
    """`connected`, `disconnecting` or `disconnected`."""
    current_transport: str
    base_url: str
    """The URL for polling, with the id of the session."""
    ws: Any
    http: Any
    """The `aiohttp.ClientSession`, once there is one."""
    http_factory: Any
    queue: "asyncio.Queue[Packet | None]"
    read_loop_task: Any
    write_loop_task: Any
    websocket_extra_options: dict[str, Any]

    async def request(self, method: str, url: str, headers: Any, body: Any, timeout: float | None) -> Any:
        """One HTTP request. Returns an `aiohttp.ClientResponse`, or a text that says why there is none."""
        return await super()._send_request(method, url, headers, body, timeout)

    async def open_websocket(self, url: str, headers: dict[str, str], path: str) -> bool:
        """Connect by websocket, or change to one from polling. In the second case `sid` is set, and `False` means:
        go on polling.
        """
        return bool(await super()._connect_websocket(url, headers, path))

    async def read_websocket(self) -> None:
        """Read until the connection ends. A missing ping ends it, too."""
        await super()._read_loop_websocket()

    async def receive(self, pkt: Packet) -> None:
        await super()._receive_packet(pkt)

    def websocket_url(self, url: str, path: str) -> str:
        """The URL of the websocket for a client that polls."""
        address: str = self._get_engineio_url(url, path, "websocket")
        return f"{address}&sid={self.sid}{self._get_url_timestamp()}"

    def use_websocket(self, ws: Any) -> None:
        """Use this websocket for reading and writing from now on."""
        self.ws, self.current_transport = ws, "websocket"
        self.write_loop_task = self.start_background_task(self._write_loop)
        self.read_loop_task = self.start_background_task(self._read_loop_websocket)

    async def flushed(self) -> None:
        """Return when everything that was queued is written."""
        await self.queue.join()

    async def end(self) -> None:
        """End the loops and the HTTP session of a disconnected client, in bounded time."""
        for task in (self.read_loop_task, self.write_loop_task):
            if isinstance(task, asyncio.Task) and not task.done() and task is not asyncio.current_task():
                task.cancel()
                await asyncio.wait({task}, timeout=1)
        if self.http is not None and not self.http.closed:
            await self.http.close()

    async def _send_request(
        self, method: str, url: str, headers: Any = None, body: Any = None, timeout: float | None = None
    ) -> Any:
        return await self.request(method, url, headers, body, timeout)

    async def _connect_websocket(self, url: str, headers: dict[str, str], engineio_path: str) -> bool:
        return await self.open_websocket(url, headers, engineio_path)

    async def _read_loop_websocket(self) -> None:
        await self.read_websocket()

    async def _receive_packet(self, pkt: Packet) -> None:
        await self.receive(pkt)
