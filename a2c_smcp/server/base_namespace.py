"""What both server shells do in the same way: everything that does not wait. No tasks, no threads, no locks here.

A shell does the rest: it calls its authentication provider and its registry, sends, and waits for answers. The
threaded shell holds its lock around everything that changes a client or a relay.
"""

import asyncio
import concurrent.futures
import itertools
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from socketio.exceptions import ConnectionRefusedError

from a2c_smcp.dialects.at_the_server import answer_for, largest_for, mark_of, refusal_for, stand_in_of
from a2c_smcp.dialects.marks import MARK_FIELD
from a2c_smcp.errors import (
    InternalError,
    NotFoundError,
    NotInRoomError,
    SMCPError,
    TooManyRequestsError,
    UnauthorizedError,
)
from a2c_smcp.packet_text import encode_event
from a2c_smcp.server import offices
from a2c_smcp.server.admission import Admission
from a2c_smcp.server.auth import Credentials
from a2c_smcp.server.boundary import (
    Observer,
    Silent,
    answered,
    binary_message,
    log_passed_on,
    log_refusal,
    outcome_of,
    refusal,
    relay_of,
)
from a2c_smcp.server.call_tally import CallTally, ToolName
from a2c_smcp.server.effects import Broadcast, room_of
from a2c_smcp.server.envelopes import Answer, Message, answer_from, payload_of, read_answer, read_message
from a2c_smcp.server.event_log import EventLog, session_fields
from a2c_smcp.server.limits import Limits, TokenBucket
from a2c_smcp.server.offices import Grant, Member
from a2c_smcp.server.outbox import ReportPacket
from a2c_smcp.server.own_fields import around_field, stamp_of, with_field
from a2c_smcp.server.registry import Askers
from a2c_smcp.server.relay_spans import begin_span
from a2c_smcp.server.relays import PassOn, RelayAsk, relay_bounds, relay_table, reported_by
from a2c_smcp.server.reports import QuestionLimit, ReportLimit, report_packet
from a2c_smcp.server.session_record import SessionRecord
from a2c_smcp.server.socket_bounds import ServerDoor
from a2c_smcp.server.socketio_setup import encode_request, sort_packet
from a2c_smcp.server.sockets import adopt_sockets
from a2c_smcp.smcp import (
    AUTHENTICATE_EVENT,
    JOIN_OFFICE_EVENT,
    QUESTION_EVENT,
    QUESTION_NOTIFICATION,
    SMCP_NAMESPACE,
    STAMP_FIELD,
    TOOL_CALL_EVENT,
    TOOL_PROGRESS_NOTIFICATION,
    Event,
    Kind,
)
from a2c_smcp.tracing.switch import TRACING
from a2c_smcp.utils.engineio_internals import MESSAGE, Packet
from a2c_smcp.utils.log_fields import with_fields
from a2c_smcp.utils.socketio_internals import (
    EVENT,
    MountedNamespace,
    SocketIOServer,
    expected_ack,
    forget_ack,
    is_connected,
    is_open,
    socket_of,
    use_unique_ack_ids,
)
from a2c_smcp.utils.text import in_log, req_id_in_log
from a2c_smcp.wire import Encoded

if TYPE_CHECKING:
    from a2c_smcp.record.writer import RecordWriter
    from a2c_smcp.tracing.spans import OpenSpan

__all__ = ["RETIRING", "BaseSMCPNamespace", "Client", "Observed", "PendingAck", "Retiring"]

logger = logging.getLogger(__name__)

_ENDED: Final = (asyncio.InvalidStateError, concurrent.futures.InvalidStateError)
_Future: TypeAlias = "asyncio.Future[Answer | None] | concurrent.futures.Future[Answer | None]"


@dataclass(frozen=True, slots=True)
class Retiring:
    """How a session ends whose place was taken over. All in seconds."""

    linger: float = 1.0
    """How long it stays in any case. Within this time every process has heard of the change."""
    sign: float = 3.0
    """How long its client may take to answer a ping."""
    look: float = 0.1
    """Between two looks at whether its requests are answered."""


RETIRING: Final = Retiring()


@dataclass(slots=True, eq=False)
class Client:
    """What a shell keeps of a session."""

    sid: str
    bucket: TokenBucket | None
    record: SessionRecord
    retired: bool = False
    """Whether a newer session of the same client has its place. What it sends from now on is refused."""


ClientT = TypeVar("ClientT", bound=Client)


