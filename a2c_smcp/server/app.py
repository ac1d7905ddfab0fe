"""The ASGI application that `a2c server` runs: the Socket.IO endpoint, health, readiness, metrics."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import socketio

from a2c_smcp.errors import ForbiddenError
from a2c_smcp.server.admission import peer_of
from a2c_smcp.server.auth import AuthenticationProvider, OpenAuthentication
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.loop_lag import measured_lag
from a2c_smcp.server.metrics import Metrics
from a2c_smcp.server.namespace import SMCPNamespace
from a2c_smcp.server.registry import LocalRegistry, Registry
from a2c_smcp.server.socket_bounds import TOO_LARGE
from a2c_smcp.server.socketio_setup import server_options
from a2c_smcp.server.sockets import open_socket, queued_bytes, release_polls
from a2c_smcp.web.asgi import ASGIMessage, Receive, Send
from a2c_smcp.web.hosts import AllowedHosts, values_by_name

if TYPE_CHECKING:
    from a2c_smcp.server.cluster.options import ClusterOptions
    from a2c_smcp.server.cluster.tie import ClusterTie

__all__ = ["ServerApp", "create_app"]


def create_app(
    auth: AuthenticationProvider,
    *,
    limits: Limits | None = None,
    registry: Registry | None = None,
    cluster: "ClusterOptions | None" = None,
    ping_interval: float = 10.0,
    ping_timeout: float = 10.0,
    socketio_path: str = "socket.io",
) -> "ServerApp":
    """A complete server as one ASGI application, for uvicorn or to be mounted in a larger one.

    It serves the Socket.IO endpoint at `socketio_path`, and `/healthz`, `/readyz` and `/metrics`. `auth` decides who
    may connect, for instance `APIKeyAuthentication(["secret"])`. Pings are sent every `ping_interval` seconds. A client
    that does not answer within `ping_timeout` seconds is disconnected.

    `uvicorn.Server(GuardedConfig(app))`, of `a2c_smcp.server.uvicorn_parts`, serves it as `a2c server` does, with
    limits that hold before a request is read. Await `drain` before you stop it.

    With `cluster` it is one of several processes that share their offices over NATS. This needs the extra `cluster`.
    The process joins the others while the ASGI lifespan lasts.
    """
    limits = limits or Limits()
    tie = _tie(cluster) if cluster is not None else None
    registry = tie.registry if tie is not None else registry or LocalRegistry()
    metrics = Metrics(registry)
    if tie is not None:
        namespace = tie.namespace(auth, limits, metrics)
    else:
        namespace = SMCPNamespace(auth, limits=limits, registry=registry, observer=metrics)
    options = server_options(limits.max_message, ping_interval, ping_timeout)
    hosts = auth.hosts if isinstance(auth, OpenAuthentication) else None
    if hosts is not None:
        options["cors_allowed_origins"] = lambda origin, _: origin is not None and hosts.allows_origin(origin)
    sio = socketio.AsyncServer(**options)
    sio.register_namespace(namespace)
    metrics.gauge("a2c_pending_relays", "Requests that wait for an answer.", lambda: namespace.pending_relays)
    metrics.gauge("a2c_queued_bytes", "Bytes that wait for clients to read them.", lambda: sum(queued_bytes(sio)))
    metrics.gauge("a2c_longest_queue_bytes", "The longest of these queues.", lambda: max(queued_bytes(sio), default=0))
    return ServerApp(sio, namespace, metrics, socketio_path, hosts, tie)


def _tie(options: "ClusterOptions") -> "ClusterTie":
    # This is the only place that imports anything of NATS.
    from a2c_smcp.server.cluster.tie import ClusterTie

    return ClusterTie(options)


class ServerApp:
    """The ASGI application that `create_app` makes. `sio` is its `socketio.AsyncServer`, `namespace` its
    `SMCPNamespace`.
    """

    def __init__(
        self,
        sio: Any,
        namespace: SMCPNamespace,
        metrics: Metrics,
        socketio_path: str,
        hosts: AllowedHosts | None,
        tie: "ClusterTie | None" = None,
    ) -> None:
        self.sio = sio
        self._hosts = hosts
        self.namespace = namespace
        self._metrics = metrics
        self._tie = tie
        self._draining = False
        self._drained = False
        self._socketio = socketio.ASGIApp(sio, other_asgi_app=self._http, socketio_path=socketio_path)

    async def __call__(self, scope: ASGIMessage, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif self._drained and scope["type"] == "http":
            await _respond(send, 503, b"shutting down\n")
        elif (refusal := self._foreign_name(scope)) is not None:
            await self._refuse(scope, send, refusal)
        else:
            _trust_proxies_only(scope)
            if scope["type"] == "http" and scope["method"] == "POST" and await self._refuse_large_post(scope, send):
                return
            await self._socketio(scope, self._watching(scope, receive), send)

    async def drain(self, seconds: float) -> None:
        """Refuse new requests from now on, and wait until the running ones are answered and their answers written,
        for this many seconds at most.

        Stop the web server next: it closes the connections, and the clients connect again. After a Socket.IO disconnect
        they would not.
        """
        self._draining = True
        await self.namespace.drain(seconds)
        # The clients will connect to other processes. There, their names must be free at once.
        await self.namespace.registry.release()
        self._drained = True
        release_polls(self.sio)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(measured_lag(self._metrics.lagged))
            while (message := await receive())["type"] != "lifespan.shutdown":
                if self._tie is not None:
                    await stack.enter_async_context(self._tie)
                await send({"type": f"{message['type']}.complete"})
            await self.sio.shutdown()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: ASGIMessage, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        match scope["path"]:
            case "/healthz":
                status, body = 200, b"ok\n"
            case "/readyz":
                reason = "draining" if self._draining else self.namespace.registry.unavailable()
                status, body = (503, f"{reason}\n".encode()) if reason else (200, b"ready\n")
            case "/metrics":
                status, body = 200, await self._rendered_metrics()
            case _:
                status, body = 404, b"not found; the Socket.IO endpoint is /socket.io\n"
        await _respond(send, status, body, head=scope["method"] == "HEAD")

    async def _rendered_metrics(self) -> bytes:
        """The metrics. They are made in a turn of clients without a key, because anybody may ask for them often."""
        turns = self.namespace.admission.turns
        await turns.wait()
        began = time.perf_counter()
        text = self._metrics.render()
        turns.used(time.perf_counter() - began)
        return text

    # A server without keys answers only to some host names.

    def _foreign_name(self, scope: ASGIMessage) -> ForbiddenError | None:
        if self._hosts is None:
            return None
        peer = peer_of(scope)
        given = values_by_name((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        forwarded = given.get("x-forwarded-host", ()) if peer is not None and peer.trusted else ()
        try:
            self._hosts.check(given.get("host", ()), given.get("origin", ()), forwarded)
        except ForbiddenError as error:
            return error
        return None

    async def _refuse(self, scope: ASGIMessage, send: Send, error: ForbiddenError) -> None:
        address = _address(scope)
        self.namespace.admission.address_log.warn(address, "refused a request from %s: %s", address, error)
        if scope["type"] == "http":
            await _respond(send, 403, f"{error}\n".encode())
        else:
            await send({"type": "websocket.close"})

    # Engine.IO would check the length of a POST only after its first part has arrived.

    async def _refuse_large_post(self, scope: ASGIMessage, send: Send) -> bool:
        sid = parse_qs(scope["query_string"].decode("latin-1")).get("sid", [""])[0]
        socket = open_socket(self.sio, sid)
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if socket is None or int(length) <= socket.limit:
            return False
        self._warn_of_size(scope, socket.limit)
        await socket.cut_off(TOO_LARGE)
        await _respond(send, 413, b"too large\n", headers=[(b"connection", b"close")])
        return True

    # uvicorn closes a connection over a message that is too large, and logs nothing.

    def _watching(self, scope: ASGIMessage, receive: Receive) -> Receive:
        async def watching() -> ASGIMessage:
            message = await receive()
            if message["type"] == "websocket.disconnect" and message.get("code") == 1009:  # too big
                peer = peer_of(scope)
                self._warn_of_size(scope, self.namespace.limits.max_message if peer is None else peer.limit)
            return message

        return watching if scope["type"] == "websocket" else receive

    def _warn_of_size(self, scope: ASGIMessage, limit: int) -> None:
        address = _address(scope)
        self.namespace.admission.address_log.warn(
            address, "closing a connection from %s: a message has more than %d bytes", address, limit
        )


def _address(scope: ASGIMessage) -> str:
    return str(scope["client"][0]) if scope.get("client") else "unknown"


def _trust_proxies_only(scope: ASGIMessage) -> None:
    """Drop `X-Forwarded-Host` unless a trusted proxy sends it: Engine.IO would compare the `Origin` with it."""
    peer = peer_of(scope)
    if peer is None or not peer.trusted:
        scope["headers"] = [header for header in scope["headers"] if header[0] != b"x-forwarded-host"]


async def _respond(
    send: Send, status: int, body: bytes, *, head: bool = False, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    length = str(len(body)).encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", length), *headers]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})
