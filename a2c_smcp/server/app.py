"""The ASGI application that `a2c server` runs: the Socket.IO endpoint, health, readiness, metrics."""

import json
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from a2c_smcp.engine.endpoint import Endpoint
from a2c_smcp.errors import ForbiddenError
from a2c_smcp.oidc.sign_in import SIGN_IN_PATH, SignIn
from a2c_smcp.server.admin.everywhere import ClusterAdmin
from a2c_smcp.server.admin.here import Controls, ProcessAdmin
from a2c_smcp.server.admission import peer_of
from a2c_smcp.server.auth import AuthenticationProvider, OpenAuthentication
from a2c_smcp.server.draining import Draining, DrainTimes
from a2c_smcp.server.engine_lines import EngineLines, engine_bounds
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.loop_lag import measured_lag
from a2c_smcp.server.metrics import Metrics
from a2c_smcp.server.registry import LocalRegistry, Registry
from a2c_smcp.server.switchboard import Switchboard
from a2c_smcp.server.token_auth import OidcAuthentication
from a2c_smcp.web.asgi import ASGIMessage, Receive, Send
from a2c_smcp.web.hosts import AllowedHosts, values_by_name

if TYPE_CHECKING:
    from a2c_smcp.server.cluster.options import ClusterOptions
    from a2c_smcp.server.cluster.tie import ClusterTie

__all__ = ["ServerApp", "create_app"]

logger = logging.getLogger(__name__)

#: What a client hears that is not let in: while the process is draining, and else. The client has shown no key, so it
#: does not hear the reason itself, which may have the names of other machines.
_NOT_READY: Final = {True: b"not ready: draining\n", False: b"not ready: /readyz and the log of the server say why\n"}


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
        switchboard: Switchboard = tie.switchboard(auth, limits, metrics)
    else:
        switchboard = Switchboard(auth, limits=limits, registry=registry, observer=metrics)
    hosts = auth.hosts if isinstance(auth, OpenAuthentication) else None
    admission = switchboard.admission
    engine = Endpoint(
        EngineLines(switchboard, admission, switchboard.namespace),
        engine_bounds(limits, ping_interval, ping_timeout),
        allows_origin=None if hosts is None else lambda origin, _: hosts.allows_origin(origin),
        turns=admission.turns,
    )
    metrics.gauge("a2c_pending_relays", "Requests that wait for an answer.", lambda: switchboard.pending_relays)
    queued = switchboard.queued_bytes
    metrics.gauge("a2c_queued_bytes", "Bytes that wait for clients to read them.", lambda: sum(queued()))
    metrics.gauge("a2c_longest_queue_bytes", "The longest of these queues.", lambda: max(queued(), default=0))
    app = ServerApp(engine, switchboard, metrics, socketio_path, hosts, tie)
    if isinstance(auth, OidcAuthentication):
        app.sign_in, app.tokens = auth.sign_in, auth
        app.beside.append(auth)
    return app


def _tie(options: "ClusterOptions") -> "ClusterTie":
    # This is the only place that imports anything of NATS.
    from a2c_smcp.server.cluster.tie import ClusterTie

    return ClusterTie(options)


