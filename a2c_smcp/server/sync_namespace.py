"""The threaded shell (Flask, Django, werkzeug): performs what `offices` decides. States no rule of its own."""

import logging
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import socketio
from engineio.exceptions import SocketIsClosedError
from engineio.packet import MESSAGE, Packet
from socketio.exceptions import ConnectionRefusedError
from socketio.packet import EVENT

from a2c_smcp.errors import (
    InternalError,
    NotFoundError,
    NotInRoomError,
    RequestTimeoutError,
    SMCPError,
    TooManyRequestsError,
)
from a2c_smcp.server import offices
from a2c_smcp.server.admission import Admission
from a2c_smcp.server.auth import SyncAuthenticationProvider, credentials_of
from a2c_smcp.server.boundary import (
    Observer,
    Silent,
    ack_packet,
    answered,
    binary_message,
    cancellation,
    log_passed_on,
    log_refusal,
    notice_of,
    refusal,
    relay_of,
    remote_address,
)
from a2c_smcp.server.effects import Broadcast, EnterRoom, RoomChange, room_of
from a2c_smcp.server.envelopes import Answer, Message, answer_from, read_answer, read_message
from a2c_smcp.server.limits import Limits, TokenBucket
from a2c_smcp.server.registry import MemoryRegistry
from a2c_smcp.server.relays import Relay, RelayTable
from a2c_smcp.server.socketio_setup import encode_request, expected_ack, forget_ack, sort_packet, use_unique_ack_ids
from a2c_smcp.server.sockets import BoundedSocket, adopt_sockets, socket_of
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_NOTIFICATION,
    JOIN_OFFICE_EVENT,
    SMCP_NAMESPACE,
    TOOL_CALL_EVENT,
    Event,
    Kind,
)
from a2c_smcp.utils.text import in_log, req_id_in_log
from a2c_smcp.wire import Encoded

__all__ = ["SyncSMCPNamespace"]

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Client:
    """What the shell keeps of a connection."""

    sid: str
    bucket: TokenBucket | None


