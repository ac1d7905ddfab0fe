"""uvicorn with limits that hold before a request is read. What we use of uvicorn beyond its documentation is here, and,
for starting and stopping it, in `a2c_smcp.utils.uvicorn_server`.

uvicorn documents that `Config(http=…, ws=…)` take protocol classes. Ours extend `HttpToolsProtocol` and
`WebSocketsSansIOProtocol`, which are not documented, and rely on this:

- *Both* are made with `config`, `server_state` and `app_state`, have `transport`, `client`, `config`, `loop`, `logger`,
  and keep their `scope` as an attribute. Why: the scope is how a request and the connection under it are brought
  together.
- *HTTP* hands its bytes to `parser` in `data_received`, which may be given them in pieces of any size; calls
  `on_message_begin`, `on_headers_complete`, `on_body`, `on_message_complete` and `on_response_complete` at the moments
  that the names say, has the `url` of a request, answers by `send_400_response` when one of these raises, and reads no
  further; keeps requests that came early in `pipeline`, has a `flow` that pauses reading, and makes its
  websocket by calling `ws_protocol_class`. Why: uvicorn has no deadline for headers, and takes apart in one go whatever
  has arrived.
- *Websockets* get the request in the first call of `data_received` and frames in those that follow; messages go to
  `queue`, reading is paused (`read_paused`) until the queue is empty, which `receive` sees to; `close_timeout` is how
  long a peer may take to answer a close frame; `handle_ping` writes what `conn.data_to_send()` has; `writable` is set
  while the peer reads. Why: the frames of one read are decoded in one go, and pongs for a peer that does not read pile
  up. With `close_sent`, `shutdown` closes and sends no close frame. Why: `conn` refuses to send one after the peer's,
  and that exception would end the server's shutdown.
- `conn.max_message_size` of the *websockets* library is looked at anew for every frame, as soon as its header is there.
  Why: that refuses a message before it has arrived, and can be raised once a key was shown.
- `Config.get_loop_factory` makes the loop, on which `Server` calls `create_server(…, ssl=…)`. Why: a TLS handshake,
  which comes before our protocol hears of a connection, may take a minute.
- `ProxyHeadersMiddleware.trusted_hosts` answers `address in …`. Why: only such a proxy may speak for others.

`tests/server/test_uvicorn_parts.py` has a test for each.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from a2c_smcp.server.admission import Admission, Peer, put_peer
from a2c_smcp.server.app import ServerApp
from a2c_smcp.server.loop_turns import OWN_SECONDS, TASK_SECONDS
from a2c_smcp.server.websocket_frames import FrameFinder
from a2c_smcp.utils.limited_log import SparseFilter

__all__ = ["GuardedConfig", "GuardedHTTP", "GuardedWebSocket"]

#: Bytes of HTTP that are taken apart at once: before a key was shown, and after.
_FIRST_PIECE: Final = 2 * 1024
_PIECE: Final = 16 * 1024
#: What of a body must arrive in the time that headers may take.
_BODY_PIECE: Final = 16 * 1024
#: Bytes that may come between two parts of a request, its head for instance.
_MOST_HEAD: Final = 64 * 1024
#: What a URL may have beside its office, and how many fields its query. They are looked up before a key was shown.
_MOST_URL: Final = 1024
_MOST_FIELDS: Final = 32
#: Bytes of a character that is percent-encoded.
_ENCODED: Final = 12
#: Headers that a request may have.
_MOST_HEADERS: Final = 100
#: Frames that are decoded at once.
_FRAMES: Final = 16

#: How long a peer may take to answer that the connection is closed.
_CLOSE_SECONDS: Final = 1.0

# What uvicorn and websockets themselves say of a connection: at INFO that it opened and closed.
_libraries = logging.getLogger(f"{__name__}.libraries")
_libraries.setLevel(logging.WARNING)


def _without_traceback(record: logging.LogRecord) -> bool:
    """uvicorn takes text that is not UTF-8 for a fault; it is a peer's."""
    if record.exc_info and isinstance(record.exc_info[1], UnicodeDecodeError):
        record.exc_info = None
    return True


_libraries.addFilter(SparseFilter())
_libraries.addFilter(_without_traceback)


