"""uvicorn's HTTP with limits that hold before a request is read. All our web servers use it. Everything that we use of
uvicorn's HTTP beyond its documentation is here.

uvicorn documents that `Config(http=…)` takes a protocol class. Ours extends `HttpToolsProtocol`, which is not
documented, and relies on this:

- It is made with `config`, `server_state` and `app_state`. It has `transport`, `client`, `config`, `loop` and `logger`,
  and keeps its `scope` as an attribute. Why: the scope connects a request with the connection under it.
- `data_received` hands its bytes to `parser`, and takes pieces of any size. The parser calls `on_message_begin`,
  `on_headers_complete`, `on_body` and `on_message_complete`; `on_response_complete` follows. `url` is that of the
  request. If one of them raises, it answers by `send_400_response` and reads no further.
- Requests that came early wait in `pipeline`. The latest request is `cycle`; `disconnected` and `message_event` tell it
  that the connection has ended. `flow`, a `FlowControl`, pauses reading and knows whether writing is paused.
  `handle_websocket_upgrade` makes websockets. Why: uvicorn has no deadline for headers, and none for a peer that does
  not read. It parses everything that has arrived in one go, and reads on after each answer, however much waits.
- `Config.get_loop_factory` makes the loop, on which `Server` calls `create_server(…, ssl=…)`. Why: a TLS handshake
  comes before our protocol hears of a connection, and may take a minute.

`tests/server/test_uvicorn_parts.py` and `tests/utils/test_http_surface.py` have a test for each.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from a2c_smcp.utils.limited_log import SparseFilter
from a2c_smcp.utils.loop_turns import OWN_SECONDS, TASK_SECONDS, SharedTurns

__all__ = ["BoundedConfig", "GuardedHTTP", "HttpBounds", "create_server_within", "library_log"]

_HEAD_END: Final = b"\r\n\r\n"

#: uvloop's text for a connection that has ended, before it tells us so.
_CLOSED: Final = "the handler is closed"

#: What uvicorn and websockets log about a connection. At INFO they log that it opened and closed.
library_log: Final = logging.getLogger(f"{__name__}.libraries")
library_log.setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """How much of HTTP is parsed at once, and how much a request may have."""

    first_piece: int = 2 * 1024
    """Bytes that are parsed at once before a key was shown."""
    piece: int = 16 * 1024
    """Bytes that are parsed at once after that."""
    body_piece: int = 16 * 1024
    """Bytes of a body that must arrive, or of an answer that must be read, in the time that headers have."""
    head: int = 64 * 1024
    """Bytes of a head, or of anything else between two parts of a request."""
    fields: int = 32
    """Fields in the query of a URL. They are looked up before a key was shown."""
    headers: int = 100


_MOST: Final = _Pieces()


def _without_traceback(record: logging.LogRecord) -> bool:
    """Drop the traceback of two errors that a peer causes: text that is not UTF-8, and leaving while it is written to.
    uvicorn takes both for faults.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, UnicodeDecodeError) or (isinstance(error, RuntimeError) and _CLOSED in str(error)):
        record.exc_info = None
    return True


library_log.addFilter(SparseFilter())
library_log.addFilter(_without_traceback)


@dataclass(frozen=True, slots=True)
class HttpBounds:
    """What holds before a request is read. Times are in seconds."""

    header_timeout: float = 10.0
    """How long a request's headers may take. The same time is given for 16 KiB of its body, for a TLS handshake, and
    to a peer without a key for reading 16 KiB of an answer."""
    stall_timeout: float = 60.0
    """How long a peer that has shown a key may take to read 16 KiB of an answer."""
    max_url: int = 8 * 1024
    """Bytes of a URL."""