class _Waiting:
    """For one ack, whichever way it comes: called by python-socketio with what it built, or given as read by us."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: Future[Answer | None] = Future()

    def __call__(self, *args: Any) -> None:
        self.answer(answer_from(args))

    # Whoever is second, an ack or a failure, comes too late.

    def answer(self, answer: Answer | None) -> None:
        with suppress(InvalidStateError):
            self.future.set_result(answer)

    def fail(self, error: SMCPError) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)


class SyncSMCPNamespace(socketio.Namespace):  # type: ignore[misc]  # python-socketio ships no types
    """The server role on a threaded `socketio.Server`: `sio.register_namespace(SyncSMCPNamespace(auth))`.

    Create the server with `socketio.Server(async_mode="threading", **sync_server_options(...))` for the protocol's
    message size. Every relay has a thread; membership, rooms and the table of relays are changed under one lock.
    """

    def __init__(
        self,
        auth: SyncAuthenticationProvider,
        *,
        limits: Limits | None = None,
        observer: Observer | None = None,
        namespace: str = SMCP_NAMESPACE,
    ) -> None:
        super().__init__(namespace)
        self.limits = limits or Limits()
        self.admission = Admission(self.limits)
        self.registry = MemoryRegistry()
        self._auth = auth
        self._observer = observer or Silent()
        self._clients: dict[str, _Client] = {}
        self._relays = RelayTable(self.limits.pending_relays)
        # Re-entrant: a broadcast may come upon a dead member, whose disconnect is then handled on the spot.
        self._lock = threading.RLock()

    def _set_server(self, server: Any) -> None:
        super()._set_server(server)
        adopt_sockets(server, self.namespace, self.admission, self._take)

    @property
    def pending_relays(self) -> int:
        with self._lock:
            return len(self._relays)

    # --- messages

    def _take(self, socket: BoundedSocket, text: str) -> bool:
        """Take an event or an ack of ours off its connection; `False` leaves it to python-socketio, which builds
        whatever it carries.
        """
        if (incoming := sort_packet(self.server, self.namespace, socket.sid, text)) is None:
            return False
        sid, head = incoming
        if sid is None:
            return True
        if head.packet_type == EVENT:
            message = read_message(head.body, self.limits.max_timeout)
            if message.body is None:
                # Nobody else is waited for: the sender's next message is read when this one is done.
                self._serve(socket, sid, head.ack_id, message)
            else:
                self.server.start_background_task(self._serve, socket, sid, head.ack_id, message)
            return True
        waiting = expected_ack(self.server.manager, sid, head.ack_id)
        if isinstance(waiting, _Waiting):
            waiting.answer(read_answer(head.body))
        return waiting is None or isinstance(waiting, _Waiting)

    def _serve(self, socket: BoundedSocket, sid: str, ack_id: int | None, message: Message) -> None:
        reply = self._answer(sid, message)
        if ack_id is None:
            return
        with suppress(SocketIsClosedError):
            if isinstance(reply, Encoded):
                if socket.offer(ack_packet(self.namespace, ack_id, reply)):
                    return
                reply = refusal(message.event, self._unread(sid, message))
            socket.send(ack_packet(self.namespace, ack_id, reply))

    def _unread(self, sid: str, message: Message) -> SMCPError:
        """The error that an agent gets instead of an answer for which it reads too slowly."""
        error = TooManyRequestsError("too much waits to be read by this agent; the answer was left out")
        log_refusal(self.admission.session_log, message, sid, error)
        self._observer.refused(error.code)
        return error

    def trigger_event(self, event: Any, sid: str, *args: Any) -> Any:
        """What comes through python-socketio: connections and their ends, and events with binary attachments."""
        # A client can send events of these two names, too: only the library's own are meant.
        if event == "connect" and sid not in self._clients:
            return self._connect(sid, *args)
        if event == "disconnect" and not self.server.manager.is_connected(sid, self.namespace):
            return self._disconnect(sid)
        return self._answer(sid, binary_message(event))

    # --- connections

    def _connect(self, sid: str, environ: dict[str, Any], auth: Any = None) -> None:
        address = remote_address(environ)
        try:
            self._admit(sid, environ, auth, address)
        except SMCPError as error:
            self.admission.address_log.warn(address, "refused a connection from %s: %s", address, error)
            failure = error
        except Exception:
            # An authentication provider is somebody else's code, and a client that is not answered waits.
            logger.exception("failed to authenticate a connection from %s", address)
            failure = InternalError("the server failed to check the credentials; its log says why")
        else:
            return
        self._observer.refused(failure.code)
        raise ConnectionRefusedError(str(failure), failure.payload())

    def _admit(self, sid: str, environ: dict[str, Any], auth: Any, address: str) -> None:
        socket = socket_of(self.server, self.namespace, sid)
        if socket is None:
            raise NotInRoomError("the connection has gone")
        socket.take_place()
        grant = self._auth.authenticate(credentials_of(environ, auth, address))
        manager = self.server.manager
        rate = self.limits.requests_per_second
        with self._lock:
            # python-socketio reports no disconnect for a session whose connect handler is still running.
            if manager.eio_sid_from_sid(sid, self.namespace) not in self.server.environ:
                raise NotInRoomError("the connection has gone")
            self.registry.connect(sid, grant)
            use_unique_ack_ids(manager, sid)
            self._clients[sid] = _Client(sid, TokenBucket(rate, time.monotonic()) if rate else None)
            socket.admit()

    def _disconnect(self, sid: str) -> None:
        with self._lock:
            client = self._clients.pop(sid, None)
            if client is None:
                return
            self._end_relays(sid)
            transition = self.registry.disconnect(sid)
            if transition is not None:
                self._perform((), transition.notices)

    # --- requests

    def _answer(self, sid: str, message: Message) -> Any:
        """The boundary: whatever happens below, an event is answered."""
        try:
            if (client := self._clients.get(sid)) is None:
                raise NotInRoomError("this session has ended")
            return self._handle(client, message)
        except SMCPError as error:
            log_refusal(self.admission.session_log, message, sid, error)
            failure = error
        except Exception:
            req_id = req_id_in_log(message.request)
            logger.exception("failed to handle %s from %s, req_id %s", in_log(message.event), sid, req_id)
            failure = InternalError("the server failed to handle this; its log says why")
        self._observer.refused(failure.code)
        return refusal(message.event, failure)

    def _handle(self, client: _Client, message: Message) -> Any:
        if client.bucket:
            with self._lock:
                client.bucket.take(time.monotonic())
        row, request = offices.admit(message.event), message.request
        if message.error:
            raise message.error
        if row.kind is Kind.RELAY:
            return self._relay(client, row, message)
        with self._lock:
            match row.kind:
                case Kind.MEMBERSHIP:
                    self._change_membership(client, row, request)
                    return True, None
                case Kind.ANNOUNCE:
                    self._perform((), (offices.announce(self.registry.session(client.sid), row, request),))
                    return {}
                case _:
                    office_id = offices.list_room(self.registry.session(client.sid), row, request)
                    return offices.listing(self.registry.members(office_id), request)

    def _change_membership(self, client: _Client, row: Event, request: Any) -> None:
        if row.name == JOIN_OFFICE_EVENT:
            offices.check_names(request, self.limits.name_length, self.limits.office_id_length)
            transition = self.registry.join(client.sid, request)
        else:
            transition = self.registry.leave(client.sid, request)
        self._perform(transition.rooms, transition.notices)
        if transition.left_office:
            self._end_relays(client.sid)

    def _perform(self, rooms: Iterable[RoomChange], notices: Iterable[Broadcast]) -> None:
        for change in rooms:
            act = self.enter_room if isinstance(change, EnterRoom) else self.leave_room
            act(change.sid, room_of(change.office_id))
        for notice in notices:
            packet = notice_of(self.namespace, notice)
            for sid, eio_sid in list(self.server.manager.get_participants(self.namespace, room_of(notice.office_id))):
                if sid != notice.skip_sid:
                    with suppress(SocketIsClosedError):
                        self.server.eio.send_packet(eio_sid, packet)

    # --- relays

    def _relay(self, client: _Client, row: Event, message: Message) -> Encoded:
        started = time.monotonic()
        outcome = "failed"
        try:
            answer = answered(row.name, self._ask(client.sid, row, message))
            outcome = "answered"
            if answer.error:
                outcome = "error"
                log_passed_on(self.admission.session_log, row.name, client.sid, message.request, answer.error)
            return answer.encoded
        except SMCPError as error:
            outcome = str(error.code)
            raise
        finally:
            self._observer.relayed(row.name, outcome, time.monotonic() - started)

    def _ask(self, caller: str, row: Event, message: Message) -> Answer | None:
        """Send a request to a computer and wait for its ack: not for ever, and not after either end has gone."""
        waiting = _Waiting()
        seconds = self.limits.deadline(row.name, message.request.get("timeout"))
        with self._lock:
            target = self.registry.route(caller, row, message.request["computer"]).sid
            relay = relay_of(caller, target, message, waiting.fail)
            self._relays.open(relay)
        try:
            self._send(relay, message, waiting)
            return waiting.future.result(seconds)
        except TimeoutError:
            raise RequestTimeoutError(f"the computer did not answer within {seconds:g} s") from None
        finally:
            with self._lock:
                self._relays.close(relay)
            forget_ack(self.server.manager, target, relay.ack_id)

    def _send(self, relay: Relay, message: Message, waiting: _Waiting) -> None:
        """Queue a request for its computer. While its answer is waited for, nothing here holds its payload."""
        relay.ack_id, text = encode_request(
            self.server,
            self.namespace,
            relay.target,
            relay.event,
            message.take_body(),
            waiting,
            self.limits.max_message,
        )
        socket = self.server.eio.sockets.get(self.server.manager.eio_sid_from_sid(relay.target, self.namespace))
        try:
            fits = socket is not None and socket.offer(Packet(MESSAGE, text))
        except SocketIsClosedError:
            socket = None
        if socket is None:
            raise NotFoundError("the computer has gone")
        if not fits:
            raise TooManyRequestsError("too much waits to be read by this computer; try again later")

    def _end_relays(self, sid: str) -> None:
        """Fail what waits for this session's answer, and cancel what it asked for."""
        orphans = self._relays.orphaned_by(sid)
        for relay in orphans.unanswered:
            relay.fail(NotFoundError("the computer has gone"))
        for relay in orphans.unwanted:
            relay.fail(NotInRoomError("the agent has gone"))
            if relay.event == TOOL_CALL_EVENT:
                self.emit(CANCEL_TOOL_CALL_NOTIFICATION, cancellation(relay), to=relay.target)
