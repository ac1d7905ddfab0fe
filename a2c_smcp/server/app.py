"""The ASGI application that `a2c server` runs: the Socket.IO endpoint, health, readiness, metrics."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import socketio

from a2c_smcp.server.auth import AuthenticationProvider
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.metrics import Metrics
from a2c_smcp.server.namespace import SMCPNamespace
from a2c_smcp.server.registry import LocalRegistry, Registry
from a2c_smcp.server.sockets import release_polls
from a2c_smcp.server.transport import server_options

__all__ = ["ServerApp", "create_app"]

logger = logging.getLogger("a2c_smcp.server")

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

_TOO_BIG = 1009  # the websocket close code for a message over the limit


def create_app(
    auth: AuthenticationProvider,
    *,
    limits: Limits | None = None,
    registry: Registry | None = None,
    ping_interval: float = 10.0,
    ping_timeout: float = 10.0,
    socketio_path: str = "socket.io",
) -> "ServerApp":
    """A complete server as one ASGI application, for uvicorn or to be mounted in a larger one."""
    limits = limits or Limits()
    registry = registry or LocalRegistry()
    metrics = Metrics(registry)
    namespace = SMCPNamespace(auth, limits=limits, registry=registry, observer=metrics)
    sio = socketio.AsyncServer(**server_options(limits.max_message, ping_interval, ping_timeout))
    sio.register_namespace(namespace)
    return ServerApp(sio, namespace, metrics, socketio_path)


class ServerApp:
    """Call it as ASGI. `drain` it before it is stopped."""

    def __init__(self, sio: Any, namespace: SMCPNamespace, metrics: Metrics, socketio_path: str) -> None:
        self.sio = sio
        self.namespace = namespace
        self._metrics = metrics
        self._draining = False
        self._drained = False
        self._socketio = socketio.ASGIApp(sio, other_asgi_app=self._http, socketio_path=socketio_path)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif self._drained and scope["type"] == "http":
            await _respond(send, 503, b"shutting down\n")
        else:
            self._warn_of_large_post(scope)
            await self._socketio(scope, self._watching(scope, receive), send)

    async def drain(self, seconds: float) -> None:
        """Refuse what is new and give what is running this long. Transports are left to the web server to close:
        clients come back after that, but not after a Socket.IO disconnect.
        """
        self._draining = True
        await self.namespace.drain(seconds)
        self._drained = True
        release_polls(self.sio)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await self.sio.shutdown()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        match scope["path"]:
            case "/healthz":
                status, body = 200, b"ok\n"
            case "/readyz":
                status, body = (503, b"draining\n") if self._draining else (200, b"ready\n")
            case "/metrics":
                status, body = 200, self._metrics.render()
            case _:
                status, body = 404, b"not found; the Socket.IO endpoint is /socket.io\n"
        await _respond(send, status, body, head=scope["method"] == "HEAD")

    # The libraries close a connection over a message that is too large without a word.

    def _warn_of_large_post(self, scope: Message) -> None:
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if length.isdigit() and int(length) > self.namespace.limits.max_message:
            self._warn(scope)

    def _watching(self, scope: Message, receive: Receive) -> Receive:
        async def watching() -> Message:
            message = await receive()
            if message["type"] == "websocket.disconnect" and message.get("code") == _TOO_BIG:
                self._warn(scope)
            return message

        return watching if scope["type"] == "websocket" else receive

    def _warn(self, scope: Message) -> None:
        address = scope["client"][0] if scope.get("client") else "unknown"
        limit = self.namespace.limits.max_message
        logger.warning("closing a connection from %s: a message has more than %d bytes", address, limit)


async def _respond(send: Send, status: int, body: bytes, *, head: bool = False) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})