class BoundedConfig(uvicorn.Config):
    """A uvicorn configuration whose HTTP is a `GuardedHTTP`; takes the options of `uvicorn.Config`."""

    def __init__(self, app: Any, bounds: HttpBounds, turns: SharedTurns, **options: Any) -> None:
        self.bounds = bounds
        self.turns = turns
        defaults: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "lifespan": "on"}
        # Clients such as httpx keep an idle connection for 5 s. With the same time here, some would send a request just
        # when this side closes.
        defaults["timeout_keep_alive"] = 8
        super().__init__(app, **{**defaults, **options})

    def get_loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop]:
        """uvicorn's own event loop, on which a TLS handshake has no more time than the headers of a request."""
        make = super().get_loop_factory() or asyncio.new_event_loop

        def make_guarded() -> asyncio.AbstractEventLoop:
            loop: Any = make()
            loop.create_server = create_server_within(loop, self.bounds.header_timeout)
            guarded: asyncio.AbstractEventLoop = loop
            return guarded

        return make_guarded


def create_server_within(loop: Any, seconds: float) -> Callable[..., Any]:
    """The loop's own `create_server`, with this timeout for TLS handshakes."""
    create_server = loop.create_server

    async def create_guarded(*args: Any, ssl: Any = None, **options: Any) -> Any:
        if ssl is not None:
            options["ssl_handshake_timeout"] = seconds
        return await create_server(*args, ssl=ssl, **options)

    return create_guarded


class _GuardedFlow(FlowControl):
    """Does not resume reading while bytes that have arrived wait to be parsed."""

    def __init__(self, transport: asyncio.Transport, arrived: Collection[object]) -> None:
        super().__init__(transport)
        self._arrived = arrived

    def resume_reading(self) -> None:
        if not self._arrived:
            super().resume_reading()


