"""A websocket of the server: messages are small until a key was shown, and a few frames are decoded at a time. What we
use of uvicorn's websockets, and of the library *websockets* under them, beyond their documentation is here.

uvicorn documents that `Config(ws=…)` takes a protocol class. Ours extends `WebSocketsSansIOProtocol`, which is not
documented, and relies on this:

- It is made with `config`, `server_state` and `app_state`, has `transport`, `config`, `loop`, `logger`, and keeps its
  `scope` as an attribute.
- The first call of `data_received` has the request, the others have frames. Messages go to `queue`. Reading is paused
  (`read_paused`) until the queue is empty; `receive` resumes it. `close_timeout` is how long a peer may take to answer
  a close frame. `handle_ping` writes what `conn.data_to_send()` has. `writable` is set while the peer reads. Why: the
  frames of one read are decoded in one go, and pongs for a peer that does not read pile up.
- `eof_received` does nothing, so a transport may be closed later. `connection_lost` may be handed on later: until then
  the application waits, and what it sends is dropped by the transport. Why: many peers may go at one moment.
- An answer to the handshake that is not a websocket is kept as `initial_response`, and `handshake_complete` is not set.
  Why: uvicorn would log an error for each client that is not let in. It is set here when the application takes the next
  message after its answer.
- With `close_sent`, `shutdown` closes and sends no close frame. Why: `conn` refuses to send one after the peer's, and
  that exception would end the server's shutdown.
- Its `queue` may be any object with `put_nowait`, `get` and `empty`. It calls `start_keepalive` when the websocket is
  accepted, and does not use `request` and `response` after that. Why: these are a quarter of the memory of an idle
  connection.
- `conn.parser` of *websockets* is a generator, which is not used once the connection is lost. Why: it is part of a
  reference cycle. A connection that has ended would stay in memory until a full search for garbage.
- `conn.max_message_size` of *websockets*, or `max_size` before 16, is read for every frame, as soon as the frame's
  header is there. Why: this refuses a message before it has arrived, and the limit can be raised once a key was shown.

`tests/server/test_uvicorn_parts.py` has a test for each.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from a2c_smcp.server.admission import Admission, Peer, put_peer
from a2c_smcp.server.websocket_frames import FrameFinder
from a2c_smcp.utils.light_queue import LightQueue
from a2c_smcp.utils.loop_turns import DEPARTURE_SECONDS
from a2c_smcp.web.guarded_http import library_log

if TYPE_CHECKING:
    from a2c_smcp.server.uvicorn_parts import GuardedConfig

__all__ = ["GuardedWebSocket"]


#: Always set. All connections whose peer reads share it, because an event takes 0.8 KB.
_WRITABLE: Final = asyncio.Event()
_WRITABLE.set()


class GuardedWebSocket(WebSocketsSansIOProtocol):
    """A websocket whose messages are small until a key was shown, and are decoded a few at a time."""

    __slots__ = ("_arrived", "_asked", "_at", "_feeding", "_frames", "_has_frames", "_limit_name", "admission", "peer")

    def __init__(self, config: "GuardedConfig", *args: Any, peer: Peer, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self.logger = library_log
        self.queue: Any = LightQueue()
        self.writable = _WRITABLE
        self.close_timeout = 1.0
        self.admission: Admission = config.admission
        self.peer = peer
        self.peer.on_known = self._raise_limit
        self.peer.unwritten = lambda: self.transport.get_write_buffer_size()
        self._limit_name = "max_message_size" if hasattr(self.conn, "max_message_size") else "max_size"
        self._raise_limit(self.peer.limit)
        self._asked = False
        self._frames = FrameFinder()
        self._arrived = b""
        self._at = 0
        self._has_frames = False
        self._feeding = False

    def _raise_limit(self, limit: int) -> None:
        setattr(self.conn, self._limit_name, limit)

    # --- from the network

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio's own returns one
        # Closing takes longer than noticing, and thousands of peers may go at one moment. TLS cannot wait here.
        waits = self.transport.get_extra_info("ssl_object") is None
        if waits:
            self.admission.departures.call(self.transport.close)
        return waits

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived, self._has_frames = b"", False
        self.peer.leave()
        self.peer.unwritten = int
        self.admission.departures.call(partial(self._end, exc))

    def _end(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.admission.departures.owe(DEPARTURE_SECONDS)
        # Each of these would be part of a reference cycle.
        self.peer.on_known = None
        self.conn.parser.close()

    def data_received(self, data: bytes) -> None:
        if not self._asked:
            self._asked = True
            super().data_received(data)
            return
        self._arrived = self._arrived[self._at :] + data if self._arrived else data
        self._at = 0
        if not self._feeding:
            self._feed()

    def pause_writing(self) -> None:
        self.writable = asyncio.Event()

    def resume_writing(self) -> None:
        self.writable.set()
        self.writable = _WRITABLE

    def _feed(self) -> None:
        """Decode a few frames. The next follow when the application has taken these."""
        self._feeding = False
        start = self._at
        end, more = self._frames.end_of(self._arrived, start, most=16)
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

    def handle_close(self, event: Any) -> None:
        self.peer.has_closed = True
        super().handle_close(event)

    def handle_ping(self) -> None:
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()  # drops the pong: this peer does not read

    # --- from the server

    def shutdown(self) -> None:
        if self.conn.state in (State.CLOSING, State.CLOSED):  # the peer has closed, and its connection is still open
            self.close_sent = True
        super().shutdown()

    # --- from the application

    def start_keepalive(self) -> None:
        super().start_keepalive()
        self.request.headers.clear()  # the parser holds on to the request
        del self.request, self.response

    async def receive(self) -> Any:
        if self.queue.empty() and self._has_frames and not self._feeding:
            self._feed()
        message = await self.queue.get()
        if self.initial_response is not None:
            self.handshake_complete = True
        if self.queue.empty() and not self._has_frames:
            self._resume()
        return message
