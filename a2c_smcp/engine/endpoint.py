"""An endpoint of Engine.IO as an ASGI application: sessions that poll, and websockets.

Under uvicorn with `DirectWebSocket` a websocket is taken over by that; under any other server it comes as ASGI's
messages. The bounds that hold before a request is read are the web server's.
"""

import asyncio
import itertools
import json
import random
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from a2c_smcp.engine.bounds import EngineBounds
from a2c_smcp.engine.connection import EngineApplication, EngineConnection
from a2c_smcp.engine.direct import DIRECT, DirectWebSocket
from a2c_smcp.engine.errors import PeerError, TooLargeError
from a2c_smcp.engine.outgoing import Parcel, packet_of
from a2c_smcp.engine.packets import join_packets
from a2c_smcp.engine.server_session import Carrier, ServerUpgrade
from a2c_smcp.utils.loop_turns import TASK_SECONDS, OwnTurn, SharedTurns
from a2c_smcp.web.asgi import ASGIMessage, Receive, Send

__all__ = ["Endpoint"]

#: Characters that may wait for a websocket of another web server before it counts as full.
_HIGH_WATER: Final = 64 * 1024
_TEXT: Final = b"text/plain; charset=UTF-8"
# Unique in the process: a client acks on its current connection, so after a reconnect a late ack could answer another
# question. They start at a random number, so that a restarted process does not repeat them. JavaScript counts to 2**53.
_NUMBERS: Final = itertools.count(random.randrange(2**40, 2**50)).__next__