class GuardedHTTP(HttpToolsProtocol):
    """HTTP that is parsed in pieces. Headers must come in time, and answers must be read in time."""

    config: BoundedConfig

    def __init__(self, config: BoundedConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self.logger = library_log
        self.turns = config.turns
        self.bounds = config.bounds
        self._arrived: deque[bytes | memoryview] = deque()
        self._reading = False
        self._upgraded = False
        self._body_bytes = 0
        self._head_bytes = 0
        self._refusal: bytes | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._unread = 0
        self._unanswered: deque[Any] = deque()

    @property
    def known(self) -> bool:
        """Whether the peer has shown a key."""
        return False

    @property
    def is_waited_for(self) -> bool:
        """Whether it is the peer's turn: to send a request or the rest of it, or to read an answer. A peer that asks
        again before it is answered counts as well; no browser does that.
        """
        if not self._arrived or self.flow.write_paused:
            return self._patience is not None
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    # --- from the network

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _GuardedFlow(transport, self._arrived)
        if self.let_in():
            self._be_patient()

    def let_in(self) -> bool:
        """Whether this new connection may stay. If not, this method closes it."""
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_patience()
        self._arrived.clear()
        self._tell_gone()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._arrived.append(data)
        self.flow.pause_reading()
        if not self._reading:
            self._reading = True
            self._read_later()

    def _read_later(self) -> None:
        if self.known:
            self.loop.call_soon(self._read_piece)
        else:
            self.turns.call(self._read_piece)

    def _read_piece(self) -> None:
        self._reading = False
        until = time.perf_counter() + (OWN_SECONDS if self.known else 0.0)
        while self._may_read:
            piece = self._next_piece()
            # The parser keeps a head of any size until it is complete. Then a callback sets this back to 0.
            self._head_bytes += len(piece)
            super().data_received(piece)
            if self._head_bytes > _MOST.head and not self.transport.is_closing():
                self.refuse(b"431 Request Header Fields Too Large")
            if time.perf_counter() >= until:
                break
        if self._may_read:
            self._reading = True
            self._read_later()
        elif not self._upgraded and self._has_room:
            self.flow.resume_reading()

    @property
    def _may_read(self) -> bool:
        # One request that waits for the answer to an earlier one is enough.
        return bool(self._arrived) and not self._upgraded and not self.pipeline and not self.transport.is_closing()

    @property
    def _has_room(self) -> bool:
        return self.cycle is None or self.cycle.response_complete or len(self.cycle.body) <= _MOST.body_piece

    def _next_piece(self) -> bytes:
        arrived = self._arrived.popleft()
        piece = bytes(arrived[: _MOST.piece if self.known else _MOST.first_piece])
        if not self.known and (head := piece.find(_HEAD_END)) >= 0:
            piece = piece[: head + len(_HEAD_END)]  # so that each request takes a turn of its own
        if len(arrived) > len(piece):
            self._arrived.appendleft(memoryview(arrived)[len(piece) :])
        return piece

    def handle_websocket_upgrade(self) -> None:
        self._upgraded = True
        self._end_patience()
        self._arrived.clear()  # nothing may come before the websocket is accepted
        self.flow.resume_reading()
        super().handle_websocket_upgrade()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._be_patient()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self._end_patience()

    # --- from the parser

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._refusal = self._refusal_of_head()
        if self._refusal is not None:
            raise ValueError(self._refusal)
        if not self.known:
            self.turns.owe(2 * TASK_SECONDS)  # for the answer, as measured for /healthz and for a new session
        # Blanks around a value do not belong to it (RFC 9110, 5.5). httptools leaves those behind it.
        self.headers[:] = [(name, value.strip(b" \t")) for name, value in self.headers]
        self._be_patient()  # with the body; without a body the message is complete at once
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self._unanswered.append(self.cycle)

    def _refusal_of_head(self) -> bytes | None:
        """The status of the answer to a head that would take long to look at; `None` for other heads."""
        if len(self.url) > self.bounds.max_url:
            return b"414 URI Too Long"
        if self.url.count(b"&") >= _MOST.fields:
            return b"400 Bad Request"
        return b"431 Request Header Fields Too Large" if len(self.headers) > _MOST.headers else None

    def send_400_response(self, msg: str) -> None:
        if self._refusal is None:
            super().send_400_response(msg)
            self.give_up()
        else:
            self.refuse(self._refusal)

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        self._body_bytes += len(body)
        if self._body_bytes >= _MOST.body_piece:
            self._be_patient()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        super().on_message_complete()
        if self.cycle is not None and self.cycle.response_complete:
            self._be_patient()  # the answer came before the whole request; the next request is due
        elif not self.flow.write_paused:  # if it is paused, the peer has an earlier answer to read
            self._end_patience()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        while self._unanswered and self._unanswered[0].response_complete:
            self._unanswered.popleft()
        if self.cycle.response_complete:  # no other request was waiting
            self._be_patient()
        if self._arrived and not self._reading:
            self._reading = True
            self._read_later()

    # --- deadlines

    def _be_patient(self) -> None:
        """Start the peer's deadline anew: for the rest of its request, or for reading an answer."""
        self._end_patience()
        self._body_bytes = 0
        self._unread = self.transport.get_write_buffer_size()
        seconds = self.bounds.stall_timeout if self._unread and self.known else self.bounds.header_timeout
        self._patience = self.loop.call_later(seconds, self._lose_patience)

    def _end_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread and unread <= self._unread - _MOST.body_piece:
            self._be_patient()  # it reads, though slowly
        elif self.transport.is_closing() or self.flow.write_paused:
            self.send_away()
        elif self._arrived or self.flow.read_paused:
            self._be_patient()  # it is this side that does not read
        elif self.cycle is None or self.cycle.response_complete:
            self.refuse(b"408 Request Timeout")
        else:
            self.give_up()

    def refuse(self, status: bytes) -> None:
        """Answer with this status, and close."""
        self.transport.write(b"HTTP/1.1 %b\r\nconnection: close\r\ncontent-length: 0\r\n\r\n" % status)
        self.give_up()

    def give_up(self) -> None:
        """Close. The peer has the time of headers to read what was written before."""
        self.transport.close()
        self._tell_gone()
        self._be_patient()

    def send_away(self) -> None:
        """Close at once, and drop what is still to be written."""
        self.transport.abort()
        self._tell_gone()

    def _tell_gone(self) -> None:
        """Tell every request that nobody waits for its answer. uvicorn tells only the latest one, after the loop has
        closed the connection. Until then it would write, and uvloop takes that for a fault.
        """
        while self._unanswered:
            cycle = self._unanswered.popleft()
            cycle.disconnected = True
            cycle.message_event.set()