class GuardedConfig(uvicorn.Config):
    """A uvicorn configuration for a `ServerApp`, with its rules of admission; takes the options of `uvicorn.Config`."""

    def __init__(self, app: ServerApp, **options: Any) -> None:
        self.admission = app.namespace.admission
        defaults: dict[str, Any] = {
            "log_config": None,
            "access_log": False,
            "server_header": False,
            "lifespan": "on",
            "ws_ping_interval": None,  # Engine.IO has pings of its own
            "ws_per_message_deflate": False,
        }
        fixed: dict[str, Any] = {
            "http": GuardedHTTP,
            "ws": GuardedWebSocket,
            "ws_max_size": self.admission.limits.max_message,
        }
        super().__init__(app, **{**defaults, **options, **fixed})

    def get_loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop]:
        """uvicorn's own event loop, on which a TLS handshake has no more time than the headers of a request."""
        make = super().get_loop_factory() or asyncio.new_event_loop

        def make_guarded() -> asyncio.AbstractEventLoop:
            loop: Any = make()
            create_server = loop.create_server

            async def create_guarded(*args: Any, ssl: Any = None, **options: Any) -> Any:
                if ssl is not None:
                    options["ssl_handshake_timeout"] = self.admission.limits.header_timeout
                return await create_server(*args, ssl=ssl, **options)

            loop.create_server = create_guarded
            guarded: asyncio.AbstractEventLoop = loop
            return guarded

        return make_guarded

    def trusts(self, address: str) -> bool:
        """Whether a proxy at this address is believed."""
        app = self.loaded_app
        return isinstance(app, ProxyHeadersMiddleware) and address in app.trusted_hosts


