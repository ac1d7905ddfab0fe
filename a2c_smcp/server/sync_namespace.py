"""The threaded shell (Flask, Django, werkzeug): performs what `offices` decides. States no rule of its own."""

import logging
import math
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Final

import socketio

from a2c_smcp.errors import RequestTimeoutError, SMCPError, TooManyRequestsError
from a2c_smcp.server import offices
from a2c_smcp.server.auth import SyncAuthenticationProvider, credentials_of
from a2c_smcp.server.base_namespace import BaseSMCPNamespace, Client, Observed, PendingAck
from a2c_smcp.server.boundary import Observer, ack_packet, cancellation, notice_of, remote_address
from a2c_smcp.server.effects import Broadcast, RoomChange, room_of
from a2c_smcp.server.envelopes import Answer, Message
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.offices import Member
from a2c_smcp.server.registry import MemoryRegistry
from a2c_smcp.server.relays import RelayAsk
from a2c_smcp.server.session_record import session_record
from a2c_smcp.server.socket_bounds import REPLACED, TOKEN_EXPIRED
from a2c_smcp.server.sockets import BoundedSocket
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_NOTIFICATION,
    JOIN_OFFICE_EVENT,
    QUESTION_EVENT,
    SMCP_NAMESPACE,
    TOOL_PROGRESS_EVENT,
    Event,
    Kind,
)
from a2c_smcp.utils.engineio_internals import SocketIsClosedError
from a2c_smcp.utils.socketio_internals import SocketIOServer, connections_in, socket_of
from a2c_smcp.wire import Encoded

__all__ = ["SyncSMCPNamespace"]

logger = logging.getLogger(__name__)

#: What `a2c server` limits and this server cannot, because the web server is somebody else's.
_WITHOUT: Final = (
    "the threaded server has no limits for half-open connections, slow headers and requests that nobody reads: its web "
    "server must end those; a2c server has such limits, see docs/limits.md"
)

#: Seconds between two looks at which tokens have ended.
_EXPIRY_LOOK: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Wait:
    """A request that was sent. A thread of its own waits for the answer."""

    client: Client
    future: "Future[Answer | None]"
    seconds: float
    observed: Observed
    exits: ExitStack
    """Closing this ends the relay."""


