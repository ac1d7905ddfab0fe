"""A client's connection to the server: it asks, answers, and connects again after a loss. Knows messages, no offices.

Every connection is a python-socketio client of its own. So a late ack or a handler that still runs cannot reach the
next connection.
"""

import asyncio
import itertools
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Self

import socketio

from a2c_smcp.dialects.handshake import Dialect
from a2c_smcp.errors import (
    BadRequestError,
    ConnectionLostError,
    InternalError,
    PayloadTooLargeError,
    RequestTimeoutError,
    SMCPError,
    UnauthorizedError,
    error_from_payload,
)
from a2c_smcp.link.connecting import connect, shown_url
from a2c_smcp.link.connection import ANSWERED_ON, Connection
from a2c_smcp.link.interface import Connected, Disconnected, Handler, LinkEvent, LinkOptions, Refused
from a2c_smcp.link.renewing import renew_token
from a2c_smcp.link.retiring import MOVING, RetiredConnections
from a2c_smcp.link.supervision import First, Supervisor
from a2c_smcp.link.transports import Way
from a2c_smcp.packet_text import encode_event, read_ack
from a2c_smcp.relay.asks import Ask, AskTable
from a2c_smcp.relay.futures import reject, reject_lost, resolve
from a2c_smcp.relay.passing import RETRY_SECONDS, Passing
from a2c_smcp.smcp import AUTHENTICATE_EVENT, MOVING_NOTIFICATION, SMCP_NAMESPACE, Moving
from a2c_smcp.tracing.switch import TRACING
from a2c_smcp.utils.backoff import backoff
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.text import in_log, on_one_line, req_id_in_log
from a2c_smcp.wire import PACKET_OVERHEAD, Encoded, checked_size, codec, exceeds, parse

__all__ = ["ServerLink"]

logger = logging.getLogger(__name__)

#: What the limited log calls these lines.
_ASKED: Final = "what came from the server"
#: Some proxies let a websocket through, and cut it after this many seconds at most.
_SHORT_LIVED: Final = 5.0
_CUT: Final = socketio.AsyncClient.reason.TRANSPORT_ERROR
#: A server that stops later than this many seconds is not moved away from before.
_LONGEST_MOVE: Final = 3600.0
#: Unique in the process, so that a late ack answers no other request, on any connection.
_ack_ids: Final = itertools.count(1)


