"""A client's connection to the server, for computers and agents alike: it asks, answers, comes back and joins again.

Knows membership and messages, nothing of tools. Every connection is a python-socketio client of its own: what
belonged to one that was lost, an ack or a handler that still runs, cannot reach the next.
"""

import asyncio
import itertools
import logging
import os
import random
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import urlencode

import socketio

from a2c_smcp.errors import (
    BadRequestError,
    ConnectionLostError,
    InternalError,
    NotInRoomError,
    PayloadTooLargeError,
    RequestTimeoutError,
    SMCPError,
    UnauthorizedError,
    error_from_payload,
    error_from_reason,
)
from a2c_smcp.link.connection import Connection
from a2c_smcp.link.proxies import Proxy, find_proxy
from a2c_smcp.link.server_urls import check_server_url
from a2c_smcp.link.supervision import First, Supervisor
from a2c_smcp.link.ways import Failure, Transport, Way, attempts, explain, unreachable
from a2c_smcp.packets import encode_event, read_ack
from a2c_smcp.relay.asks import Ask, AskTable
from a2c_smcp.relay.futures import reject_all, resolve
from a2c_smcp.relay.passing import RETRY_SECONDS, Passing, passes
from a2c_smcp.smcp import JOIN_OFFICE_EVENT, LEAVE_OFFICE_EVENT, SMCP_NAMESPACE
from a2c_smcp.types import Role
from a2c_smcp.utils.backoff import backoff
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.text import in_log, on_one_line, req_id_in_log
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE, Encoded, codec, exceeds, fitted

__all__ = [
    "AnyLink",
    "Connected",
    "Disconnected",
    "Handler",
    "Joined",
    "Left",
    "LinkEvent",
    "LinkFactory",
    "LinkOptions",
    "Membership",
    "OfficeLink",
    "RejoinFailed",
    "Transport",
    "Way",
]

logger = logging.getLogger(__name__)

#: How the log calls what it says only so much about.
_ASKED: Final = "what came from the server"
#: After so many websockets that were cut within so many seconds, `auto` polls: some proxies let them through that long.
_CUTS: Final = 3
_SHORT_LIVED: Final = 5.0
_CUT: Final = socketio.AsyncClient.reason.TRANSPORT_ERROR
#: Unique in the process: an ack that comes late answers no other request, on no connection.
_ack_ids: Final = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Membership:
    """Who this client is, and where."""

    role: Role
    name: str
    office_id: str


@dataclass(frozen=True, slots=True)
class Connected:
    """There is a connection, for the first time or again. `way` says how it goes."""

    url: str
    way: Way | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection ended. `final` when the client will not come back by itself."""

    reason: str
    final: bool


@dataclass(frozen=True, slots=True)
class Joined:
    """The client is in its office."""

    membership: Membership
    again: bool
    """Whether it was joined before, on a connection that was lost."""


@dataclass(frozen=True, slots=True)
class Left:
    """The client left its office, because it was asked to."""

    membership: Membership


@dataclass(frozen=True, slots=True)
class RejoinFailed:
    """Back at the server but not in the office. `final` when it is not tried any more."""

    membership: Membership
    error: SMCPError
    final: bool


LinkEvent: TypeAlias = Connected | Disconnected | Joined | Left | RejoinFailed
Handler: TypeAlias = Callable[[Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """How an agent or a computer reaches its server, and comes back to it. The defaults suit a server of ours."""

    url: str
    """`https://host[:port]`, or `http://` without TLS; anything else is a `BadRequestError`. A path in it belongs to a
    proxy in front of the server."""
    api_key: str | None = field(default=None, repr=False)
    """What the server lets clients in with; `None` for a server without keys."""
    api_key_header: str = "x-api-key"
    """The header that carries the key."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further headers of every HTTP request and websocket handshake."""
    transport: Transport = "auto"
    """A websocket, and long polling where websockets do not get through; or one of them only."""
    proxy: str | None = field(default=None, repr=False)
    """An HTTP proxy, instead of what `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say; `""` for none."""
    ca: str | os.PathLike[str] | None = None
    """A file with certificates to trust, besides those of the system or `SSL_CERT_FILE`."""
    socketio_path: str = "socket.io"
    """Where the server has its Socket.IO endpoint."""
    max_message: int = DEFAULT_MAX_MESSAGE
    """Bytes of one message, like the server's own `max_message`. A larger request raises `PayloadTooLargeError`."""
    reconnect: bool = True
    """Connect again after a loss, and join again. Without it a lost connection is the end."""
    connect_timeout: float = 10.0
    """Seconds for one attempt; with `auto` a websocket gets half of them."""
    membership_timeout: float = 10.0
    """Seconds for the answer to a join or a leave."""
    backoff: tuple[float, float] = (0.2, 2.5)
    """The first and the longest pause between attempts to connect: an office is whole within three seconds of its
    server's return."""
    rejoin_every: float = 1.0
    """Seconds between attempts to join again, while the old session may still hold the name or the seat."""
    rejoin_report_after: float = 30.0
    """Seconds after which such a refusal is reported as `RejoinFailed`."""
    office: str | None = None
    """The office that will be joined, where a load balancer stands in front of several servers: it goes into the URL as
    `?office=…`, so that one of them gets the whole office. Joining it is still to be asked for."""

    def __post_init__(self) -> None:
        if not isinstance(self.url, str):
            raise TypeError(f"url must be a text, not {self.url!r}; is a variable of the environment not set?")
        if not isinstance(self.api_key, str | None):
            raise TypeError(f"api_key must be a text or None, not {type(self.api_key).__name__}")
        check_server_url(self.url)