class SyncSMCPNamespace(BaseSMCPNamespace[Client], socketio.Namespace):  # type: ignore[misc]  # has no types
    """The server role on a threaded `socketio.Server`: `sio.register_namespace(SyncSMCPNamespace(auth))`.

    Create the server with `socketio.Server(async_mode="threading", **sync_server_options(...))` for the protocol's
    message size, and serve it with a WSGI server that has threads. Every relay has a thread. Membership, rooms and the
    table of relays are changed under one lock. Several processes cannot share offices: that needs the asyncio server.
    """

    def __init__(
        self,
        auth: SyncAuthenticationProvider,
        *,
        limits: Limits | None = None,
        observer: Observer | None = None,
        namespace: str = SMCP_NAMESPACE,
    ) -> None:
        super().__init__(limits, observer, namespace)
        self.registry: MemoryRegistry = MemoryRegistry()
        self._auth = auth
        # Re-entrant, because a broadcast may find a dead member, and handle its disconnect at once.
        self._lock = threading.RLock()
        self._expiring = False
        """Whether a thread looks after the ends of tokens."""

    @property
    def pending_relays(self) -> int:
        """How many requests of agents wait for the answer of a computer."""
        with self._lock:
            return len(self._relays)

    def mounted(self, server: SocketIOServer) -> None:
        """Called by the server that it is registered with. Logs which limits that server does not have."""
        super().mounted(server)
        logger.warning(_WITHOUT)

    # --- messages

    def _start(self, socket: BoundedSocket, sid: str, ack_id: int | None, message: Message) -> None:
        """Serve an event in the thread that has read it, until a computer must be waited for.

        That thread also sends the request. If a new thread did, the memory of a large request would stay with the
        allocator, which keeps an arena for each of many threads.
        """
        reply = self._answer(sid, message)
        if isinstance(reply, _Wait):
            try:
                self.server.start_background_task(self._reply_later, socket, sid, ack_id, message, reply)
                return
            except RuntimeError as error:  # there are no more threads
                reply.exits.close()
                reply = self._refused(sid, message, error)
        self._reply(socket, sid, ack_id, message, reply)

    def _reply_later(
        self, socket: BoundedSocket, sid: str, ack_id: int | None, message: Message, wait: "_Wait"
    ) -> None:
        try:
            reply: Any = self._waited_for(wait, message)
        except Exception as error:
            # The boundary, as in `_answer`.
            reply = self._refused(sid, message, error)
        self._reply(socket, sid, ack_id, message, reply)

    def _reply(self, socket: BoundedSocket, sid: str, ack_id: int | None, message: Message, reply: Any) -> None:
        if ack_id is None:
            return
        with suppress(SocketIsClosedError):
            if isinstance(reply, Encoded):
                if socket.offer(ack_packet(self.namespace, ack_id, reply)):
                    return
                reply = self._left_out(sid, message)
            socket.send(ack_packet(self.namespace, ack_id, reply))

    # --- connections

    def _connect(self, sid: str, environ: dict[str, Any], auth: Any = None) -> None:
        address = remote_address(environ)
        try:
            socket = self._arriving(sid, address)
            grant = self._auth.authenticate(credentials_of(environ, auth, address))
            self.admission.wrong_keys.right(address)
            with self._lock:
                self._check_connected(sid)
                self.registry.connect(sid, grant)
                record = session_record(environ, address, grant, time.time())
                self._let_in(client := Client(sid, self._new_bucket(), record), socket)
                self._await_expiry(client)
        except Exception as error:
            self.server.sleep(self._seconds_to_refusal(address, error))
            raise self._refused_connection(address, error) from None

    def _disconnect(self, sid: str) -> None:
        with self._lock:
            client = self._clients.pop(sid, None)
            if client is None:
                return
            self._end_relays(sid)
            transition = self.registry.disconnect(sid)
            if transition is not None:
                self._perform((), transition.notices)

    def _authenticate(self, client: Client, message: Message) -> dict[str, Any]:
        """Take the new token of a session. The lock is not held while the token is checked."""
        credentials = self._checked_credentials(client, message)
        try:
            grant = self._auth.authenticate(credentials)
        except SMCPError as error:
            self.server.sleep(self._seconds_to_refusal(credentials.address, error))
            raise
        with self._lock:
            self._check_new_grant(client, grant)
            client.record.grant = grant
            self.registry.regrant(client.sid, grant)
            self._await_expiry(client)
        return {}

    def _await_expiry(self, client: Client) -> None:
        """See to it that the session ends with its token. One thread looks after all of them, while there are any."""
        if math.isfinite(client.record.grant.expires_at) and not self._expiring:
            self._expiring = True
            self.server.start_background_task(self._end_expired)

    def _end_expired(self) -> None:
        while True:
            self.server.sleep(_EXPIRY_LOOK)
            with self._lock:
                ends = [(client.record.grant.expires_at, client.sid) for client in self._clients.values()]
                self._expiring = any(math.isfinite(until) for until, _ in ends)
                if not self._expiring:
                    return
            now = time.time()
            for sid in (sid for until, sid in ends if until <= now):
                if (socket := socket_of(self.server, self.namespace, sid)) is not None:
                    socket.cut_off(TOKEN_EXPIRED)

    # --- requests

    def _answer(self, sid: str, message: Message) -> Any:
        try:
            return self._handle(self._client(sid), message)
        except Exception as error:
            # The boundary: a refusal or a fault becomes the reply to this event.
            return self._refused(sid, message, error)

    def _handle(self, client: Client, message: Message) -> Any:
        with self._lock:
            if message.event in (TOOL_PROGRESS_EVENT, QUESTION_EVENT):
                return self._report(client, message)
            row, request = self._admit_event(client, message), message.request
        if row.kind is Kind.RELAY:
            return self._relay(client, row, message)
        if row.kind is Kind.CREDENTIALS:
            return self._authenticate(client, message)
        with self._lock:
            match row.kind:
                case Kind.MEMBERSHIP:
                    with self._observed_change(row):
                        self._change_membership(client, row, request)
                    return True, None
                case Kind.ANNOUNCE:
                    self._perform((), (offices.announce(self.registry.session(client.sid), row, request),))
                    return {}
                case Kind.NOTE:
                    head = offices.record_head(self.registry.session(client.sid), row, request)
                    return self._events.record_head(client.sid, client.record, head)
                case _:
                    office_id = offices.list_room(self.registry.session(client.sid), row, request)
                    return offices.listing(self.registry.members(office_id), request)

    def _change_membership(self, client: Client, row: Event, request: Any) -> None:
        if row.name == JOIN_OFFICE_EVENT:
            offices.check_names(request)
            transition = self.registry.join(client.sid, request)
        else:
            offices.check_office_left(request)
            transition = self.registry.leave(client.sid, request)
        self._note_membership(client, row, request)
        self._perform(transition.rooms, transition.notices)
        if transition.taken is not None:
            self.server.start_background_task(self._close_retired, transition.taken)
        if transition.left_office:
            self._end_relays(client.sid)

    def _close_retired(self, member: Member) -> None:
        """A newer session of the same client has this place: close its session when nothing is on its way there."""
        retirement = self._retirement(member)
        while True:
            with self._lock:
                pause = next(retirement, None)
            if pause is None:
                break
            self.server.sleep(pause)
        if (socket := socket_of(self.server, self.namespace, member.sid)) is not None:
            socket.cut_off(REPLACED)

    def _perform(self, rooms: Iterable[RoomChange], notices: Iterable[Broadcast]) -> None:
        for change in rooms:
            act = self.enter_room if change.enters else self.leave_room
            act(change.sid, room_of(change.office_id))
        for notice in notices:
            packet = notice_of(self.namespace, notice)
            if notice.agent_only:
                self._tell_agent(self.registry.seat(notice.office_id), notice, packet.data)
                continue
            for sid, eio_sid in connections_in(self.server, self.namespace, room_of(notice.office_id)):
                if sid != notice.skip_sid:
                    with suppress(SocketIsClosedError):
                        self.server.eio.send_packet(eio_sid, packet)

    # --- relays

    def _relay(self, client: Client, row: Event, message: Message) -> "_Wait":
        """Send a request to a computer. The caller waits for the ack next, until the deadline or until either end
        has gone.
        """
        with ExitStack() as exits:
            observed = exits.enter_context(self._observed(client, message))
            future: Future[Answer | None] = Future()
            pending = PendingAck(future)
            seconds = self.limits.deadline(row.name, message.request.get("timeout"))
            with self._lock:
                target = self.registry.route(client.sid, row, message.request["computer"]).sid
                ask = self._open_relay(client.sid, target, message, pending)
            exits.callback(self._forget_relay, ask)
            self._send(ask, message, pending)
            return _Wait(client, future, seconds, observed, exits.pop_all())

    def _waited_for(self, wait: "_Wait", message: Message) -> Encoded:
        with wait.exits:
            try:
                answer = wait.future.result(wait.seconds)
            except TimeoutError:
                raise RequestTimeoutError(f"the computer did not answer within {wait.seconds:g} s") from None
            return self._passed_on(wait.client, message, answer, wait.observed)

    def _forget_relay(self, ask: RelayAsk) -> None:
        with self._lock:
            self._close_relay(ask)

    def _send(self, ask: RelayAsk, message: Message, pending: PendingAck) -> None:
        socket, packet = self._request(ask, message, pending)
        try:
            fits = socket.offer(packet)
        except SocketIsClosedError:
            raise offices.computer_gone() from None
        if not fits:
            raise TooManyRequestsError("this computer has too much to read; try again later")

    def _end_relays(self, sid: str) -> None:
        for ask in self._fail_relays(sid):
            self.emit(CANCEL_TOOL_CALL_NOTIFICATION, cancellation(ask.waiter), to=ask.target)
