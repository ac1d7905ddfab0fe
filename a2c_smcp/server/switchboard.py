"""What a server does with its clients: performs what `offices` decides, and puts requests through to computers.

It knows connections as `port.ClientLine` only. What need not wait is done in the call that brought it; there are tasks
for what must wait: authentication, a registry that several processes share, and other processes.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

from a2c_smcp.dialects.at_the_server import mark_of
from a2c_smcp.dialects.marks import MARK_FIELD
from a2c_smcp.errors import (
    InternalError,
    NotInRoomError,
    SMCPError,
    TooManyRequestsError,
    UnauthorizedError,
)
from a2c_smcp.packet_text import encode_event, name_of
from a2c_smcp.server import offices
from a2c_smcp.server.auth import AuthenticationProvider, credentials_of
from a2c_smcp.server.boundary import (
    Observer,
    Silent,
    binary_message,
    notice_of,
    outcome_of,
)
from a2c_smcp.server.clients import Client
from a2c_smcp.server.effects import Broadcast, RoomChange
from a2c_smcp.server.envelopes import Message, read_message
from a2c_smcp.server.limits import Limits, TokenBucket
from a2c_smcp.server.offices import Grant, Member, Transition
from a2c_smcp.server.own_fields import with_field
from a2c_smcp.server.port import (
    KEY_WITHDRAWN,
    KICKED,
    REPLACED,
    TOKEN_EXPIRED,
    ClientLine,
    Mention,
    Newcomer,
    NotLetInError,
)
from a2c_smcp.server.registry import LocalRegistry, Registry
from a2c_smcp.server.relaying import LATER, Relaying
from a2c_smcp.server.relays import relay_bounds
from a2c_smcp.server.rooms import Rooms
from a2c_smcp.server.session_record import session_record
from a2c_smcp.smcp import (
    AUTHENTICATE_EVENT,
    JOIN_OFFICE_EVENT,
    MOVING_NOTIFICATION,
    QUESTION_EVENT,
    SMCP_NAMESPACE,
    TOOL_PROGRESS_EVENT,
    Event,
    Kind,
)

if TYPE_CHECKING:
    from a2c_smcp.record.writer import RecordWriter

__all__ = ["RETIRING", "Retiring", "Switchboard", "do_later"]

logger = logging.getLogger(__name__)

#: Seconds between two looks at what is left, while the process ends.
_LOOK: Final = 0.02
#: Seconds that clients may take to read the last answers.
_READ_SECONDS: Final = 2.0
#: Clients that are told to move between two looks, whatever their number: a thousand in a second.
_MOVED_AT_ONCE: Final = 20
#: Seconds until the end of a token is looked at again, at most.
_LONGEST_TIMER: Final = 3600.0
#: Sessions whose keys are checked in one turn of the event loop.
_GRANTS_AT_ONCE: Final = 500


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


class Switchboard(Relaying):
    """The decisions of one server process. A `port.Decisions`."""

    def __init__(
        self,
        auth: AuthenticationProvider,
        *,
        limits: Limits | None = None,
        registry: Registry | None = None,
        observer: Observer | None = None,
        namespace: str = SMCP_NAMESPACE,
    ) -> None:
        super().__init__(limits or Limits(), registry or LocalRegistry(), observer or Silent(), namespace)
        self.rooms = Rooms()
        self._auth = auth
        self._serving: set[asyncio.Task[None]] = set()
        """Requests that wait for something else than a computer of this process."""
        self._retiring: set[asyncio.Task[None]] = set()
        self._draining = False

    # --- what operators and the process ask

    @property
    def pending_relays(self) -> int:
        """How many requests of agents wait for the answer of a computer."""
        return len(self._relays)

    @property
    def sessions(self) -> int:
        """How many clients are connected."""
        return len(self._clients)

    @property
    def clients(self) -> Collection[Client]:
        """The sessions of this process."""
        return self._clients.values()

    def queued_bytes(self) -> list[int]:
        """How many bytes wait for each client."""
        return [client.line.queued_bytes for client in self._clients.values()]

    def unwritten(self) -> list[ClientLine]:
        """The lines of clients that have not read yet all that was sent to them."""
        return [client.line for client in self._clients.values() if not client.line.is_written_out]

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
            client.line.bound(limits.queued_bytes)

    def kick(self, sid: str, reason: str = KICKED) -> bool:
        """End the connection of a session. Returns whether it was here. Its client may connect again."""
        if (client := self._clients.get(sid)) is None:
            return False
        client.line.close(reason)
        return True

    async def check_grants(self, current: Callable[[Grant], Grant | None]) -> int:
        """Apply what the keys of all sessions allow now; `current` gives `None` for a key that is not accepted any
        more. Ends the sessions that are not allowed any more where they are, and returns how many.
        """
        ended = 0
        for number, client in enumerate(list(self._clients.values())):
            if not number % _GRANTS_AT_ONCE:
                await asyncio.sleep(0)
            grant = current(client.record.grant)
            if grant is not None and (not client.record.office or grant.allows(*client.record.place)):
                self._regrant(client, grant)
            elif self.kick(client.sid, KEY_WITHDRAWN):
                ended += 1
        return ended

    async def move_clients(self, seconds: float, announce: float) -> None:
        """Tell all clients to connect to another process, within `announce` seconds, and wait until they have gone,
        for this long at most. Meanwhile everything is served as before.
        """
        loop, told = asyncio.get_running_loop(), set[str]()
        until = loop.time() + seconds
        at_a_time = max(_MOVED_AT_ONCE, math.ceil(len(self._clients) * _LOOK / announce) if announce else 0)
        while self._clients and (left := until - loop.time()) > 0 and self.registry.has_others():
            moving = encode_event(self.namespace, MOVING_NOTIFICATION, {"within": round(left, 3)})
            waiting = [client for sid, client in self._clients.items() if sid not in told]
            for client in waiting[: at_a_time if announce else None]:
                told.add(client.sid)
                client.line.send(moving)
            await asyncio.sleep(_LOOK)

    async def drain(self, seconds: float) -> None:
        """Refuse new requests from now on, and wait until the answers to the running ones are written, for this long
        at most.
        """
        self._draining = True
        try:
            async with asyncio.timeout(seconds):
                # Polling here costs the hot path of a request nothing.
                while self._relays or self._serving:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK)
                async with asyncio.timeout(_READ_SECONDS):
                    while self.unwritten():  # noqa: ASYNC110
                        await asyncio.sleep(_LOOK)
        except TimeoutError:
            what = "%d requests were still waiting for an answer, and %d clients had not read what they got"
            logger.warning(what, len(self._relays), len(self.unwritten()))

    # --- connections

    async def connect(self, line: ClientLine, newcomer: Newcomer, auth: Any) -> None:
        """Let a client in, or raise `NotLetInError`."""
        address, wrong_keys = newcomer.address, self.admission.wrong_keys
        try:
            wrong_keys.check(address, time.monotonic())
            line.take_place()
            grant = await self._auth.authenticate(credentials_of(newcomer, auth))
            wrong_keys.right(address)
            if not line.is_open:
                raise NotInRoomError("the connection has gone")
            self.registry.connect(line.sid, grant)
            record = session_record(newcomer, grant, time.time())
            client = self._clients[line.sid] = Client(line, self._new_bucket(), record, mark_of(record.dialect))
            line.admit()
            self._events.connected(line.sid, record)
            self._await_expiry(client)
        except Exception as error:
            await asyncio.sleep(self._seconds_to_refusal(address, error))
            raise self._not_let_in(address, error) from None

    def _new_bucket(self) -> TokenBucket | None:
        rate = self.limits.requests_per_second
        return TokenBucket(rate, time.monotonic()) if rate else None

    def _seconds_to_refusal(self, address: str, error: Exception) -> float:
        """How long to hold a refusal back, so that nobody can try many keys."""
        if not isinstance(error, UnauthorizedError):
            return 0.0
        return self.admission.wrong_keys.wrong(address, time.monotonic())

    def _not_let_in(self, address: str, error: Exception) -> NotLetInError:
        if isinstance(error, SMCPError):
            fields = {"event": "refused", "code": error.code, "address": address}
            self.admission.address_log.warn(address, "refused a connection from %s: %s", address, error, fields=fields)
            failure = error
        else:
            # An authentication provider is not our code and may raise anything. A client without an answer would wait.
            logger.error("failed to authenticate a connection from %s", address, exc_info=error)
            failure = InternalError("the server failed to check the credentials; its log says why")
        self._observer.refused(failure.code)
        return NotLetInError({"message": str(failure), "data": failure.payload()})

    def disconnected(self, line: ClientLine, reason: str) -> None:
        """A client that was let in has gone."""
        if (client := self._clients.pop(line.sid, None)) is None:
            return
        self._observer.disconnected(reason)
        self._events.left(line.sid, client.record, reason)
        client.gone = True
        if client.expiry is not None:
            client.expiry.cancel()
        self.rooms.forget(line.sid)
        self._end_relays(line.sid)
        gone = None if client.changes else self.registry.disconnect(line.sid)
        if client.changes or isawaitable(gone):
            do_later(self._retiring, self._leave_later(client, gone))
        else:
            self._has_gone(gone)

    async def _leave_later(self, client: Client, gone: Any) -> None:
        async with client.lock:
            gone = gone or self.registry.disconnect(client.sid)
            self._has_gone(await gone if isawaitable(gone) else gone)

    def _has_gone(self, transition: Transition | None) -> None:
        if transition is not None and not self._draining:
            self._perform((), transition.notices)

    def _authentication(self, client: Client, message: Message) -> Coroutine[Any, Any, dict[str, Any]]:
        """Take the new token of a session. Wrong tokens count as they do when a client connects."""
        address = client.record.address
        self.admission.wrong_keys.check(address, time.monotonic())
        credentials = credentials_of(Newcomer(address, {}), {"token": message.request["token"]})

        async def authenticate() -> dict[str, Any]:
            try:
                grant = await self._auth.authenticate(credentials)
            except SMCPError as error:
                await asyncio.sleep(self._seconds_to_refusal(address, error))
                raise
            if client.gone:
                raise NotInRoomError("this session has ended")
            if client.record.office and not grant.allows(*client.record.place):
                raise UnauthorizedError("the new token does not allow this office in this role under this name")
            self._regrant(client, grant)
            return {}

        return authenticate()

    def _regrant(self, client: Client, grant: Grant) -> None:
        client.record.grant, client.stamp = grant, None
        self.registry.regrant(client.sid, grant)
        self._await_expiry(client)

    def _await_expiry(self, client: Client) -> None:
        if client.expiry is not None:
            client.expiry.cancel()
            client.expiry = None
        if math.isfinite(until := client.record.grant.expires_at):
            # Not longer than this at a time: somebody may set the clock.
            seconds = min(max(until - time.time(), 0.0), _LONGEST_TIMER)
            client.expiry = asyncio.get_running_loop().call_later(seconds, self._check_expiry, client)

    def _check_expiry(self, client: Client) -> None:
        if client.gone:
            return
        if client.record.grant.expires_at > time.time():
            self._await_expiry(client)
        else:
            client.line.close(TOKEN_EXPIRED)

    # --- events

    def event(self, line: ClientLine, ack_id: int | None, body: str) -> str | None:
        """Take an event. Returns the packet that answers it; `None` if it comes later, or if nobody wants one."""
        message = read_message(body, self.limits.max_timeout)
        try:
            if (client := self._clients.get(line.sid)) is None:
                raise NotInRoomError("this session has ended")
            reply = self._handle(client, ack_id, message)
        except Exception as error:
            # The boundary: a refusal or a fault becomes the reply to this event.
            reply = self._refused(line.sid, message, error)
        if reply is LATER or ack_id is None:
            return None
        return self._ack(ack_id, reply)

    def binary_event(self, line: ClientLine, ack_id: int | None, body: str) -> str | None:
        """Refuse an event that came with attachments."""
        return self.refuse(line, ack_id, binary_message(name_of(body)))

    def refuse(self, line: ClientLine, ack_id: int | None, message: Message) -> str | None:
        """Answer an event that has an error."""
        try:
            if (client := self._clients.get(line.sid)) is None:
                raise NotInRoomError("this session has ended")
            self._admit_event(client, message)
            raise InternalError("the server failed to handle this")
        except Exception as error:
            reply = self._refused(line.sid, message, error)
        return None if ack_id is None else self._ack(ack_id, reply)

    def _handle(self, client: Client, ack_id: int | None, message: Message) -> Any:
        if message.event in (TOOL_PROGRESS_EVENT, QUESTION_EVENT):
            return self._report(client, message)  # also while the calls that still run are waited for
        if self._draining:
            raise InternalError("the server is shutting down")
        row, request = self._admit_event(client, message), message.request
        match row.kind:
            case Kind.RELAY:
                return self._relay(client, ack_id, row, message)
            case Kind.MEMBERSHIP:
                return self._later(client, ack_id, message, self._change_membership(client, row, request))
            case Kind.CREDENTIALS:
                return self._later(client, ack_id, message, self._authentication(client, message))
            case Kind.ANNOUNCE:
                self._check_backlog(client.sid)
                notice = offices.announce(self.registry.session(client.sid), row, request)
                return self._later(client, ack_id, message, self._announce(notice))
            case Kind.NOTE:
                head = offices.record_head(self.registry.session(client.sid), row, request)
                return self._events.record_head(client.sid, client.record, head)
            case _:
                office_id = offices.list_room(self.registry.session(client.sid), row, request)
                return offices.listing(self.registry.members(office_id), request)

    def _admit_event(self, client: Client, message: Message) -> Event:
        """The row of the event that a client sends. Raises what can be refused without the registry."""
        if client.bucket:
            client.bucket.take(time.monotonic())
        row = message.row or offices.admit(message.event)
        if message.error:
            raise message.error
        if message.row is None:
            offices.check_ids(message.request)
        if row.kind is not Kind.CREDENTIALS and client.record.grant.expires_at <= time.time():
            raise UnauthorizedError(
                f"the token has expired; send a new one with {AUTHENTICATE_EVENT}, or connect again"
            )
        if client.retired:
            raise offices.superseded()
        if client.mark is not None and message.body is not None:
            message.body = with_field(message.body, MARK_FIELD, client.mark)
        return row

    def _later(self, client: Client, ack_id: int | None, message: Message, work: Any) -> Any:
        """The reply, if it is there; otherwise answer later."""
        if not isawaitable(work):
            return work

        async def answer() -> None:
            try:
                reply = await work
            except Exception as error:
                # The boundary, as in `event`.
                reply = self._refused(client.sid, message, error)
            if ack_id is not None:
                client.line.send(self._ack(ack_id, reply))

        do_later(self._serving, answer())
        return LATER

    # --- membership

    def _change_membership(self, client: Client, row: Event, request: Any) -> Any:
        """Join or leave. Returns the reply, or a coroutine that does if the registry takes its time."""
        began = time.monotonic()
        try:
            # Checked before anything waits, so that a request that waits is small.
            if row.name == JOIN_OFFICE_EVENT:
                offices.check_names(request)
            else:
                offices.check_office_left(request)
            outcome = None
            if not client.changes and not isawaitable(outcome := self._decided(client, row, request)):
                return self._changed(client, row, request, outcome, began)
            client.begin_change()
        except Exception as error:
            self._note_join(row, outcome_of(error), began)
            raise
        return self._change_in_turn(client, row, request, outcome, began)

    def _decided(self, client: Client, row: Event, request: Any) -> Any:
        if row.name == JOIN_OFFICE_EVENT:
            self._check_backlog(client.sid)
            return self.registry.join(client.sid, request)
        return self.registry.leave(client.sid, request)

    async def _change_in_turn(self, client: Client, row: Event, request: Any, outcome: Any, began: float) -> Any:
        try:
            async with client.changing():
                if outcome is None:
                    outcome = self._decided(client, row, request)
                transition = await outcome if isawaitable(outcome) else outcome
                if client.gone:
                    # The session ended while the registry changed it. The office is told nothing.
                    gone = self.registry.disconnect(client.sid)
                    if isawaitable(gone):
                        await gone
                    raise NotInRoomError("this session has ended")
                return self._changed(client, row, request, transition, began)
        except Exception as error:
            self._note_join(row, outcome_of(error), began)
            raise

    def _changed(self, client: Client, row: Event, request: Any, transition: Transition, began: float) -> Any:
        sid, record = client.sid, client.record
        if row.name == JOIN_OFFICE_EVENT:
            record.enters(request["office_id"], request["role"], request["name"])
            self._events.joined(sid, record)
        else:
            self._events.left(sid, record, "left")
            record.leaves()
        # The key of the session may have changed while it joined.
        self.registry.regrant(sid, record.grant)
        if record.office and not record.grant.allows(*record.place):
            client.line.close(KEY_WITHDRAWN)
        self._perform(transition.rooms, ())
        if transition.taken is not None:
            self._retire(transition.taken)
        self._perform((), transition.notices)
        if transition.left_office:
            self._end_relays(sid)
        self._note_join(row, "joined", began)
        return True, None

    def _note_join(self, row: Event, outcome: str, began: float) -> None:
        if row.name == JOIN_OFFICE_EVENT:
            self._observer.joined(outcome, time.monotonic() - began)

    def _perform(self, rooms: Iterable[RoomChange], notices: Iterable[Broadcast]) -> None:
        for change in rooms:
            if not change.enters:
                self.rooms.leave(change.office_id, change.sid)
            elif (client := self._clients.get(change.sid)) is not None:  # it may have gone meanwhile
                self.rooms.enter(change.office_id, client.line)
        for notice in notices:
            self._tell(notice)

    def _retire(self, member: Member) -> None:
        """A newer session of the same client has this place: close its session when nothing is on its way there."""
        do_later(self._retiring, self._close_retired(member))

    async def _close_retired(self, member: Member) -> None:
        """For a moment the session hears what the office hears, because other processes may not know yet that it has
        moved. What is on its way is waited for, unless its client has gone. The answer to the ping comes after what the
        client had sent before. Later requests are refused, so that no session stays for ever.
        """
        sid = member.sid
        if (client := self._clients.get(sid)) is None:
            return
        client.line.ask_for_a_sign()
        silent_at = time.monotonic() + RETIRING.sign
        await asyncio.sleep(RETIRING.linger)
        self.rooms.leave(member.office_id, sid)
        while not client.gone:
            if client.line.has_given_a_sign:
                client.retired = True
                if not self._relays.concerns(sid) and client.line.is_written_out:
                    break
            elif time.monotonic() > silent_at:
                logger.info("session %s, which a newer one has replaced, is silent", sid)
                break
            await asyncio.sleep(RETIRING.look)
        client.line.close(REPLACED)

    # --- notices

    def _announce(self, notice: Broadcast) -> Any:
        """Tell an office what one of its members announces. Returns the reply, or a coroutine that does."""
        self._tell(notice)
        return {}

    def _tell(self, notice: Broadcast) -> str:
        """Tell the members of an office that are connected to this process; returns the text of the packet."""
        packet = notice_of(self.namespace, notice)
        if notice.agent_only:
            self._tell_agent(notice, packet.text)
        else:
            self.rooms.tell(notice.office_id, packet)
        return packet.text

    def _tell_agent(self, notice: Broadcast, text: str) -> None:
        """Tell the agent of an office alone, if it is connected to this process. While the packet waits, a repeat of
        the same computer is left out. An agent that is far behind gets none.
        """
        seat = self.registry.seat(notice.office_id)
        if seat is not None and (client := self._clients.get(seat.sid)) is not None:
            client.line.mention(Mention(text, (notice.skip_sid, text)))

    def _check_backlog(self, sid: str) -> None:
        if self.rooms.is_behind(sid):
            raise TooManyRequestsError("too many announcements of this session wait to be delivered; slow down")


def do_later(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    """Run a task, and keep it in this set while it runs."""
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