class AnyLink(Protocol):
    """A client's way to its office: a connection of its own (`OfficeLink`), or a seat that it shares with others."""

    @property
    def membership(self) -> Membership | None:
        """Where this client is, or will be again as soon as it can."""

    @property
    def connected(self) -> bool: ...

    @property
    def joined(self) -> bool: ...

    @property
    def way(self) -> Way | None: ...

    @property
    def problem(self) -> SMCPError | None: ...

    async def open(self) -> None: ...

    def attend(self, membership: Membership) -> None: ...

    async def close(self) -> None: ...

    async def exchange(self, event: str, data: Any, timeout: float) -> str:
        """Send an event and return the JSON of its ack. Who asks decides how much of it is built."""

    async def join(self, membership: Membership) -> None: ...

    async def leave(self) -> None: ...


class LinkFactory(Protocol):
    """Makes a link: from its options, handlers of what the server sends, and a listener to its events."""

    def __call__(
        self, options: LinkOptions, handlers: Mapping[str, Handler], *, on_event: Callable[[LinkEvent], None]
    ) -> AnyLink: ...


def _ignore(_: LinkEvent) -> None:
    pass


def _as_it_is(error: SMCPError) -> SMCPError:
    return error


class OfficeLink:
    """`async with OfficeLink(options, handlers) as link`. Handlers answer what the server sends; their result is acked.

    `on_event` hears of connections and memberships as they come and go. A reply that is over
    `max_message` is replaced by the 413 error. `leaving` makes of an error what the server may read of it.
    """

    def __init__(
        self,
        options: LinkOptions,
        handlers: Mapping[str, Handler],
        *,
        on_event: Callable[[LinkEvent], None] = _ignore,
        leaving: Callable[[SMCPError], SMCPError] = _as_it_is,
    ) -> None:
        self.options = options
        self._leaving = leaving
        self.membership: Membership | None = None
        """Where this client is, or will be again as soon as it can."""
        self._handlers = dict(handlers)
        self._refusals = LimitedLog(logger, per_second=20)
        self._on_event = on_event
        self._connection: Connection | None = None
        self._asks: AskTable[int, asyncio.Future[str]] = AskTable()
        self._supervisor = Supervisor(self._supervise, "a2c-link")
        self._dropped = asyncio.Event()
        self._in_office = False
        self._changing = asyncio.Lock()
        """A join, a leave and a rejoin of one client would overtake each other."""
        self._attempts: set[asyncio.Task[None]] = set()
        self._drop_reason = ""
        self.way: Way | None = None
        """How it is connected, or was the last time."""
        self._cuts = 0
        """How many websockets in a row were cut soon after they had connected."""
        self.problem: SMCPError | None = None
        """Why the last attempt to connect or to join failed, or why the connection ended; `None` when all is well."""
        self._attending = False
        self._was_in_office = False

    async def __aenter__(self) -> "OfficeLink":
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def connected(self) -> bool:
        return self._connection is not None

    @property
    def joined(self) -> bool:
        """Whether the server has this client in its office right now."""
        return self._in_office and self.connected

    @property
    def _office(self) -> str | None:
        """The office that a load balancer is told."""
        return self.options.office or (self.membership.office_id if self.membership else None)

    async def open(self) -> None:
        """Connect, or raise: `UnauthorizedError`, another refusal's class, or `ConnectionLostError` when the server
        does not answer.
        """
        await self._supervisor.open()

    def attend(self, membership: Membership) -> None:
        """Connect and join as soon as it can be done, and try for ever, whatever the refusal. Returns at once;
        `problem` says why it is not so yet.
        """
        self._supervisor.begin()
        self.membership, self._attending = membership, True

    async def close(self) -> None:
        """End the connection for good. Safe to call twice, and from any task."""
        await self._supervisor.close()

    # --- asking

    async def request(self, event: str, data: Any, timeout: float) -> tuple[Any, ...]:
        """Send an event and return what its ack carries.

        Raises `RequestTimeoutError`, `PayloadTooLargeError`, or `ConnectionLostError` at once when the connection
        drops.
        """
        return tuple(read_ack(await self.exchange(event, data, timeout)))

    async def exchange(self, event: str, data: Any, timeout: float) -> str:
        """As `request`, and returns the ack as the JSON that came. `data` may be `Encoded`."""
        loop, connection = self._supervisor.check_loop(), self._connection
        if connection is None:
            raise ConnectionLostError("not connected to the server")
        answered: asyncio.Future[str] = loop.create_future()
        ask = Ask(next(_ack_ids), answered)
        text = encode_event(SMCP_NAMESPACE, event, data, ask.id)
        if exceeds(text, self.options.max_message):
            raise PayloadTooLargeError(f"{event} has more than {self.options.max_message} bytes")
        self._asks.ask(ask)
        try:
            async with asyncio.timeout(timeout):
                await connection.send_text(text)
                return await answered
        except TimeoutError:
            raise RequestTimeoutError(f"the server did not answer {event} within {timeout:g} s") from None
        finally:
            self._asks.end(ask.id)

    def _take_ack(self, ack_id: int, body: str) -> None:
        resolve(self._asks, ack_id, body)

    async def send(self, event: str, data: Any) -> None:
        """Send an event that nobody answers. Without a connection it is lost."""
        if self._connection is not None:
            await self._connection.send_text(encode_event(SMCP_NAMESPACE, event, data))

    async def join(self, membership: Membership) -> None:
        """Join an office, or raise the class of the refusal's code. From now on every reconnect joins it again.

        A join that nobody waits for any more is taken back, for the server may have done it.
        """
        self._supervisor.check_loop()
        given_up = asyncio.Event()
        before = self.membership
        joining = self._start(self._take_place(membership, given_up))
        try:
            await asyncio.shield(joining)
        except asyncio.CancelledError:
            given_up.set()
            if joining.done() and joining.exception() is None:
                self._start(self._take_back(membership, before))
            raise

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._attempts.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._attempts.discard(task)
        if not task.cancelled():
            task.exception()  # perhaps nobody waits for it any more

    async def _take_place(self, membership: Membership, given_up: asyncio.Event) -> None:
        """Goes on when the caller stops waiting, for the server has been asked."""
        async with self._changing:
            if given_up.is_set():
                return
            try:
                await self._join(membership)
            except RequestTimeoutError:
                await self._withdraw(membership)
                raise
            if given_up.is_set():
                await self._withdraw(membership)
                return
            self.membership = membership
            self._enter()
        self._tell(Joined(membership, again=False))

    async def _take_back(self, membership: Membership, before: Membership | None) -> None:
        async with self._changing:
            if self.membership is membership:
                self.membership = before
                await self._withdraw(membership)

    async def _withdraw(self, membership: Membership) -> None:
        """Leave an office that nobody wants to be in any more, and go back to where this client was."""
        with suppress(SMCPError):
            await self.send(LEAVE_OFFICE_EVENT, {"office_id": membership.office_id})
        self._in_office = False
        if self.membership is not None:
            self._start(self._rejoin())

    async def leave(self) -> None:
        """Leave the office, if in one. Without a connection there is nothing to leave but the wish to come back."""
        async with self._changing:
            membership, self.membership = self.membership, None
            if membership is None or not self.connected:
                return
            was_in, self._in_office = self._in_office, False
            args = await self.request(
                LEAVE_OFFICE_EVENT, {"office_id": membership.office_id}, self.options.membership_timeout
            )
        self._tell(Left(membership))
        try:
            _raise_refusal(args)
        except NotInRoomError:
            if was_in:
                raise  # otherwise it was not back yet, and tries no more

    def _enter(self) -> None:
        self._in_office = self._was_in_office = True
        self.problem = None

    async def _join(self, membership: Membership) -> None:
        request = {"role": membership.role, "name": membership.name, "office_id": membership.office_id}
        _raise_refusal(await self.request(JOIN_OFFICE_EVENT, request, self.options.membership_timeout))

    # --- answering

    async def _dispatch(self, event: object, args: tuple[Any, ...]) -> Any:
        req_id = req_id_in_log(args[0] if args else None)
        try:
            if not isinstance(event, str):
                raise BadRequestError("an event's name must be text")
            if (handler := self._handlers.get(event)) is None:
                raise BadRequestError(f"unknown event {event[:100]!r}")
            reply = await handler(args[0] if len(args) == 1 else None)
            return None if reply is None else self._encoded(event, reply)
        except SMCPError as error:
            self._refusals.warn(_ASKED, "refused %s, req_id %s: %s", in_log(event), req_id, on_one_line(error))
            return self._leaving(error).payload()
        except Exception:
            # The last boundary: python-socketio sends no ack when a handler raises, and the caller waits for ever.
            self._refusals.exception(_ASKED, "failed to handle %s, req_id %s", in_log(event), req_id)
            return InternalError("this client failed to handle the request; its log says why").payload()

    def _encoded(self, event: str, reply: Any) -> Encoded:
        """The reply, encoded once; `PayloadTooLargeError`, which is answered instead, so that the connection lives."""
        encoded = reply if isinstance(reply, Encoded) else Encoded(codec.dumps(reply))
        fitted(f"the reply to {event}", encoded.text, self.options.max_message)
        return encoded

    def _tell(self, event: LinkEvent) -> None:
        try:
            self._on_event(event)
        except Exception:
            # Not our code: whatever it raises, the connection is kept up.
            logger.exception("a listener failed to take %s", type(event).__name__)

    # --- staying connected

    async def _supervise(self, first: First) -> None:
        failures = 0
        try:
            while True:
                try:
                    await self._connect()
                except SMCPError as error:
                    self.problem = error
                    if not first.done():
                        first.set_exception(error)
                        return
                    if isinstance(error, UnauthorizedError):
                        self._tell(Disconnected(str(error), final=not self._attending))
                        if not self._attending:
                            return
                        await asyncio.sleep(RETRY_SECONDS[Passing.BY_A_PERSON])
                        continue
                    self._cuts = 0  # it is the server that comes and goes
                    logger.info("%s", error)
                    failures += 1
                    await asyncio.sleep(backoff(failures, *self.options.backoff) * random.uniform(0.5, 1.0))
                    continue
                failures, self.problem = 0, None
                if not first.done():
                    first.set_result(None)
                self._tell(Connected(self.options.url, self.way))
                await self._stay()
                await self._disconnect(self._drop_reason)
                if not self.options.reconnect:
                    return
        finally:
            await self._disconnect("closed by this side", final=True)

    async def _stay(self) -> None:
        """Join again if there is an office to be in, and wait for the connection to drop."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        rejoin = asyncio.create_task(self._rejoin()) if self.membership else None
        try:
            await self._dropped.wait()
        finally:
            if rejoin is not None:
                rejoin.cancel()
                await asyncio.wait({rejoin})
        short = self._drop_reason == _CUT and loop.time() - started < _SHORT_LIVED
        is_websocket = self.way is not None and self.way.transport == "websocket"
        self._cuts = self._cuts + 1 if short and is_websocket else 0

    async def _rejoin(self) -> None:
        loop = asyncio.get_running_loop()
        started, reported = loop.time(), False
        while (membership := self.membership) is not None and not self._in_office:
            try:
                async with self._changing:
                    if self.membership is not membership or self._in_office:
                        continue  # joined or left while this waited its turn
                    again = self._was_in_office
                    await self._join(membership)
                    self._enter()
            except ConnectionLostError:
                return
            except SMCPError as error:
                self.problem = error
                passing = passes(error)
                final = not passing and not self._attending
                if not passing or (not reported and loop.time() - started >= self.options.rejoin_report_after):
                    reported = True
                    logger.warning("not %s the office: %s", "back in" if again else "in", error)
                    self._tell(RejoinFailed(membership, error, final=final))
                if final:
                    return
                await asyncio.sleep(self.options.rejoin_every if passing else RETRY_SECONDS[Passing.BY_A_PERSON])
            else:
                self._tell(Joined(membership, again=again))
                return

    async def _connect(self) -> None:
        """Connect by the first transport that gets through, or raise."""
        options, failures = self.options, list[Failure]()
        proxy, tls = find_proxy(options.url, options.proxy, os.environ), _trusting(options.ca)
        tries = attempts(options.transport, websockets_are_cut=self._cuts >= _CUTS)
        for transports in tries:
            # The first one leaves time for the second: what blocks websockets may let them wait.
            seconds = options.connect_timeout / (2 if transports is not tries[-1] else 1)
            outcome = await self._attempt(transports, proxy, tls, seconds)
            if isinstance(outcome, Connection):
                no_websocket = failures[0].why if failures and outcome.transport_in_use == "polling" else ""
                self.way = Way(outcome.transport_in_use, proxy, no_websocket)
                self._in_office = False
                self._connection = outcome
                logger.info("connected to %s: %s", _shown(options.url), self.way)
                return
            failures.append(outcome)
            if not outcome.transport_only:
                break
        raise unreachable(_shown(options.url), failures)

    async def _attempt(
        self, transports: Sequence[str], proxy: Proxy | None, tls: ssl.SSLContext | None, seconds: float
    ) -> Connection | Failure:
        """A connection, or why there is none; a server's refusal raises."""
        options = self.options
        refusal: list[SMCPError] = []
        self._dropped.clear()
        connection = Connection(self._dispatch, self._take_ack, options.max_message, proxy, tls)

        async def on_refused(data: Any = None) -> None:
            refusal.append(_refusal(data))

        async def on_disconnect(reason: Any = None) -> None:
            self._drop_reason = str(reason or "connection lost")
            self._dropped.set()

        connection.on("connect_error", on_refused, namespace=SMCP_NAMESPACE)
        connection.on("disconnect", on_disconnect, namespace=SMCP_NAMESPACE)
        headers = dict(options.headers)
        if options.api_key is not None:
            headers[options.api_key_header] = options.api_key
        try:
            async with asyncio.timeout(seconds):
                await connection.connect(
                    _addressed(options.url, self._office),
                    headers=headers,
                    auth={"token": options.api_key} if options.api_key is not None else None,
                    transports=list(transports),
                    namespaces=[SMCP_NAMESPACE],
                    socketio_path=options.socketio_path,
                    wait_timeout=seconds,
                )
        except Exception as error:
            # Not only its own errors: the libraries raise what they come upon in a greeting, a KeyError for instance.
            await connection.dispose()
            # Engine.IO reports a server that is not there in the same way, without saying where.
            if refusal and not isinstance(refusal[0], ConnectionLostError):
                raise refusal[0] from None
            return explain(connection.failure or error, _shown(options.url), proxy)
        except BaseException:
            await connection.dispose()
            raise
        return connection

    async def _disconnect(self, reason: str, *, final: bool = False) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self._in_office = False
        self.problem = ConnectionLostError(f"the connection to the server was lost: {reason}")
        reject_all(self._asks, partial(ConnectionLostError, self.problem.message))
        await connection.dispose()
        self._tell(Disconnected(reason, final=final or not self.options.reconnect))


def _addressed(url: str, office: str | None) -> str:
    """The URL with the office for a load balancer; a query of its own is kept."""
    if office is None:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode({'office': office})}"


def _shown(url: str) -> str:
    """A URL as it may be logged: without user information and query, where people keep secrets."""
    scheme, separator, rest = url.partition("?")[0].rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def _trusting(ca: str | os.PathLike[str] | None) -> ssl.SSLContext | None:
    """What trusts the certificates of this file besides those of the system; `None` for the system's only."""
    if ca is None:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise BadRequestError(f"the certificates in {os.fspath(ca)} cannot be read: {error}") from None
    return context


def _refusal(data: Any) -> SMCPError:
    """What a refused connection says. Engine.IO reports an unreachable server in the same way, as plain text."""
    if isinstance(data, Mapping):
        details = data.get("data")
        first = details[0] if isinstance(details, list) and details else details
        return error_from_payload(first) or UnauthorizedError(str(data.get("message", "refused")))
    return ConnectionLostError(str(data or "connection refused"))


def _raise_refusal(args: tuple[Any, ...]) -> None:
    if not args or args[0] is not True:
        raise error_from_reason(args[1] if len(args) > 1 else None)
