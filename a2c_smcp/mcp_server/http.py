"""A `ContextServer` over streamable HTTP: an ASGI application that checks who asks, and the command that serves it."""

import hashlib
import hmac
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from a2c_smcp.mcp_server import cors
from a2c_smcp.mcp_server.mcp_server_internals import is_cancelled_answer
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.web.asgi import ASGIMessage, Receive, Send
from a2c_smcp.web.connection_places import vouch
from a2c_smcp.web.hosts import AllowedHosts, Refusal, is_loopback, is_unspecified, values_by_name
from a2c_smcp.web.http_surface import SurfaceConfig
from a2c_smcp.web.uvicorn_server import GracefulServer, listen

if TYPE_CHECKING:
    from a2c_smcp.mcp_server.people import TokenGate
    from a2c_smcp.mcp_server.server import ContextServer
from a2c_smcp.terminal.screen import say

__all__ = ["Gate", "HttpApp", "serve"]

logger = logging.getLogger(__name__)

_SESSION_HEADER = "mcp-session-id"
_CLOSE_SECONDS = 2
#: Where a request has the moment at which its token ends.
_EXPIRES_AT = "a2c_smcp.expires_at"
#: Bytes of one request.
_MAX_REQUEST = 16 * 2**20


_NOT_RUNNING = "a request came while the application does not run: enter running() in the outer lifespan"
_STALLED = "a client has read nothing for %g s: its request is ended"


class Gate:
    """Decides by its headers whether a request is let in. Pure.

    `hosts` are the names of the server beside those of loopback; `"*"` allows any. If there is a `token`, the request
    has to show it as `Authorization: Bearer …`.
    """

    def __init__(self, hosts: Iterable[str] = (), token: str | None = None) -> None:
        if token is not None and (not token or not token.isascii() or not token.isprintable() or " " in token):
            raise ValueError("a bearer token is a text of printable ASCII characters without blanks")
        self._hosts = AllowedHosts(hosts)
        self._token = None if token is None else _digest(token)

    @property
    def has_token(self) -> bool:
        return self._token is not None

    def refusal(self, headers: Iterable[tuple[str, str]]) -> Refusal | None:
        """Why a request with these headers is refused; `None` if it is let in. The names of the headers are in lower
        case.
        """
        given = values_by_name(headers)
        return self.wrong_name(given) or self.wrong_token(given)

    def wrong_name(self, given: Mapping[str, Sequence[str]]) -> Refusal | None:
        """Why the `Host` or the `Origin` of a request is refused. `given` has the values of each header."""
        return self._hosts.refusal(given.get("host", ()), given.get("origin", ()))

    def wrong_token(self, given: Mapping[str, Sequence[str]]) -> Refusal | None:
        """Why the token of a request is refused."""
        if self._token is not None:
            scheme, _, shown = " ".join(given.get("authorization", ())).partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(_digest(shown.strip()), self._token):
                return Refusal(401, "a bearer token is needed")
        return None