class PendingAck:
    """The wait for one ack. python-socketio calls it with decoded values; our own reader calls `answer`."""

    __slots__ = ("_future", "if_empty")

    def __init__(self, future: _Future) -> None:
        self._future = future
        self.if_empty: Answer | None = None
        """What stands for an ack without an answer."""

    def __call__(self, *args: Any) -> None:
        self.answer(answer_from(args))

    # Of an ack and a failure, the first one counts.

    def answer(self, answer: Answer | None) -> None:
        with suppress(*_ENDED):
            self._future.set_result(self.if_empty if answer is None else answer)

    def fail(self, error: SMCPError) -> None:
        with suppress(*_ENDED):
            self._future.set_exception(error)


#: Told how a request ended, after how many seconds, and with which code of the protocol.
TellEnd: TypeAlias = Callable[[str, float, int | None], None]


class Observed:
    """Tells how one request ended, how long it took, and with which code. `outcome` and `code` are how it ended, unless
    it raises.
    """

    __slots__ = ("_started", "_tell", "code", "outcome")

    def __init__(self, tell: TellEnd, outcome: str) -> None:
        self._tell = tell
        self._started = time.monotonic()
        self.outcome = outcome
        self.code: int | None = None

    def __enter__(self) -> "Observed":
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        outcome = self.outcome if error is None else outcome_of(error)
        code = error.code if isinstance(error, SMCPError) else self.code
        self._tell(outcome, time.monotonic() - self._started, code)


class TracedRelay(Observed):
    """One request that has a span, which ends with it."""

    __slots__ = ("_span",)

    def __init__(self, tell: TellEnd, span: "OpenSpan") -> None:
        super().__init__(tell, "failed")
        self._span = span

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        super().__exit__(kind, error, traceback)
        with self._span:
            outcome = self.outcome if error is None else outcome_of(error)
            if outcome != "answered":
                self._span.failed(outcome)