class GuardedHTTP(HttpToolsProtocol):
    """HTTP whose headers must come in time, from an address that has not too many connections, a piece at a time."""

    config: GuardedConfig

    def __init__(self, config: GuardedConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self.logger = _libraries
        self.admission: Admission = config.admission
        self.peer = self._new_peer()
        self.ws_protocol_class = partial(GuardedWebSocket, carrier=self)  # type: ignore[assignment]
        self._arrived: deque[bytes | memoryview] = deque()
        self._reading = False
        self._upgraded = False
        self._body_bytes = 0
        self._head_bytes = 0
        self._refusal: bytes | None = None
        self._patience: asyncio.TimerHandle | None = None

    def _new_peer(self) -> Peer:
        address = self.client[0] if self.client else "unknown"
        limits = self.admission.limits
        trusted = self.config.trusts(address)
        return Peer(address, trusted, None, min(limits.first_messages, limits.max_message))

    # --- from the network

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.peer = self._new_peer()
        # A proxy's clients are counted when they open a session, by the addresses that it gives.
        if not self.peer.trusted:
            address = self.peer.address
            self.peer.place = self.admission.addresses.knock(address)
            if self.peer.place is None:
                self.admission.address_log.warn(address, "refused a connection from %s: too many of them", address)
                self._refuse(b"429 Too Many Requests")
                return
        self._be_patient()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_patience()
        self._arrived.clear()
        self.peer.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._arrived.append(data)
        self.flow.pause_reading()
        if not self._reading:
            self._reading = True
            self._read_later()

    def _read_later(self) -> None:
        if self.peer.known:
            self.loop.call_soon(self._read_piece)
        else:
            self.admission.turns.call(self._read_piece)

    def _read_piece(self) -> None:
        self._reading = False
        until = time.perf_counter() + (OWN_SECONDS if self.peer.known else 0.0)
        while self._may_read:
            piece = self._next_piece()
            # The parser keeps a head, of whatever size, until it is complete. It sets this back to 0.
            self._head_bytes += len(piece)
            super().data_received(piece)
            if self._head_bytes > _MOST_HEAD and not self.transport.is_closing():
                self._refuse(b"431 Request Header Fields Too Large")
            if time.perf_counter() >= until:
                break
        if self._may_read:
            self._reading = True
            self._read_later()
        elif not self._arrived and not self._upgraded and self._has_room:
            self.flow.resume_reading()

    @property
    def _may_read(self) -> bool:
        # A request that waits for the answer to an earlier one is enough: what follows it can wait, too.
        return bool(self._arrived) and not self._upgraded and not self.pipeline and not self.transport.is_closing()

    @property
    def _has_room(self) -> bool:
        return self.cycle is None or self.cycle.response_complete or len(self.cycle.body) <= _BODY_PIECE

    def _next_piece(self) -> bytes:
        most = _PIECE if self.peer.known else _FIRST_PIECE
        piece = self._arrived.popleft()
        if len(piece) > most:
            self._arrived.appendleft(memoryview(piece)[most:])
        return bytes(piece[:most])

    def handle_websocket_upgrade(self) -> None:
        self._upgraded = True
        self._end_patience()
        self.flow.resume_reading()
        super().handle_websocket_upgrade()

    # --- from the parser

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        super().on_message_begin()
        if self.peer.trusted:
            self.peer = self._new_peer()  # the next request of a proxy may be another client's
        put_peer(self.scope, self.peer)

    def on_headers_complete(self) -> None:
        self._refusal = self._refusal_of_head()
        if self._refusal is not None:
            raise ValueError(self._refusal)
        if not self.peer.known:
            self.admission.turns.used(2 * TASK_SECONDS)  # to answer it, as measured for /healthz and for a new session
        self._be_patient()  # with its body; without one the message is complete at once
        super().on_headers_complete()

    def _refusal_of_head(self) -> bytes | None:
        """The status of a request whose head would take long to look at."""
        if len(self.url) > _MOST_URL + _ENCODED * self.admission.limits.office_id_length:
            return b"414 URI Too Long"
        if self.url.count(b"&") >= _MOST_FIELDS:
            return b"400 Bad Request"
        return b"431 Request Header Fields Too Large" if len(self.headers) > _MOST_HEADERS else None

    def send_400_response(self, msg: str) -> None:
        if self._refusal is None:
            super().send_400_response(msg)
        else:
            self._refuse(self._refusal)

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        self._body_bytes += len(body)
        if self._body_bytes >= _BODY_PIECE:
            self._be_patient()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._end_patience()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:  # and is not that of a request which was waiting
            self._be_patient()
        if self._arrived and not self._reading:
            self._reading = True
            self._read_later()

    # --- deadlines

    def _be_patient(self) -> None:
        """Wait this long, from now, for the rest of what has begun."""
        self._end_patience()
        self._body_bytes = 0
        self._patience = self.loop.call_later(self.admission.limits.header_timeout, self._lose_patience)

    def _end_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        if self._arrived or self.flow.read_paused:
            self._be_patient()  # it is us who do not read
        elif self.cycle is None or self.cycle.response_complete:
            self._refuse(b"408 Request Timeout")
        else:
            self.transport.close()

    def _refuse(self, status: bytes) -> None:
        self.transport.write(b"HTTP/1.1 %b\r\nconnection: close\r\ncontent-length: 0\r\n\r\n" % status)
        self.transport.close()


class GuardedWebSocket(WebSocketsSansIOProtocol):
    """A websocket whose messages are small until a key was shown, and are decoded a few at a time."""

    def __init__(self, config: GuardedConfig, *args: Any, carrier: GuardedHTTP, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self.logger = _libraries
        self.close_timeout = _CLOSE_SECONDS
        self.admission: Admission = config.admission
        self.peer = carrier.peer
        self.peer.on_known = self._raise_limit
        self._raise_limit(self.peer.limit)
        self._asked = False
        self._frames = FrameFinder()
        self._arrived = b""
        self._at = 0
        self._has_frames = False
        self._feeding = False

    def _raise_limit(self, limit: int) -> None:
        self.conn.max_message_size = limit

    # --- from the network

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived, self._has_frames = b"", False
        self.peer.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._asked:
            self._asked = True
            super().data_received(data)
            return
        self._arrived = self._arrived[self._at :] + data if self._arrived else data
        self._at = 0
        if not self._feeding:
            self._feed()

    def _feed(self) -> None:
        """Decode a few frames. The next follow when the application has taken these."""
        self._feeding = False
        start = self._at
        end, more = self._frames.end_of(self._arrived, start, _FRAMES)
        self._has_frames = more
        whole = self._arrived if start == 0 and end == len(self._arrived) else self._arrived[start:end]
        if more:
            self._at = end
        else:
            self._arrived, self._at = self._arrived[end:], 0
        if whole:
            super().data_received(whole)
        if self.transport.is_closing():
            self._arrived, self._has_frames = b"", False
        elif more:
            self._pause()
            if self.queue.empty():  # nothing but pings, for instance
                self._feeding = True
                self._feed_later()
        elif self.queue.empty():
            self._resume()

    def _feed_later(self) -> None:
        if self.peer.known:
            self.loop.call_soon(self._feed)
        else:
            self.admission.turns.call(self._feed)

    def _pause(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def _resume(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()

    # --- from the parser

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            put_peer(self.scope, self.peer)

    def handle_ping(self) -> None:
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()  # a peer that does not read our pongs needs none

    # --- from the server

    def shutdown(self) -> None:
        if self.conn.state in (State.CLOSING, State.CLOSED):  # the peer said goodbye, and its connection is still there
            self.close_sent = True
        super().shutdown()

    # --- from the application

    async def receive(self) -> Any:
        if self.queue.empty() and self._has_frames and not self._feeding:
            self._feed()
        message = await self.queue.get()
        if self.queue.empty() and not self._has_frames:
            self._resume()
        return message