class HttpApp:
    """The server as an ASGI application.

    On its own, its lifespan starts it. Mounted in another application, that application's lifespan has to enter
    `running()`. It answers at `path`, below its mount point. `hosts` and `token` are as in `Gate`. `stall_seconds` is
    how long a client may leave a message unread before its request is ended. `people` lets hosts in with tokens of an
    issuer, beside the `token`.
    """

    def __init__(
        self,
        server: "ContextServer",
        *,
        path: str = "/mcp",
        hosts: Iterable[str] = (),
        token: str | None = None,
        stall_seconds: float = 60.0,
        people: "TokenGate | None" = None,
    ) -> None:
        self._server = server
        self._people = people
        self._path = path.rstrip("/")
        self._gate = Gate(hosts, token)
        self._stall_seconds = stall_seconds
        self._manager: StreamableHTTPSessionManager | None = None
        self._streams: set[anyio.CancelScope] = set()
        self._log = LimitedLog(logger)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve requests inside this block."""
        if self._manager is not None:
            raise RuntimeError("this application runs already")
        # mcp's manager serves only once, so every run needs a new one.
        manager = StreamableHTTPSessionManager(self._server.mcp, max_request_body_size=_MAX_REQUEST)
        async with manager.run():
            self._manager = manager
            try:
                yield
            finally:
                self._manager = None
                self.end_streams()

    def end_streams(self) -> None:
        """End the streams that would otherwise stay open for ever, so that a stop does not wait for them."""
        self._server.sessions.end_listens()
        for scope in self._streams:
            scope.cancel()

    async def __call__(self, scope: ASGIMessage, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await self._lifespan(receive, send)
            case "http":
                await self._request(scope, receive, send)
            case "websocket":
                await send({"type": "websocket.close"})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            await receive()
            await stack.enter_async_context(self.running())
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _request(self, scope: ASGIMessage, receive: Receive, send: Send) -> None:
        given = values_by_name(
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]
        )
        path = scope["path"].removeprefix(scope.get("root_path", "")).rstrip("/")
        describes = self._people is not None and self._people.describes(path)
        if path != self._path and not describes:
            await _respond(send, Refusal(404, f"not found; the MCP endpoint is {self._path or '/'}"))
            return
        if (refusal := self._gate.wrong_name(given)) is not None:
            await self._refuse(scope, send, refusal)
            return
        send = _with_headers(send, cors.for_page(given))
        if cors.is_preflight(scope["method"], given):
            vouch(scope, False)
            await send({"type": "http.response.start", "status": 204, "headers": cors.preflight(given)})
            await send({"type": "http.response.body", "body": b""})
        elif describes:
            vouch(scope, False)
            await self._describe(send)
        elif (refusal := await self._wrong_credentials(scope, given)) is not None:
            await self._refuse(scope, send, refusal, self._challenge(refusal, given))
        elif (manager := self._manager) is None:
            self._log.warn("such requests", _NOT_RUNNING)
            await _respond(send, Refusal(503, "not running"))
        else:
            vouch(scope, True)
            session_id = given.get(_SESSION_HEADER, [None])[-1] if scope["method"] == "GET" else None
            await self._serve(manager, session_id, scope, receive, send)

    async def _wrong_credentials(self, scope: ASGIMessage, given: Mapping[str, Sequence[str]]) -> Refusal | None:
        """Why a request is refused. Of one that is let in with a token of an issuer, the scope has the person."""
        if self._people is None:
            return self._gate.wrong_token(given)
        if self._gate.has_token and self._gate.wrong_token(given) is None:
            return None
        outcome = await self._people.admit(given)
        if isinstance(outcome, Refusal):
            return outcome
        # mcp ties sessions to this user.
        scope["user"], scope[_EXPIRES_AT] = outcome[0], outcome[1].expires_at
        return None

    def _challenge(self, refusal: Refusal, given: Mapping[str, Sequence[str]]) -> str:
        return "Bearer" if self._people is None else self._people.challenge(refusal, given)

    async def _describe(self, send: Send) -> None:
        assert self._people is not None
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"max-age=300")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self._people.description()})

    async def _refuse(self, scope: ASGIMessage, send: Send, refusal: Refusal, challenge: str = "Bearer") -> None:
        vouch(scope, False)
        self._log.warn("refused requests", "refused a request: %s", refusal.reason)
        await _respond(send, refusal, challenge)

    async def _serve(
        self,
        manager: StreamableHTTPSessionManager,
        stream_of: str | None,
        scope: ASGIMessage,
        receive: Receive,
        send: Send,
    ) -> None:
        """Let mcp answer.

        `stream_of` is the older session whose notifications this request carries; `None` for all other requests. While
        a session has no such stream, its notices wait. A client that leaves a message unread for too long would keep
        its request and everything that waits for it. So that request is ended.
        """
        opened = ended = stalled = False

        async def watched(message: ASGIMessage) -> None:
            nonlocal opened, ended, stalled
            if is_cancelled_answer(message.get("body", b"")):
                return  # a request that its client took back gets no answer: its stream ends
            # Bytes per second. A client that reads a large message at this rate is slow, but not gone.
            with anyio.move_on_after(self._stall_seconds + len(message.get("body", b"")) / 2**14) as patience:
                await send(message)
            if patience.cancelled_caught:
                stalled = True
                self._log.warn("slow clients", _STALLED, self._stall_seconds)
                exchange.cancel()
                await anyio.sleep_forever()
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            if stream_of is not None and message["type"] == "http.response.start" and message["status"] == 200:
                opened = True
                self._server.sessions.stream_opened(stream_of)

        body_came = False

        async def received() -> ASGIMessage:
            """mcp reports a fault if a client leaves in the middle of its request."""
            nonlocal body_came
            message = await receive()
            if message["type"] == "http.disconnect" and not body_came:
                exchange.cancel()
                await anyio.sleep_forever()
            body_came = body_came or not message.get("more_body", False)
            return message

        with anyio.CancelScope() as exchange:
            if stream_of is not None:
                self._streams.add(exchange)
                if (until := scope.get(_EXPIRES_AT)) is not None:
                    # The stream of notifications ends with the token that opened it. Its client opens another one.
                    exchange.deadline = anyio.current_time() + max(0.0, until - time.time())
            try:
                await manager.handle_request(scope, received, watched)
            finally:
                self._streams.discard(exchange)
                if stream_of is not None and opened:
                    self._server.sessions.stream_closed(stream_of)
        if exchange.cancelled_caught and opened and not ended and not stalled:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _with_headers(send: Send, headers: cors.Headers) -> Send:
    """`send`, with these headers in the answer."""
    if not headers:
        return send

    async def sending(message: ASGIMessage) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return sending


async def _respond(send: Send, refusal: Refusal, challenge: str = "Bearer") -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    if refusal.status == 401:
        headers.append((b"www-authenticate", challenge.encode("latin-1", "replace")))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{refusal.reason}\n".encode()})


# --- the command


async def serve(
    server: "ContextServer",
    port: int,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    hosts: Iterable[str] = (),
    path: str = "/mcp",
    ready: Callable[[str], None] | None = None,
    people: "Callable[[str], TokenGate] | None" = None,
) -> None:
    """Serve until SIGINT or SIGTERM.

    Port 0 means that the system picks one. `ready` gets the address; without `ready` it is printed on stderr. To serve
    other machines, give a `token` and the `hosts` by which they reach this one. `people` makes the gate for tokens of
    an issuer, from the address.
    """
    if not is_loopback(host):
        if token is None and people is None:
            raise ValueError(
                f"refusing to serve {host} without a token: every machine that reaches it could use this server"
            )
        hosts = [*hosts, *([] if is_unspecified(host) else [host])]
        if not hosts:
            raise ValueError(f"say by which names {host} is reached, as in hosts=['docs.example.com'], or hosts=['*']")
    with listen(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}{path}"
        gate = None if people is None else people(address)
        app = HttpApp(server, path=path, hosts=hosts, token=token, people=gate)
        tell = ready or (lambda url: say(f"{server.name} ready on {url}", err=True))

        async def ending() -> None:
            app.end_streams()

        config = SurfaceConfig(app, timeout_graceful_shutdown=_CLOSE_SECONDS)
        async with nullcontext() if gate is None else gate.checker:
            await GracefulServer(config, ready=lambda: tell(address), ending=ending).serve([listener])


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