class Endpoint:
    """All sessions of one application. Call `shutdown` at the end."""

    def __init__(
        self,
        application: EngineApplication,
        bounds: EngineBounds,
        *,
        allows_origin: Callable[[str, Mapping[str, Any]], bool] | None = None,
        turns: SharedTurns | None = None,
    ) -> None:
        """`allows_origin` decides on the `Origin` of a request with this scope; by default it must be the server's own.
        `turns` is the time of all connections without a key.
        """
        self.bounds = bounds
        self.connections: dict[str, EngineConnection] = {}
        self._application = application
        self._allows_origin = allows_origin or is_own_origin
        self._turns = turns or SharedTurns()

    async def __call__(self, scope: ASGIMessage, receive: Receive, send: Send) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        reply = _EngineReply(scope, receive, send)
        origin = headers.get(b"origin")
        if origin is not None:
            if not self._allows_origin(origin, scope):
                await reply.refuse(f"{origin} is not an accepted origin.")
                return
            reply.allow(origin)
        query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=100)
        transport, sid = query.get("transport", [""])[0], query.get("sid", [""])[0]
        method = scope.get("method", "GET")
        try:
            if transport not in ("polling", "websocket"):
                raise PeerError("Transport unknown")
            if method == "OPTIONS":
                await reply.text("ok")
                return
            if query.get("EIO", ["4"] if sid else []) != ["4"]:
                raise PeerError("Unsupported protocol version")
            connection = self.connections.get(sid)
            if sid and connection is None:
                raise PeerError("Session ID unknown")
            if scope["type"] == "websocket":
                await self._websocket(scope, receive, send, connection)
            elif transport != "polling" or method not in ("GET", "POST"):
                raise PeerError("Bad handshake method" if transport == "polling" else "Bad request")
            elif connection is None:
                if method != "GET":
                    raise PeerError("Bad handshake method")
                await reply.text(self._open(Carrier.POLLING, scope).session.greeting)
            else:
                with self._application.carrying(connection, scope):
                    if method == "GET":
                        await self._poll(connection, receive, reply)
                    else:
                        await self._post(connection, headers, receive, reply)
        except TooLargeError as error:
            await reply.text(str(error), 413)
        except PeerError as error:
            await reply.refuse(str(error))

    def _open(self, carrier: Carrier, scope: ASGIMessage) -> EngineConnection:
        sid = secrets.token_urlsafe(15)
        connection = EngineConnection(
            sid, self._application, self.bounds, carrier, scope, _NUMBERS, self.connections.pop
        )
        self.connections[sid] = connection
        return connection

    def knows(self, sid: str) -> bool:
        """Whether this session is here."""
        return sid in self.connections

    def release_polls(self) -> None:
        """From now on no poll waits, so that the web server can stop without cutting one off."""
        for connection in list(self.connections.values()):
            connection.release_poll()

    async def shutdown(self) -> None:
        """End all sessions that are left."""
        for connection in list(self.connections.values()):
            connection.close()
        await asyncio.sleep(0)

    # --- polling

    async def _poll(self, connection: EngineConnection, receive: Receive, reply: "_EngineReply") -> None:
        poll: asyncio.Future[Any] = connection.poll()
        if not poll.done():
            gone: asyncio.Future[Any] = asyncio.ensure_future(_gone(receive))
            try:
                await asyncio.wait({poll, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
                if not poll.done():
                    connection.lose_poll(poll)
                    poll.cancel()
            if poll.cancelled():
                return
        await reply.text(join_packets(poll.result()))

    async def _post(
        self, connection: EngineConnection, headers: Mapping[bytes, str], receive: Receive, reply: "_EngineReply"
    ) -> None:
        body = await self._body(connection, headers.get(b"content-length", "0"), receive)
        if body is None:
            return
        began = await self._begin(connection)
        try:
            packets = connection.session.split(body)
        except TooLargeError:
            connection.lose()
            raise
        except PeerError as error:
            connection.bad(str(error))
            packets = []
        del body
        await self._end(connection, began)
        for packet in packets:
            await connection.free()  # another POST may have brought what holds it
            if not connection.is_open:
                break
            began = await self._begin(connection)
            connection.take(packet)
            await self._end(connection, began)
            await connection.free()
        if not connection.is_open and connection.session.bad_packets >= self.bounds.bad_packets:
            raise PeerError("Bad request")
        await reply.text("ok")

    async def _body(self, connection: EngineConnection, declared: str, receive: Receive) -> bytearray | None:
        """The body of a POST, which is not read beyond the limit; `None` if the client has gone."""
        body = bytearray()
        try:
            connection.session.check_post(int(declared) if declared.isdecimal() and len(declared) < 19 else 1 << 62)
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body") or b""
                connection.session.check_post(len(body))
                if not message.get("more_body"):
                    return body
        except TooLargeError:
            connection.lose()
            raise

    # A connection with a key yields after a few milliseconds; the connections without one take turns.

    async def _begin(self, connection: EngineConnection) -> float:
        if not connection.admitted:
            await self._turns.wait()
        return time.perf_counter()

    async def _end(self, connection: EngineConnection, began: float, turn: OwnTurn | None = None) -> None:
        spent = time.perf_counter() - began
        if not connection.admitted:
            self._turns.used(spent)
        elif turn is not None:
            await turn.used(spent + TASK_SECONDS)
        else:
            await asyncio.sleep(0)

    # --- websockets

    async def _websocket(
        self, scope: ASGIMessage, receive: Receive, send: Send, connection: EngineConnection | None
    ) -> None:
        upgrade = None if connection is None else ServerUpgrade(connection.session)
        if connection is None:
            connection = self._open(Carrier.WEBSOCKET, scope)
        direct = (scope.get("extensions") or {}).get(DIRECT)
        if isinstance(direct, DirectWebSocket):
            direct.carry(connection, upgrade, scope, self.bounds.ping_timeout)
        else:
            await _PlainWebSocket(self, scope, receive, send).serve(connection, upgrade)

    async def serve_plain(self, connection: EngineConnection, texts: "_PlainWebSocket") -> None:
        """Take what comes by a websocket of another web server, until it ends."""
        turn = OwnTurn()
        while connection.is_open and (arrived := await texts.next_text()) is not None:
            await connection.free()
            began = await self._begin(connection)
            if isinstance(arrived, str):
                connection.take(arrived)
            else:
                connection.take_binary()
            await self._end(connection, began, turn)


class _PlainWebSocket:
    """A websocket that comes as messages of ASGI."""

    def __init__(self, endpoint: Endpoint, scope: ASGIMessage, receive: Receive, send: Send) -> None:
        self._endpoint = endpoint
        self._scope = scope
        self._receive = receive
        self._send = send
        self._texts: deque[str] = deque()
        self._waiting = 0
        self._wake: asyncio.Future[None] | None = None
        self._closed = False
        self._connection: EngineConnection | None = None
        self._task: asyncio.Task[Any] | None = None

    async def serve(self, connection: EngineConnection, upgrade: ServerUpgrade | None) -> None:
        await self._receive()  # websocket.connect
        await self._send({"type": "websocket.accept"})
        self._task = asyncio.current_task()
        if upgrade is not None and not await self._moves(connection, upgrade):
            await self._send({"type": "websocket.close"})
            return
        self._connection = connection
        if upgrade is None:
            self._put(connection.session.greeting)
        connection.carried_by(self, self._scope)
        writer = asyncio.ensure_future(self._write())
        try:
            await self._endpoint.serve_plain(connection, self)
        finally:
            connection.lose()
            await asyncio.wait({writer}, timeout=1.0)
            writer.cancel()

    async def _moves(self, connection: EngineConnection, upgrade: ServerUpgrade) -> bool:
        try:
            async with asyncio.timeout(self._endpoint.bounds.ping_timeout):
                while not upgrade.moved and not upgrade.over:
                    packet = await self.next_text()
                    if not isinstance(packet, str):
                        break
                    if (reply := upgrade.receive(packet)) is not None:
                        await self._send({"type": "websocket.send", "text": reply})
                        connection.answer_poll()
        except TimeoutError:
            pass
        if not upgrade.moved:
            upgrade.give_up()
        return upgrade.moved

    async def next_text(self) -> str | bytes | None:
        message = await self._receive()
        if message["type"] != "websocket.receive":
            return None
        text: str | None = message.get("text")
        return message.get("bytes") or b"" if text is None else text

    async def _write(self) -> None:
        # If writing fails, the peer has gone. The reader sees that, too.
        try:
            while True:
                while self._texts:
                    text = self._texts.popleft()
                    self._waiting -= len(text)
                    await self._send({"type": "websocket.send", "text": text})
                    del text
                    if self._connection is not None and self._waiting < _HIGH_WATER:
                        self._connection.set_writable(True)
                if self._closed:
                    await self._send({"type": "websocket.close"})
                    return
                self._wake = asyncio.get_running_loop().create_future()
                await self._wake
                self._wake = None
        except (OSError, RuntimeError):
            pass

    def _put(self, text: str) -> None:
        self._texts.append(text)
        self._waiting += len(text)
        if self._waiting >= _HIGH_WATER and self._connection is not None:
            self._connection.session.writable = False
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def write(self, parcel: Parcel) -> None:
        self._put(packet_of(parcel))

    def unwritten(self) -> int:
        return self._waiting

    def go_on(self) -> None:
        """Its reader waits for `free`."""

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._wake is not None and not self._wake.done():
                self._wake.set_result(None)
            if self._task is not None and self._task is not asyncio.current_task():
                asyncio.get_running_loop().call_later(1.0, self._task.cancel)


class _EngineReply:
    """The answer to a request, or to the handshake of a websocket."""

    def __init__(self, scope: ASGIMessage, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._headers: list[tuple[bytes, bytes]] = []

    def allow(self, origin: str) -> None:
        """Let the pages of this origin read the answer."""
        self._headers = [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-allow-credentials", b"true"),
        ]
        if self._scope.get("method") == "OPTIONS":
            self._headers.append((b"access-control-allow-methods", b"OPTIONS, GET, POST"))
            wanted = [value for name, value in self._scope["headers"] if name == b"access-control-request-headers"]
            self._headers += [(b"access-control-allow-headers", value) for value in wanted]

    async def refuse(self, message: str) -> None:
        await self.text(json.dumps({"message": message}), 400)

    async def text(self, text: str, status: int = 200) -> None:
        body = text.encode()
        kind = "http.response"
        if self._scope["type"] == "websocket":
            if "websocket.http.response" not in (self._scope.get("extensions") or {}):
                await self._send({"type": "websocket.close"})  # which web servers answer with 403
                return
            kind = "websocket.http.response"
        headers = [(b"content-type", _TEXT), (b"content-length", str(len(body)).encode()), *self._headers]
        if status == 413:
            headers.append((b"connection", b"close"))
        await self._send({"type": f"{kind}.start", "status": status, "headers": headers})
        await self._send({"type": f"{kind}.body", "body": body})


async def _gone(receive: Receive) -> None:
    """Return when the client of a GET no longer waits for its answer."""
    while (await receive())["type"] != "http.disconnect":
        pass


def is_own_origin(origin: str, scope: Mapping[str, Any]) -> bool:
    """Whether this is the origin of the server, as its client, or a proxy, names it."""
    return origin in _own_origins(scope)


def _own_origins(scope: Mapping[str, Any]) -> Iterator[str]:
    given = {name: value.decode("latin-1") for name, value in scope["headers"]}
    scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
    if host := given.get(b"host"):
        yield f"{scheme}://{host}"
    forwarded = given.get(b"x-forwarded-host", host or "").split(",")[0].strip()
    yield f"{given.get(b'x-forwarded-proto', scheme).split(',')[0].strip()}://{forwarded}"