class ServerLink:
    """The part of `OfficeLink` that knows no office. A reply over `max_message` is replaced by the error 413."""

    def __init__(
        self,
        options: LinkOptions,
        handlers: Mapping[str, Handler],
        on_event: Callable[[LinkEvent], None],
        refused: Refused | None = None,
    ) -> None:
        self.options = options
        self.way: Way | None = None
        """How the client is connected, or was connected last."""
        self.problem: SMCPError | None = None
        """Why the last attempt to connect or to join failed, or why the connection ended; `None` when all is well."""
        self._handlers = {**handlers, MOVING_NOTIFICATION: self._told_to_move}
        self._on_event = on_event
        self._refused = refused or (lambda _event, _data, error: error.payload())
        self._refusals = LimitedLog(logger, per_second=20)
        self._supervisor = Supervisor(self._supervise, "a2c-link")
        self.server_dialect = Dialect.OURS
        """What the server of the present connection speaks."""
        self._connection: Connection | None = None
        self._asks: AskTable[int, asyncio.Future[str]] = AskTable()
        self._stuck: set[int] = set()
        """The requests that were cancelled at their deadline, before they were sent."""
        self._retired = RetiredConnections(self._asks)
        self._cuts = 0
        """How many websockets in a row were cut soon after they connected. After three, `auto` polls."""
        self._attending = False
        """Whether to try for ever, also after refusals."""
        self._is_last = not options.reconnect
        """Whether to open no other connection when this one ends."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def connected(self) -> bool:
        return self._connection is not None

    @property
    def max_message(self) -> int:
        """The largest message of this side: that of the connection whose request is answered, or of the present one."""
        connection = ANSWERED_ON.get() or self._connection
        return self.options.max_message if connection is None else connection.max_message

    @property
    def dialect(self) -> Dialect:
        """What the server speaks. In the task that answers a request, the server which sent that request."""
        connection = ANSWERED_ON.get()
        return self.server_dialect if connection is None else connection.dialect

    @property
    def _office(self) -> str | None:
        """The office that a load balancer is told."""
        return self.options.office

    async def open(self) -> None:
        """Connect. Raises `UnauthorizedError` or the class of another refusal, and `ConnectionLostError` if the server
        does not answer, or takes no clients within `connect_timeout`: it starts or stops, and others may be there.
        """
        await self._supervisor.open()

    async def close(self) -> None:
        """End the connection for good. Safe to call twice, and from any task."""
        await self._supervisor.close()

    # --- asking

    async def request(self, event: str, data: Any, timeout: float, over: Connection | None = None) -> tuple[Any, ...]:
        """Send an event and return what its ack carries.

        With `over` it goes to that connection, as long as it lasts: what is said about a request of the server must
        come by the connection of this request. Raises `RequestTimeoutError`, `PayloadTooLargeError`, or
        `ConnectionLostError` at once when the connection drops.
        """
        if over is not None and over.dropped.done():
            over = None
        return tuple(read_ack(await self.exchange(event, data, timeout, over)))

    async def exchange(self, event: str, data: Any, timeout: float, over: Connection | None = None) -> str:
        """Like `request`, but returns the JSON of the ack. `data` may be `Encoded`; `over` must not have dropped."""
        connection, loop, task = over or self._connection, self._supervisor.loop, asyncio.current_task()
        if connection is None or loop is not asyncio.get_running_loop():
            self._supervisor.check_loop()
            raise ConnectionLostError("not connected to the server")
        answered: asyncio.Future[str] = loop.create_future()
        ask = Ask(next(_ack_ids), answered, target=connection.name)
        text = encode_event(SMCP_NAMESPACE, event, data, ask.id)
        # A character has four bytes at most, and Engine.IO adds one.
        if len(text) * 4 + 4 > connection.max_message and exceeds(text, connection.max_message):
            raise PayloadTooLargeError(f"{event} has more than {connection.max_message} bytes")
        assert task is not None
        cancelling = task.cancelling()
        self._asks.ask(ask)
        # `asyncio.timeout` would cost more than everything else here.
        timer = loop.call_later(timeout, self._too_late, ask, task, event, timeout)
        try:
            await connection.send_text(text)
            ask.was_sent = True
            return await answered
        except BaseException as error:
            self._asks.withdraw(ask.id)
            if answered.done() and not answered.cancelled():
                answered.exception()  # asyncio complains of an exception that nobody looks at
            if ask.id in self._stuck:
                self._stuck.discard(ask.id)
                if isinstance(error, asyncio.CancelledError) and task.uncancel() <= cancelling:
                    raise RequestTimeoutError(f"the server did not take {event} within {timeout:g} s") from None
            raise
        finally:
            timer.cancel()

    def _too_late(
        self, ask: Ask[int, asyncio.Future[str]], task: asyncio.Task[Any], event: str, timeout: float
    ) -> None:
        """The deadline of a request has passed."""
        if ask.was_sent:
            late = RequestTimeoutError(f"the server did not answer {event} within {timeout:g} s")
            reject(self._asks, ask.id, late)
        else:
            # It waits until there is room in the transport.
            self._stuck.add(ask.id)
            task.cancel()

    async def send(self, event: str, data: Any, over: Connection | None = None) -> None:
        """Send an event that nobody answers, with `over` as in `request`. Without a connection it is lost."""
        connection = self._connection if over is None or over.dropped.done() else over
        if connection is not None:
            await connection.send_text(encode_event(SMCP_NAMESPACE, event, data))

    # --- answering

    async def _dispatch(self, event: object, args: tuple[Any, ...]) -> Any:
        try:
            if not isinstance(event, str):
                raise BadRequestError("an event's name must be text")
            if (handler := self._handlers.get(event)) is None:
                raise BadRequestError(f"unknown event {event[:100]!r}")
            data = args[0] if len(args) == 1 else None
            spans = TRACING.spans
            reply = await (handler(data) if spans is None else spans.answering(event, data, handler))
            if reply is None:
                return None
            if isinstance(reply, Encoded) and reply.size >= 0:
                return reply  # whoever looked at its size has answered for it
            encoded = reply if isinstance(reply, Encoded) else Encoded(codec.dumps(reply))
            # A character has four bytes at most.
            if len(encoded.text) * 4 + PACKET_OVERHEAD > (most := self.max_message):
                checked_size(f"the reply to {event}", encoded.text, most)
            return encoded
        except SMCPError as error:
            req_id = req_id_in_log(args[0] if args else None)
            self._refusals.warn(_ASKED, "refused %s, req_id %s: %s", in_log(event), req_id, on_one_line(error))
            return self._refused(event, args[0] if args else None, error)
        except Exception:
            # The last boundary: python-socketio sends no ack when a handler raises, and the caller would wait for ever.
            req_id = req_id_in_log(args[0] if args else None)
            self._refusals.exception(_ASKED, "failed to handle %s, req_id %s", in_log(event), req_id)
            failure = InternalError("this client failed to handle the request; its log says why")
            return self._refused(event, args[0] if args else None, failure)

    async def _told_to_move(self, data: Any) -> None:
        request: Moving = parse(MOVING_NOTIFICATION, data)
        connection = ANSWERED_ON.get()
        if connection is not None and not connection.told_to_move.done():
            connection.told_to_move.set_result(max(0.0, min(request["within"], _LONGEST_MOVE)))

    def _tell(self, event: LinkEvent) -> None:
        try:
            self._on_event(event)
        except Exception:
            # A listener is not our code. Whatever it raises, the connection stays.
            logger.exception("a listener failed to take %s", type(event).__name__)

    # --- staying connected

    async def _supervise(self, first: First) -> None:
        failures = 0
        patient_until = asyncio.get_running_loop().time() + self.options.connect_timeout
        try:
            while True:
                try:
                    connection = await self._connect()
                except SMCPError as error:
                    self.problem = error
                    waits = "passes" in error.details and asyncio.get_running_loop().time() < patient_until
                    if not first.done() and not waits:
                        first.set_exception(error)
                        return
                    if isinstance(error, UnauthorizedError):
                        self._tell(Disconnected(str(error), final=not self._attending))
                        if not self._attending:
                            return
                        await asyncio.sleep(RETRY_SECONDS[Passing.BY_A_PERSON])
                        continue
                    self._cuts = 0  # the server itself comes and goes, so no proxy cuts the websockets
                    logger.info("%s", error)
                    failures += 1
                    await asyncio.sleep(backoff(failures, *self.options.backoff) * random.uniform(0.5, 1.0))
                    continue
                failures, self.problem = 0, None
                if not first.done():
                    first.set_result(None)
                self._tell(Connected(self.options.url, self.way))
                await self._disconnect(await self._stay(connection))
                if self._is_last:
                    return
        finally:
            await self._retired.close()
            await self._disconnect("closed by this side", final=True)

    async def _connect(self) -> Connection:
        connection, way = await self._new_connection()
        self._use(connection, way)
        logger.info("connected to %s: %s", shown_url(self.options.url), way)
        return connection

    def _use(self, connection: Connection, way: Way) -> None:
        self._connection, self.way, self.server_dialect = connection, way, connection.dialect

    async def _new_connection(self) -> tuple[Connection, Way]:
        make = partial(
            Connection,
            self._dispatch,
            partial(resolve, self._asks),
            self.options.max_message,
            connector=self.options.connector,
        )
        return await connect(self.options, self._office, make, websockets_are_cut=self._cuts >= 3)

    async def _stay(self, connection: Connection) -> str:
        """Wait until the connection drops, and return why. If the server is about to stop, move to another process."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        while True:
            ends: set[asyncio.Future[Any]] = {connection.dropped, connection.told_to_move}
            async with self._renewing(connection):
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if connection.dropped.done() or (successor := await self._move(connection)) is None:
                break
            connection, started = successor, loop.time()
        reason = await asyncio.shield(connection.dropped)
        short = reason == _CUT and loop.time() - started < _SHORT_LIVED
        is_websocket = self.way is not None and self.way.transport == "websocket"
        self._cuts = self._cuts + 1 if short and is_websocket else 0
        return reason

    @asynccontextmanager
    async def _renewing(self, connection: Connection) -> AsyncIterator[None]:
        """Bring a new token before the old one ends, as long as the block lasts."""
        task = asyncio.create_task(renew_token(connection, self.options, self._authenticate))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _authenticate(self, connection: Connection, token: str) -> SMCPError | None:
        """Show a new token. Returns why it is refused."""
        ack = await self.exchange(AUTHENTICATE_EVENT, {"token": token}, self.options.membership_timeout, connection)
        args = read_ack(ack)
        return error_from_payload(args[0]) if args else None

    async def _move(self, old: Connection) -> Connection | None:
        """Open a second connection, and leave the first one. Returns `None` if that does not work in time."""
        loop = asyncio.get_running_loop()
        within, failures = old.told_to_move.result(), 0
        until = loop.time() + within
        pause = random.uniform(0, min(MOVING.longest_pause, within / 10))
        while loop.time() < until:
            await asyncio.wait({old.dropped}, timeout=pause)
            if old.dropped.done():
                return None
            try:
                connection, way = await self._settled_elsewhere()
            except SMCPError as error:
                logger.info("cannot move to another server process yet: %s", error)
                failures += 1
                pause = backoff(failures, *self.options.backoff) * random.uniform(0.5, 1.0)
                continue
            self._use(connection, way)
            self._retired.add(old, until + MOVING.after)
            logger.info("moved to another server process: %s", way)
            return connection
        return None

    async def _settled_elsewhere(self) -> tuple[Connection, Way]:
        connection, way = await self._new_connection()
        try:
            await self._settle(connection)
        except BaseException:
            await connection.dispose()
            raise
        return connection, way

    async def _settle(self, connection: Connection) -> None:
        """Take along what the server knows of this client by its connection."""

    async def _disconnect(self, reason: str, *, final: bool = False) -> None:
        connection, self._connection, self.server_dialect = self._connection, None, Dialect.OURS
        if connection is None:
            return
        self.problem = ConnectionLostError(f"the connection to the server was lost: {reason}")
        reject_lost(self._asks, connection.name, partial(ConnectionLostError, self.problem.message))
        await connection.dispose()
        self._tell(Disconnected(reason, final=final or self._is_last))
