"""A websocket under uvicorn without ASGI's messages: what arrives is decided on in the callback that brought it.

uvicorn documents that `Config(ws=…)` takes a protocol class. Ours extends nothing of it and relies on this: it is made
with `config`, `server_state` and `app_state`; `connection_made` and the whole request in one `data_received` follow
before the transport gets it. `config.loaded_app` is the application, `server_state` has `connections`, which are told
`shutdown`, and `tasks`, which are waited for.

The application decides on the handshake as it would for any websocket, so that middlewares work. An `Endpoint` finds
the websocket in the scope's extensions and takes it over (`carry`); anything else may refuse it, and nothing more.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

from websockets.datastructures import Headers
from websockets.frames import Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from a2c_smcp.engine.connection import EngineConnection
from a2c_smcp.engine.errors import PeerError, TooLargeError
from a2c_smcp.engine.events import TOO_LARGE, TRANSPORT_CLOSE, TRANSPORT_ERROR, UNREADABLE
from a2c_smcp.engine.frames import Special, WebSocketReader, message_frame, text_frame
from a2c_smcp.engine.outgoing import Control, Outgoing, Parcel
from a2c_smcp.engine.server_session import ServerUpgrade
from a2c_smcp.utils.loop_turns import DEPARTURE_SECONDS, OWN_SECONDS, SharedTurns

__all__ = ["DIRECT", "DirectWebSocket", "frame_of"]

logger = logging.getLogger(__name__)

#: Where the scope of a websocket has it.
DIRECT: Final = "a2c_smcp.websocket"
#: Seconds that a peer may take to read what was written before its connection is cut.
_FLUSH_SECONDS: Final = 1.0


def frame_of(parcel: Parcel) -> bytes:
    """The frame of a parcel, made once for all its readers."""
    if isinstance(parcel, Outgoing):
        if parcel.frame is None:
            parcel.frame = message_frame(parcel.text)
        return parcel.frame
    return text_frame(parcel) if isinstance(parcel, Control) else message_frame(parcel)


class DirectWebSocket(asyncio.Protocol):
    """One websocket of the server."""

    __slots__ = (
        "__weakref__",
        "_arriving",
        "_asked",
        "_conn",
        "_end_timer",
        "_paused",
        "_reader",
        "_reading",
        "_refusal",
        "_state",
        "_writable",
        "app",
        "app_state",
        "connection",
        "departures",
        "loop",
        "root_path",
        "scope",
        "transport",
        "turns",
        "upgrade",
    )

    def __init__(
        self,
        config: Any,
        server_state: Any,
        app_state: dict[str, Any],
        *,
        turns: SharedTurns | None = None,
        departures: SharedTurns | None = None,
    ) -> None:
        """`turns` is the time of all connections without a key, `departures` that in which connections end: a server
        has one of each.
        """
        self.loop = asyncio.get_running_loop()
        self.app = config.loaded_app
        self.root_path = config.root_path
        self.app_state = app_state
        self.transport: asyncio.Transport
        self.turns = turns or SharedTurns()
        self.departures = departures or SharedTurns()
        self.connection: EngineConnection | None = None
        self.upgrade: ServerUpgrade | None = None
        self.scope: MutableMapping[str, Any] = {}
        self._state = server_state
        self._conn: ServerProtocol | None = ServerProtocol(max_size=None)
        self._reader = WebSocketReader(0, from_client=True)
        self._asked = False
        self._reading = False
        self._paused = False
        self._writable = True
        self._refusal: tuple[int, Headers] | None = None
        self._end_timer: asyncio.TimerHandle | None = None

    # --- from the network

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # asyncio promises less than it gives
        self._state.connections.add(self)

    def data_received(self, data: bytes) -> None:
        if not self._asked:
            self._asked = True
            self._ask(data)
            return
        self._reader.feed(data)
        if not self._reading:
            if self.connection is not None and self.connection.admitted:
                self._read()
            else:
                self._read_later()

    def eof_received(self) -> bool:
        # Closing takes longer than noticing, and thousands of peers may go at one moment. TLS cannot wait here.
        waits = self.transport.get_extra_info("ssl_object") is None
        if waits:
            self.departures.call(self.transport.close)
        return waits

    def connection_lost(self, exc: Exception | None) -> None:
        self._state.connections.discard(self)
        self.lost()
        self.departures.call(self._end)

    def lost(self) -> None:
        """The transport has gone. What follows from that is done in a turn of its own."""

    def _end(self) -> None:
        if self._end_timer is not None:
            self._end_timer.cancel()
        if self._conn is not None:
            # It would be part of a reference cycle: a connection that has ended would stay in memory.
            self._conn.parser.close()
            self._conn = None
        self._give_up_move()
        connection, self.connection = self.connection, None
        if connection is not None and self.upgrade is None:
            connection.lose()
        self.upgrade = None
        self.departures.owe(DEPARTURE_SECONDS)

    def pause_writing(self) -> None:
        self._writable = False
        if self.connection is not None and self.upgrade is None:
            self.connection.set_writable(False)

    def resume_writing(self) -> None:
        self._writable = True
        if self.connection is not None and self.upgrade is None:
            self.connection.set_writable(True)

    def shutdown(self) -> None:
        """The web server stops."""
        if self.connection is None:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, Headers(), b"")
        else:
            self._close(1012)

    # --- the handshake

    def _ask(self, data: bytes) -> None:
        conn = self._conn
        assert conn is not None
        conn.receive_data(data)
        request = next((each for each in conn.events_received() if isinstance(each, Request)), None)
        if request is None:
            self.transport.close()
            return
        response = conn.accept(request)
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self._respond(response)
            return
        path, _, query = request.path.partition("?")
        secure = self.transport.get_extra_info("sslcontext") is not None
        client, server = self.transport.get_extra_info("peername"), self.transport.get_extra_info("sockname")
        headers = [
            (name.lower().encode("ascii"), value.encode("latin-1")) for name, value in request.headers.raw_items()
        ]
        self.scope = {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "wss" if secure else "ws",
            "server": (str(server[0]), int(server[1])) if isinstance(server, tuple) else None,
            "client": (str(client[0]), int(client[1])) if isinstance(client, tuple) else None,
            "root_path": self.root_path,
            "path": self.root_path + unquote(path),
            "raw_path": (self.root_path + path).encode("ascii", "replace"),
            "query_string": query.encode("ascii", "replace"),
            "headers": headers,
            "subprotocols": [],
            "state": self.app_state.copy(),
            "extensions": {"websocket.http.response": {}, DIRECT: self},
        }
        self.asked()
        self._arriving = response
        task = self.loop.create_task(self._run(self.app))
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    def asked(self) -> None:
        """The request has arrived and is a websocket's. Its scope may be changed."""

    async def _run(self, app: Any) -> None:
        try:
            await app(self.scope, self._receive, self._answer)
        except Exception:
            logger.exception("the application failed in the handshake of a websocket")
        if self.connection is None:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, Headers(), b"")  # unless it has refused

    async def _receive(self) -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def _answer(self, message: Mapping[str, Any]) -> None:
        match message["type"]:
            case "websocket.http.response.start":
                headers = Headers((key.decode("latin-1"), value.decode("latin-1")) for key, value in message["headers"])
                self._refusal = message["status"], headers
            case "websocket.http.response.body" if self._refusal is not None:
                self._refuse(*self._refusal, message["body"])
            case "websocket.close":
                self._refuse(HTTPStatus.FORBIDDEN, Headers(), b"")
            case kind:
                raise RuntimeError(f"{kind}: nothing but an endpoint of the engine can take a websocket here")

    def _refuse(self, status: int, headers: Headers, body: bytes) -> None:
        if self.transport.is_closing() or self._conn is None:
            return
        headers.setdefault("Connection", "close")
        headers.setdefault("Content-Length", str(len(body)))
        self._respond(Response(int(status), HTTPStatus(status).phrase, headers, body))

    def _respond(self, response: Response) -> None:
        assert self._conn is not None
        self._conn.send_response(response)
        self._write_control()
        self.transport.close()

    def carry(
        self,
        connection: EngineConnection,
        upgrade: ServerUpgrade | None,
        scope: MutableMapping[str, Any],
        patience: float,
    ) -> None:
        """Accept the websocket. It carries this session from now on, or is the one that its client wants to move to and
        has some seconds for.
        """
        if self.transport.is_closing() or self._conn is None:
            if upgrade is None:
                connection.lose()
            return
        self._conn.send_response(self._arriving)
        self._write_control()
        scope["extensions"].pop(DIRECT)  # it would be part of a reference cycle
        del self._arriving
        self.connection, self.upgrade, self.scope = connection, upgrade, scope
        if upgrade is None:
            self.transport.write(text_frame(connection.session.greeting))
            self._carries(connection)
        elif upgrade.over:
            self._close()
        else:
            self._end_timer = self.loop.call_later(patience, self._close)
        self._read_later()

    def _carries(self, connection: EngineConnection) -> None:
        connection.session.writable = self._writable
        connection.carried_by(self, self.scope)

    # --- what arrives

    def _read_later(self) -> None:
        self._reading = True
        self._pause()
        if self.connection is not None and self.connection.admitted:
            self.loop.call_soon(self._read)
        else:
            self.turns.call(self._read)

    def _read(self) -> None:
        """Take what has arrived, for as long as it is this connection's turn."""
        self._reading = False
        connection = self.connection
        if connection is None or self.transport.is_closing():
            return
        reader, until = self._reader, time.perf_counter() + OWN_SECONDS
        try:
            while not connection.is_held:
                reader.limit = connection.session.limit
                if (arrived := reader.next_arrived()) is None:
                    self._resume()
                    return
                if type(arrived) is str:
                    if self.upgrade is None:
                        connection.take(arrived)
                    else:
                        self._move(arrived)
                elif isinstance(arrived, bytes):
                    self._take_control(arrived)
                elif arrived is Special.BINARY:
                    connection.take_binary()
                if self.transport.is_closing():
                    return
                if not connection.admitted or time.perf_counter() >= until:
                    break  # others are next
            else:
                self._pause()
                return  # it goes on when the connection says so
        except PeerError as error:
            too_large = isinstance(error, TooLargeError)
            if self.upgrade is None:
                connection.session.end(TOO_LARGE if too_large else TRANSPORT_ERROR, f"a message has {error}")
            self._close(1009 if too_large else 1007)
            return
        if reader.waiting_bytes:
            self._read_later()
        else:
            self._resume()

    def _pause(self) -> None:
        if not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def _resume(self) -> None:
        if self._paused and not self.transport.is_closing():
            self._paused = False
            self.transport.resume_reading()

    def _take_control(self, frame: bytes) -> None:
        conn = self._conn
        assert conn is not None
        conn.receive_data(frame)
        if any(getattr(event, "opcode", None) in (Opcode.TEXT, Opcode.BINARY) for event in conn.events_received()):
            conn.fail(1002)
        if self._writable or conn.state is not State.OPEN:
            self._write_control()
        else:
            conn.data_to_send()  # drops the pong: this peer does not read
        if conn.state is not State.OPEN:
            if conn.close_rcvd is not None and conn.close_rcvd.code == 1009 and self.connection is not None:
                self.connection.session.end(TRANSPORT_CLOSE, UNREADABLE)
            self.close()

    def _move(self, packet: str) -> None:
        upgrade, connection = self.upgrade, self.connection
        assert upgrade is not None
        assert connection is not None
        if (reply := upgrade.receive(packet)) is not None:
            self.transport.write(text_frame(reply))
            connection.answer_poll()
        if upgrade.over:
            self._close()
        elif upgrade.moved:
            self.upgrade = None
            if self._end_timer is not None:
                self._end_timer.cancel()
            self._carries(connection)

    def _give_up_move(self) -> None:
        if self.upgrade is not None:
            self.upgrade.give_up()

    # --- what the connection asks for

    def write(self, parcel: Parcel) -> None:
        if not self.transport.is_closing():
            self.transport.write(frame_of(parcel))

    def unwritten(self) -> int:
        return self.transport.get_write_buffer_size()

    def go_on(self) -> None:
        if not self._reading:
            self._read_later()

    def close(self) -> None:
        self._close()

    def _close(self, code: int = 1000) -> None:
        if self._conn is None or self.transport.is_closing():
            return
        if self._conn.state is State.OPEN:
            self._conn.send_close(code)
            self._write_control()
        self.transport.close()
        if self._end_timer is not None:
            self._end_timer.cancel()
        self._end_timer = self.loop.call_later(_FLUSH_SECONDS, self.transport.abort)
        if self.connection is not None and self.upgrade is None and not self.connection.is_open:
            self.loop.call_soon(self.connection.lose)

    def _write_control(self) -> None:
        assert self._conn is not None
        data = b"".join(self._conn.data_to_send())
        if data and not self.transport.is_closing():
            self.transport.write(data)