class ServerApp:
    """The ASGI application that `create_app` makes. `engine` has its connections, `switchboard` decides."""

    def __init__(
        self,
        engine: Endpoint,
        switchboard: Switchboard,
        metrics: Metrics,
        socketio_path: str,
        hosts: AllowedHosts | None,
        tie: "ClusterTie | None" = None,
    ) -> None:
        self.engine = engine
        self._hosts = hosts
        self.switchboard = switchboard
        self._metrics = metrics
        self._tie = tie
        self._endpoint = f"/{socketio_path.strip('/')}/"
        self.draining = Draining(switchboard)
        """The end of this process: `draining.hurry()` ends its waits."""
        self.beside: list[AbstractAsyncContextManager[object]] = []
        """What is open while the application is served, such as the doors for operators."""
        self.sign_in: SignIn | None = None
        """Whose tokens this server takes. Everybody may know."""
        self.tokens: OidcAuthentication | None = None
        """What checks them."""
        self._drained = False

    async def __call__(self, scope: ASGIMessage, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif self._drained and scope["type"] == "http":
            await _respond(send, 503, b"shutting down\n")
        elif (refusal := self._foreign_name(scope)) is not None:
            await self._refuse(scope, receive, send, refusal)
        elif self.not_ready() is not None and self._is_new(scope):
            await _deny(scope, receive, send, 503, _NOT_READY[self.draining.begun])
        else:
            _trust_proxies_only(scope)
            if scope["path"].startswith(self._endpoint):
                await self.engine(scope, receive, send)
            else:
                await self._http(scope, receive, send)

    async def drain(self, times: DrainTimes | float, tell: Callable[[str], None] = logger.info) -> None:
        """Take no new clients from now on, let those that are here move to other processes, and wait until running
        requests are answered and their answers written. A number is the seconds that this may take.

        Stop the web server next: it closes the connections, and the clients connect again. After a Socket.IO disconnect
        they would not.
        """
        if not isinstance(times, DrainTimes):
            times = DrainTimes(times)
        await self.draining.drain(times, tell)
        self._drained = True
        self.engine.release_polls()

    @property
    def namespace(self) -> Switchboard:
        """The old name of `switchboard`."""
        return self.switchboard

    def not_ready(self) -> str | None:
        """Why this process takes no new clients now; `None` if it does."""
        return "draining" if self.draining.begun else self.switchboard.registry.unavailable()

    def unready(self) -> str | None:
        """Why a load balancer should send nobody here now; `None` if it should. Clients with keys are let in also while
        no token can be checked.
        """
        return self.not_ready() or (None if self.tokens is None else self.tokens.checker.problem)

    def admin(self, controls: Controls) -> ClusterAdmin:
        """What operators may ask of this server, and of the others of its cluster. Call it once."""
        controls.ready, controls.lag = self.unready, lambda: self._metrics.last_lag
        admin = ClusterAdmin(ProcessAdmin(self.switchboard, controls), self._tie)
        if self._tie is not None:
            self._tie.obey(admin.obey)
        return admin

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(measured_lag(self._metrics.lagged))
            while (message := await receive())["type"] != "lifespan.shutdown":
                if self._tie is not None:
                    await stack.enter_async_context(self._tie)
                for part in self.beside:
                    await stack.enter_async_context(part)
                await send({"type": f"{message['type']}.complete"})
            await self.engine.shutdown()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: ASGIMessage, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        match scope["path"]:
            case "/healthz":
                status, body = 200, b"ok\n"
            case "/readyz":
                reason = self.unready()
                status, body = (503, f"{reason}\n".encode()) if reason else (200, b"ready\n")
            case "/metrics":
                status, body = 200, await self._rendered_metrics()
            case path if path == SIGN_IN_PATH and self.sign_in is not None:
                await _respond_json(send, self.sign_in.metadata(), head=scope["method"] == "HEAD")
                return
            case _:
                status, body = 404, b"not found; the Socket.IO endpoint is /socket.io\n"
        await _respond(send, status, body, head=scope["method"] == "HEAD")

    async def _rendered_metrics(self) -> bytes:
        """The metrics. They are made in a turn of clients without a key, because anybody may ask for them often."""
        turns = self.switchboard.admission.turns
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

    async def _refuse(self, scope: ASGIMessage, receive: Receive, send: Send, error: ForbiddenError) -> None:
        address = _address(scope)
        self.switchboard.admission.address_log.warn(address, "refused a request from %s: %s", address, error)
        await _deny(scope, receive, send, 403, f"{error}\n".encode())

    def _is_new(self, scope: ASGIMessage) -> bool:
        """Whether a request wants a new session, or one that is not here. A load balancer asks the next process when a
        process that is not ready refuses such a request.
        """
        if not scope["path"].startswith(self._endpoint):
            return False
        return not self.engine.knows(_session_in(scope))


def _session_in(scope: ASGIMessage) -> str:
    """The id of the Engine.IO session that a request names; empty if it wants a new one."""
    query: str = scope["query_string"].decode("latin-1")
    return parse_qs(query).get("sid", [""])[0]


async def _deny(scope: ASGIMessage, receive: Receive, send: Send, status: int, body: bytes) -> None:
    """Answer a request or the handshake of a websocket."""
    if scope["type"] == "http":
        await _respond(send, status, body)
    elif "websocket.http.response" in (scope.get("extensions") or {}):
        await _respond(send, status, body, kind="websocket.http.response")
    else:
        await send({"type": "websocket.close"})  # which web servers answer with 403


def _address(scope: ASGIMessage) -> str:
    return str(scope["client"][0]) if scope.get("client") else "unknown"


def _trust_proxies_only(scope: ASGIMessage) -> None:
    """Drop `X-Forwarded-Host` unless a trusted proxy sends it: Engine.IO would compare the `Origin` with it."""
    peer = peer_of(scope)
    if peer is None or not peer.trusted:
        scope["headers"] = [header for header in scope["headers"] if header[0] != b"x-forwarded-host"]


async def _respond_json(send: Send, value: dict[str, Any], *, head: bool) -> None:
    body = json.dumps(value).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})


async def _respond(
    send: Send,
    status: int,
    body: bytes,
    *,
    head: bool = False,
    headers: Sequence[tuple[bytes, bytes]] = (),
    kind: str = "http.response",
) -> None:
    length = str(len(body)).encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", length), *headers]
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": b"" if head else body})