class BaseSMCPNamespace(MountedNamespace, ABC, Generic[ClientT]):
    """To be inherited beside a namespace class of python-socketio, which has `server`, `namespace` and `emit`.

    A shell adds `_start`, `_connect`, `_disconnect` and `_answer`. They return awaitables in the asyncio shell.
    """

    registry: Askers

    def __init__(self, limits: Limits | None, observer: Observer | None, namespace: str = SMCP_NAMESPACE) -> None:
        super().__init__(namespace)  # type: ignore[call-arg]  # python-socketio's
        self.limits = limits or Limits()
        self.admission = Admission(self.limits)
        self._observer = observer or Silent()
        self._clients: dict[str, ClientT] = {}
        self._relays = relay_table(self.limits.pending_relays)
        self._relay_numbers = itertools.count(1)
        self.tally = CallTally()
        self._events = EventLog()

    @abstractmethod
    def _start(self, socket: Any, sid: str, ack_id: int | None, message: Message) -> None:
        """Begin to serve an event."""

    @abstractmethod
    def _connect(self, sid: str, environ: dict[str, Any], auth: Any = None) -> Any: ...

    @abstractmethod
    def _disconnect(self, sid: str) -> Any: ...

    @abstractmethod
    def _answer(self, sid: str, message: Message) -> Any: ...

    # --- what arrives

    def mounted(self, server: SocketIOServer) -> None:
        adopt_sockets(ServerDoor(server, self.namespace, self.admission, self._take), self._clients)

    def _take(self, socket: Any, text: str) -> bool:
        """Take an event or an ack of our namespace; `False` leaves the message to python-socketio.

        The library makes two tasks for an event and one for an ack, and decodes everything that they carry.
        """
        if (incoming := sort_packet(self.server, self.namespace, socket.sid, self._clients, text)) is None:
            return False
        sid, head = incoming
        if sid is None:
            return True
        if head.packet_type == EVENT:
            self._start(socket, sid, head.ack_id, read_message(head.body, self.limits.max_timeout))
            return True
        pending = expected_ack(self.server, sid, head.ack_id)
        if isinstance(pending, PendingAck):
            pending.answer(read_answer(head.body))
        return pending is None or isinstance(pending, PendingAck)

    def trigger_event(self, event: Any, sid: str, *args: Any) -> Any:
        """Take what comes through python-socketio: connections, their ends, and events with binary attachments."""
        # A client can send events with these two names, too. Only the calls of the library itself count.
        if event == "connect" and sid not in self._clients:
            return self._connect(sid, *args)
        if event == "disconnect" and not is_connected(self.server, self.namespace, sid):
            if (client := self._clients.get(sid)) is not None:
                reason = str(args[0]) if args else ""
                self._observer.disconnected(reason)
                self._events.left(sid, client.record, reason)
            return self._disconnect(sid)
        return self._answer(sid, binary_message(event))

    # --- connections

    def _arriving(self, sid: str, address: str) -> Any:
        """Give a place to the connection of a session that is about to be authenticated, and return it; or raise."""
        self.admission.wrong_keys.check(address, time.monotonic())
        socket = socket_of(self.server, self.namespace, sid)
        if socket is None:
            raise NotInRoomError("the connection has gone")
        socket.take_place()
        return socket

    def _check_connected(self, sid: str) -> None:
        """Raise if the connection has gone: python-socketio reports no disconnect while a connect handler runs."""
        if not is_open(self.server, self.namespace, sid):
            raise NotInRoomError("the connection has gone")

    def _let_in(self, client: ClientT, socket: Any) -> None:
        use_unique_ack_ids(self.server, client.sid)
        self._clients[client.sid] = client
        socket.admit()
        self._events.connected(client.sid, client.record)

    def _note_membership(self, client: ClientT, row: Event, request: Any) -> None:
        """A client has joined or left an office."""
        if row.name == JOIN_OFFICE_EVENT:
            client.record.enters(request["office_id"], request["role"], request["name"])
            self._events.joined(client.sid, client.record)
        else:
            self._events.left(client.sid, client.record, "left")
            client.record.leaves()

    def _checked_credentials(self, client: ClientT, message: Message) -> Credentials:
        """What `server:authenticate` shows. Wrong tokens count as they do when a client connects."""
        self.admission.wrong_keys.check(client.record.address, time.monotonic())
        return Credentials({}, message.request["token"], client.record.address)

    def _check_new_grant(self, client: ClientT, grant: Grant) -> None:
        """Raise unless a session may stay where it is with its new credentials."""
        self._client(client.sid)  # it may have ended meanwhile
        if client.record.office and not grant.allows(*client.record.place):
            raise UnauthorizedError("the new token does not allow this office in this role under this name")

    def record_into(self, record: "RecordWriter") -> None:
        """Record from now on who comes, joins, leaves and calls. The caller closes the record."""
        self._events.record = record

    def change_limits(self, limits: Limits) -> None:
        """Obey these limits from now on. `max_message` and the times of a handshake stay as they were."""
        self.limits = limits
        self.admission.change(limits)
        self._relays.bound(relay_bounds(limits.pending_relays))
        for client in list(self._clients.values()):
            client.bucket = self._new_bucket()
            if (socket := socket_of(self.server, self.namespace, client.sid)) is not None:
                socket.outbox.most_bytes = limits.queued_bytes

    def _new_bucket(self) -> TokenBucket | None:
        rate = self.limits.requests_per_second
        return TokenBucket(rate, time.monotonic()) if rate else None

    def _retirement(self, member: Member) -> Iterator[float]:
        """Pauses, in seconds, until the session of a place that was taken over can be closed.

        For a moment it hears what the office hears, because other processes may not know yet that it has moved. What
        is on its way is waited for, unless its client has gone. The answer to the ping comes after what the client had
        sent before. Later requests are refused, so that no session stays for ever.
        """
        sid, namespace = member.sid, self.namespace
        if (socket := socket_of(self.server, namespace, sid)) is None:
            return
        asked, silent_at = socket.ask_for_a_sign(), time.monotonic() + RETIRING.sign
        yield RETIRING.linger
        self.server.manager.basic_leave_room(sid, namespace, room_of(member.office_id))
        while (client := self._clients.get(sid)) is not None:
            if socket.last_ping != asked:
                client.retired = True
                if not self._relays.concerns(sid) and socket.is_written_out:
                    return
            elif time.monotonic() > silent_at:
                logger.info("session %s, which a newer one has replaced, is silent", sid)
                return
            yield RETIRING.look

    def _seconds_to_refusal(self, address: str, error: Exception) -> float:
        """How long to hold a refusal back, so that nobody can try many keys."""
        if not isinstance(error, UnauthorizedError):
            return 0.0
        return self.admission.wrong_keys.wrong(address, time.monotonic())

    def _refused_connection(self, address: str, error: Exception) -> ConnectionRefusedError:
        """The refusal of a connection, as python-socketio wants it raised."""
        if isinstance(error, SMCPError):
            fields = {"event": "refused", "code": error.code, "address": address}
            self.admission.address_log.warn(address, "refused a connection from %s: %s", address, error, fields=fields)
            failure = error
        else:
            # An authentication provider is not our code and may raise anything. A client without an answer would wait.
            logger.error("failed to authenticate a connection from %s", address, exc_info=error)
            failure = InternalError("the server failed to check the credentials; its log says why")
        self._observer.refused(failure.code)
        return ConnectionRefusedError(str(failure), failure.payload())

    # --- requests

    def _client(self, sid: str) -> ClientT:
        if (client := self._clients.get(sid)) is None:
            raise NotInRoomError("this session has ended")
        return client

    def _admit_event(self, client: Client, message: Message) -> Event:
        """The row of the event that a client sends. Raises what can be refused without the registry."""
        if client.bucket:
            client.bucket.take(time.monotonic())
        row = offices.admit(message.event)
        if message.error:
            raise message.error
        offices.check_ids(message.request)
        if row.kind is not Kind.CREDENTIALS and client.record.grant.expires_at <= time.time():
            raise UnauthorizedError(
                f"the token has expired; send a new one with {AUTHENTICATE_EVENT}, or connect again"
            )
        if client.retired:
            raise offices.superseded()
        if message.body is not None and (mark := mark_of(client.record.dialect)) is not None:
            message.body = with_field(message.body, MARK_FIELD, mark)
        return row

    def _refused(self, sid: str, message: Message, error: Exception) -> Any:
        """The reply to an event whose handling has raised. This is the boundary: every event is answered."""
        if isinstance(error, SMCPError):
            log, fields = self.admission.session_log, self._session_fields(sid)
            log_refusal(log, self._peer_in_log(sid), message, sid, error, fields)
            failure = error
        else:
            req_id = req_id_in_log(message.request)
            extra = with_fields(event="failed", req_id=req_id, **self._session_fields(sid))
            what = "failed to handle %s from %s, req_id %s"
            logger.error(what, in_log(message.event), sid, req_id, exc_info=error, extra=extra)
            failure = InternalError("the server failed to handle this; its log says why")
        self._observer.refused(failure.code)
        reply, client = refusal(message.event, failure), self._clients.get(sid)
        return reply if client is None else refusal_for(client.record.dialect, message.event, failure, reply)

    def _peer_in_log(self, sid: str) -> str:
        """The key by which log lines about a session are limited: its connection, because a peer may open one
        session after another over it.
        """
        socket = socket_of(self.server, self.namespace, sid)
        if socket is None:
            return "sessions that have ended or are elsewhere"
        return f"the connection {socket.sid} from {socket.address}"

    def _session_fields(self, sid: str) -> dict[str, object]:
        client = self._clients.get(sid)
        return session_fields(sid, client.record if client else None)

    def _left_out(self, sid: str, message: Message) -> Any:
        """The error that an agent gets instead of an answer that does not fit into its queue."""
        error = TooManyRequestsError("this agent has too much to read; the answer was left out")
        return self._refused(sid, message, error)

    # --- relays

    def _observed(self, client: Client, message: Message) -> Observed:
        assert message.event is not None
        span = None if (spans := TRACING.spans) is None else begin_span(spans.relaying, message)
        tell: TellEnd = partial(self._relayed, message.event)
        if message.event == TOOL_CALL_EVENT:
            # The name is not kept with the request: a peer may send one of any length.
            tool, computer = message.request.pop("tool_name", ""), message.request["computer"]
            name = ToolName(client.record.office, computer[: offices.MAX_NAME], tool[: offices.MAX_NAME])
            tell = partial(self._called, client, name, message.request)
        return Observed(tell, "failed") if span is None else TracedRelay(tell, span)

    def _relayed(self, event: str, outcome: str, seconds: float, _: int | None) -> None:
        self._observer.relayed(event, outcome, seconds)

    def _called(
        self, client: Client, name: ToolName, request: object, outcome: str, seconds: float, code: int | None
    ) -> None:
        self._observer.relayed(TOOL_CALL_EVENT, outcome, seconds)
        self._events.called((client.sid, client.record), name, request, (outcome, seconds, code))
        self.tally.note(name, seconds, outcome != "answered", time.monotonic())

    def _observed_change(self, row: Event) -> AbstractContextManager[object]:
        return Observed(self._joined, "joined") if row.name == JOIN_OFFICE_EVENT else nullcontext()

    def _joined(self, outcome: str, seconds: float, _: int | None) -> None:
        self._observer.joined(outcome, seconds)

    def _passed_on(self, client: Client, message: Message, answer: Answer | None, relay: Observed) -> Encoded:
        """The reply to an agent, made from a computer's answer."""
        assert message.event is not None
        answer = answered(message.event, answer)
        relay.outcome = "answered"
        if answer.error:
            relay.outcome, relay.code = "error", answer.error.code
            log, peer = self.admission.session_log, self._peer_in_log(client.sid)
            fields = session_fields(client.sid, client.record)
            log_passed_on(log, peer, message.event, client.sid, message.request, answer.error, fields)
        return answer_for(client.record.dialect, message.event, answer.encoded, answer.error)

    def _open_relay(
        self,
        caller: str,
        target: str,
        message: Message,
        pending: PendingAck,
        pass_on: PassOn | None = None,
    ) -> RelayAsk:
        """File a relay. `pass_on` takes what the call says to its caller, if another process has the caller."""
        ask = relay_of(next(self._relay_numbers), caller, target, message, pending.fail)
        if ask.topic is not None:
            pass_on = pass_on or partial(self._mention, ask)
            if message.request.get("progress"):
                ask.waiter.on_progress = ReportLimit(partial(pass_on, TOOL_PROGRESS_NOTIFICATION), time.monotonic)
            if message.request.get("questions"):
                ask.waiter.on_question = QuestionLimit(partial(pass_on, QUESTION_NOTIFICATION))
        if (there := self._clients.get(target)) is not None:
            stand_in = stand_in_of(there.record.dialect, message.event, message.request["req_id"])
            pending.if_empty = None if stand_in is None else answer_from((stand_in,))
        self._relays.ask(ask)
        if ask.waiter.event == TOOL_CALL_EVENT:
            for sid in (caller, target):
                if (client := self._clients.get(sid)) is not None:  # another process may have one of them
                    client.record.calls += 1
        return ask

    def _request(self, ask: RelayAsk, message: Message, pending: PendingAck) -> tuple[Any, Packet]:
        """The socket of the computer, and the packet to send. Do not keep the packet while you wait for the answer: it
        may be large.
        """
        target, relay = ask.target, ask.waiter
        there = self._clients.get(target)
        # The name that the sender has at this moment: it may have another one since it sent the request.
        stamp = stamp_of(self.registry.asker(ask.caller))
        if there is None or not is_connected(self.server, self.namespace, target) or not self._relays.sent(ask.id):
            raise offices.computer_gone()
        most = largest_for(there.record.dialect, self.limits.max_message)
        body = around_field(message.take_body(), STAMP_FIELD, stamp)
        relay.ack_id, text = encode_request(self.server, self.namespace, target, relay.event, body, pending, most)
        if (socket := socket_of(self.server, self.namespace, target)) is None:
            raise offices.computer_gone()
        return socket, Packet(MESSAGE, text)

    def _report(self, client: Client, message: Message) -> dict[str, Any]:
        """Pass a report or a question on to the session that waits for its call. The limit of requests does not count
        them: each call has limits of its own. A report that is late, or about somebody else's call, is dropped. Such a
        question is refused, because its computer waits for an answer.
        """
        if message.error:
            raise message.error
        ask = reported_by(self._relays, client.sid, message.request)
        if message.event == QUESTION_EVENT:
            if ask is None or ask.waiter.on_question is None:
                raise NotFoundError("no call waits that could be asked this")
            ask.waiter.on_question(message.request, payload_of(message.take_body()))
        elif ask is not None and ask.waiter.on_progress is not None:
            ask.waiter.on_progress(message.request)
        return {}

    def _mention(self, ask: RelayAsk, event: str, text: str) -> bool:
        """Pass something on to a caller that is connected to this process."""
        if (socket := socket_of(self.server, self.namespace, ask.caller)) is None:
            return False
        if event == QUESTION_NOTIFICATION:
            return bool(socket.hand(Packet(MESSAGE, encode_event(self.namespace, event, Encoded(text)))))
        socket.mention(report_packet(self.namespace, ask.waiter, text))
        return True

    def _tell_agent(self, seat: Member | None, notice: Broadcast, text: str) -> None:
        """Tell the agent of an office alone, if it is connected to this process. While the packet waits, a repeat of
        the same computer is left out. An agent that is far behind gets none.
        """
        if seat is not None and (socket := socket_of(self.server, self.namespace, seat.sid)) is not None:
            socket.mention(ReportPacket(text, (notice.skip_sid, text)))

    def _close_relay(self, ask: RelayAsk) -> None:
        if ask.waiter.on_progress is not None:
            ask.waiter.on_progress.end()
        self._relays.end(ask.id)
        forget_ack(self.server, ask.target, ask.waiter.ack_id)

    def _fail_relays(self, sid: str) -> list[RelayAsk]:
        """Fail the requests that wait for this session, and those that it sent. Returns the tool calls that it sent:
        their computers must be told that these are cancelled.
        """
        lost = self._relays.lost(sid)
        for ask in lost.unanswered:
            ask.waiter.fail(offices.computer_gone())
        for ask in lost.unwanted:
            ask.waiter.fail(NotInRoomError("the agent has gone"))
        return [ask for ask in lost.unwanted if ask.waiter.event == TOOL_CALL_EVENT]
