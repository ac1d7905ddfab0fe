"""The asyncio shell: performs what `offices` decides, on a python-socketio server. States no rule of its own."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import socketio

from a2c_smcp.errors import InternalError, NotInRoomError, RequestTimeoutError, SMCPError, TooManyRequestsError
from a2c_smcp.server import offices
from a2c_smcp.server.auth import AuthenticationProvider, credentials_of
from a2c_smcp.server.base_namespace import BaseSMCPNamespace, Client, PendingAck
from a2c_smcp.server.boundary import Observer, ack_packet, cancellation, notice_of, remote_address
from a2c_smcp.server.broadcast import SMCPManager
from a2c_smcp.server.effects import Broadcast, RoomChange, room_of
from a2c_smcp.server.envelopes import Answer, Message
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.offices import Grant, Member
from a2c_smcp.server.registry import LocalRegistry, Registry
from a2c_smcp.server.relays import PassOn, RelayAsk
from a2c_smcp.server.session_record import session_record
from a2c_smcp.server.socket_bounds import KEY_WITHDRAWN, KICKED, REPLACED, TOKEN_EXPIRED
from a2c_smcp.server.sockets import BoundedAsyncSocket, unwritten_sockets
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_NOTIFICATION,
    JOIN_OFFICE_EVENT,
    MOVING_NOTIFICATION,
    QUESTION_EVENT,
    SMCP_NAMESPACE,
    TOOL_PROGRESS_EVENT,
    Event,
    Kind,
)
from a2c_smcp.utils.engineio_internals import SocketIsClosedError
from a2c_smcp.utils.socketio_internals import socket_of
from a2c_smcp.wire import Encoded

__all__ = ["SMCPNamespace"]

logger = logging.getLogger(__name__)

#: Seconds between two looks at what is left, while the process ends.
_LOOK: Final = 0.02
#: Seconds that clients may take to read the last answers.
_READ_SECONDS: Final = 2.0
#: Clients that are told to move between two looks, whatever their number: a thousand in a second.
_MOVED_AT_ONCE: Final = 20
#: Joins and leaves of one session that may be under way. All but the first wait for the one before.
_MOST_CHANGES: Final = 8
#: Seconds until the end of a token is looked at again, at most.
_LONGEST_TIMER: Final = 3600.0
#: Sessions whose keys are checked in one turn of the event loop.
_GRANTS_AT_ONCE: Final = 500


@dataclass(slots=True, eq=False)
class _LockedClient(Client):
    gone: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held for a join, a leave or the disconnect of this session."""
    changes: int = 0
    """Its joins and leaves that have the lock or wait for it."""
    expiry: asyncio.TimerHandle | None = None
    """Ends the session when its token ends."""

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        """Hold the lock for a join or a leave, or raise `TooManyRequestsError` when too many of them wait for it."""
        if self.changes >= _MOST_CHANGES:
            raise TooManyRequestsError(f"{_MOST_CHANGES} joins and leaves are under way; wait for some of them")
        self.changes += 1
        try:
            async with self.lock:
                yield
        finally:
            self.changes -= 1


class SMCPNamespace(BaseSMCPNamespace[_LockedClient], socketio.AsyncNamespace):  # type: ignore[misc]  # has no types
    """The server role on a `socketio.AsyncServer`: `sio.register_namespace(SMCPNamespace(auth))`.

    Create the server with `socketio.AsyncServer(**server_options(...))` for the protocol's message size and fast
    broadcasts. Before the process stops, await `drain`. `create_app` does all of this, and adds health and metrics.
    """

    def __init__(
        self,
        auth: AuthenticationProvider,
        *,
        limits: Limits | None = None,
        registry: Registry | None = None,
        observer: Observer | None = None,
        namespace: str = SMCP_NAMESPACE,
    ) -> None:
        super().__init__(limits, observer, namespace)
        self.registry: Registry = registry or LocalRegistry()
        self._auth = auth
        self._serving: set[asyncio.Task[None]] = set()
        self._retiring: set[asyncio.Task[None]] = set()
        self._draining = False

    @property
    def pending_relays(self) -> int:
        """How many requests of agents wait for the answer of a computer."""
        return len(self._relays)

    @property
    def sessions(self) -> int:
        """How many clients are connected."""
        return len(self._clients)

    async def move_clients(self, seconds: float, announce: float) -> None:
        """Tell all clients to connect to another process, within `announce` seconds, and wait until they have gone,
        for this long at most. Meanwhile everything is served as before.
        """
        loop, told = asyncio.get_running_loop(), set[str]()
        until = loop.time() + seconds
        at_a_time = max(_MOVED_AT_ONCE, math.ceil(len(self._clients) * _LOOK / announce) if announce else 0)
        while self._clients and (left := until - loop.time()) > 0 and self.registry.has_others():
            waiting = [sid for sid in self._clients if sid not in told]
            for sid in waiting[: at_a_time if announce else None]:
                told.add(sid)
                await self.emit(MOVING_NOTIFICATION, {"within": round(left, 3)}, to=sid)
            await asyncio.sleep(_LOOK)

    @property
    def clients(self) -> Collection[Client]:
        """The sessions of this process."""
        return self._clients.values()

    def socket(self, sid: str) -> BoundedAsyncSocket | None:
        """The connection of a session, if it is here."""
        socket = socket_of(self.server, self.namespace, sid)
        return socket if isinstance(socket, BoundedAsyncSocket) else None

    async def kick(self, sid: str, reason: str = KICKED) -> bool:
        """End the connection of a session. Returns whether it was here. Its client may connect again."""
        if sid not in self._clients or (socket := self.socket(sid)) is None:
            return False
        await socket.cut_off(reason)
        return True

    async def check_grants(self, current: Callable[[Grant], Grant | None]) -> int:
        """Apply what the keys of all sessions allow now; `current` gives `None` for a key that is not accepted any
        more. Ends the sessions that are not allowed any more where they are, and returns how many.
        """
        ended = 0
        for number, client in enumerate(list(self._clients.values())):
            if not number % _GRANTS_AT_ONCE:
                await asyncio.sleep(0)
            record = client.record
            grant = current(record.grant)
            if grant is not None and (not record.office or grant.allows(*record.place)):
                record.grant = grant
                self.registry.regrant(client.sid, grant)
                self._await_expiry(client)
            elif await self.kick(client.sid, KEY_WITHDRAWN):
                ended += 1
        return ended

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
                    while unwritten_sockets(self.server):  # noqa: ASYNC110
                        await asyncio.sleep(_LOOK)
        except TimeoutError:
            what = "%d requests were still waiting for an answer, and %d clients had not read what they got"
            logger.warning(what, len(self._relays), len(unwritten_sockets(self.server)))

    # --- messages

    def _start(self, socket: BoundedAsyncSocket, sid: str, ack_id: int | None, message: Message) -> None:
        task = asyncio.create_task(self._serve(socket, sid, ack_id, message))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, socket: BoundedAsyncSocket, sid: str, ack_id: int | None, message: Message) -> None:
        reply = await self._answer(sid, message)
        if ack_id is None:
            return
        with suppress(SocketIsClosedError):
            if isinstance(reply, Encoded):
                if await socket.offer(ack_packet(self.namespace, ack_id, reply)):
                    return
                reply = self._left_out(sid, message)
            await socket.send(ack_packet(self.namespace, ack_id, reply))

    # --- connections

    async def _connect(self, sid: str, environ: dict[str, Any], auth: Any = None) -> None:
        address = remote_address(environ)
        try:
            socket = self._arriving(sid, address)
            grant = await self._auth.authenticate(credentials_of(environ, auth, address))
            self.admission.wrong_keys.right(address)
            self._check_connected(sid)
            self.registry.connect(sid, grant)
            record = session_record(environ, address, grant, time.time())
            self._let_in(client := _LockedClient(sid, self._new_bucket(), record), socket)
            self._await_expiry(client)
        except Exception as error:
            await asyncio.sleep(self._seconds_to_refusal(address, error))
            raise self._refused_connection(address, error) from None

    async def _disconnect(self, sid: str) -> None:
        client = self._clients.pop(sid, None)
        if client is None:
            return
        client.gone = True
        if client.expiry is not None:
            client.expiry.cancel()
        await self._end_relays(sid)
        async with client.lock:
            transition = await self.registry.disconnect(sid)
        if transition is not None and not self._draining:
            await self._perform((), transition.notices)

    async def _authenticate(self, client: _LockedClient, message: Message) -> dict[str, Any]:
        """Take the new token of a session."""
        credentials = self._checked_credentials(client, message)
        try:
            grant = await self._auth.authenticate(credentials)
        except SMCPError as error:
            await asyncio.sleep(self._seconds_to_refusal(credentials.address, error))
            raise
        self._check_new_grant(client, grant)
        client.record.grant = grant
        self.registry.regrant(client.sid, grant)
        self._await_expiry(client)
        return {}

    def _await_expiry(self, client: _LockedClient) -> None:
        if client.expiry is not None:
            client.expiry.cancel()
            client.expiry = None
        if math.isfinite(until := client.record.grant.expires_at):
            # Not longer than this at a time: somebody may set the clock.
            seconds = min(max(until - time.time(), 0.0), _LONGEST_TIMER)
            client.expiry = asyncio.get_running_loop().call_later(seconds, self._check_expiry, client)

    def _check_expiry(self, client: _LockedClient) -> None:
        if client.gone:
            return
        if client.record.grant.expires_at > time.time():
            self._await_expiry(client)
            return
        task = asyncio.create_task(self._kick_expired(client.sid))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _kick_expired(self, sid: str) -> None:
        await self.kick(sid, TOKEN_EXPIRED)

    # --- requests

    async def _answer(self, sid: str, message: Message) -> Any:
        try:
            return await self._handle(self._client(sid), message)
        except Exception as error:
            # The boundary: a refusal or a fault becomes the reply to this event.
            return self._refused(sid, message, error)

    async def _handle(self, client: _LockedClient, message: Message) -> Any:
        if message.event in (TOOL_PROGRESS_EVENT, QUESTION_EVENT):
            return self._report(client, message)  # also while the calls that still run are waited for
        if self._draining:
            raise InternalError("the server is shutting down")
        row, request = self._admit_event(client, message), message.request
        match row.kind:
            case Kind.RELAY:
                return await self._relay(client, row, message)
            case Kind.MEMBERSHIP:
                with self._observed_change(row):
                    await self._change_membership(client, row, request)
                return True, None
            case Kind.CREDENTIALS:
                return await self._authenticate(client, message)
            case Kind.ANNOUNCE:
                self._check_backlog(client.sid)
                await self._announce(offices.announce(self.registry.session(client.sid), row, request))
                return {}
            case Kind.NOTE:
                head = offices.record_head(self.registry.session(client.sid), row, request)
                return self._events.record_head(client.sid, client.record, head)
            case _:
                office_id = offices.list_room(self.registry.session(client.sid), row, request)
                return offices.listing(self.registry.members(office_id), request)

    async def _change_membership(self, client: _LockedClient, row: Event, request: Any) -> None:
        # Checked before the lock, so that a request that waits for the lock is small.
        if row.name == JOIN_OFFICE_EVENT:
            offices.check_names(request)
        else:
            offices.check_office_left(request)
        async with client.changing():
            if row.name == JOIN_OFFICE_EVENT:
                self._check_backlog(client.sid)
                transition = await self.registry.join(client.sid, request)
            else:
                transition = await self.registry.leave(client.sid, request)
            if client.gone:
                # The session ended while the registry changed it. The office is told nothing.
                await self.registry.disconnect(client.sid)
                raise NotInRoomError("this session has ended")
            self._note_membership(client, row, request)
            await self._check_grant(client)
            await self._perform(transition.rooms, ())
        if transition.taken is not None:
            self._retire(transition.taken)
        # Outside the lock, because a broadcast may find a dead member and wait for its disconnect. Nothing is awaited
        # in between, so the notices of one session stay in order.
        await self._perform((), transition.notices)
        if transition.left_office:
            await self._end_relays(client.sid)

    async def _check_grant(self, client: _LockedClient) -> None:
        """The key of a session may have changed while the session joined."""
        record = client.record
        self.registry.regrant(client.sid, record.grant)
        if record.office and not record.grant.allows(*record.place):
            await self.kick(client.sid, KEY_WITHDRAWN)

    def _retire(self, member: Member) -> None:
        """A newer session of the same client has this place: close its session when nothing is on its way there."""
        task = asyncio.create_task(self._close_retired(member))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _close_retired(self, member: Member) -> None:
        for pause in self._retirement(member):
            await asyncio.sleep(pause)
        if (socket := socket_of(self.server, self.namespace, member.sid)) is not None:
            await socket.cut_off(REPLACED)

    async def _perform(self, rooms: Iterable[RoomChange], notices: Iterable[Broadcast]) -> None:
        for change in rooms:
            act = self.enter_room if change.enters else self.leave_room
            await act(change.sid, room_of(change.office_id))
        for notice in notices:
            await self._tell(notice)

    async def _announce(self, notice: Broadcast) -> None:
        """Tell an office what one of its members announces."""
        await self._tell(notice)

    async def _tell(self, notice: Broadcast) -> str:
        """Tell the members of an office that are connected to this process; returns the text of the packet."""
        manager, room, packet = self.server.manager, room_of(notice.office_id), notice_of(self.namespace, notice)
        if notice.agent_only:
            self._tell_agent(self.registry.seat(notice.office_id), notice, packet.data)
        elif isinstance(manager, SMCPManager):
            manager.broadcast(self.namespace, room, packet)
        else:
            await self.emit(notice.event, notice.data, room=room, skip_sid=notice.skip_sid)
        return str(packet.data)

    def _check_backlog(self, sid: str) -> None:
        manager = self.server.manager
        if isinstance(manager, SMCPManager) and manager.is_behind(sid):
            raise TooManyRequestsError("too many announcements of this session wait to be delivered; slow down")

    # --- relays

    async def _relay(self, client: _LockedClient, row: Event, message: Message) -> Encoded:
        with self._observed(client, message) as observed:
            target = self.registry.route(client.sid, row, message.request["computer"])
            # Nothing is awaited between the look-up and the table of relays: the end of either session finds the relay.
            answer = await self._ask(client.sid, target, message, asyncio.get_running_loop().create_future())
            return self._passed_on(client, message, answer, observed)

    async def _ask(
        self,
        caller: str,
        target: Member,
        message: Message,
        future: "asyncio.Future[Answer | None]",
        pass_on: PassOn | None = None,
    ) -> Answer | None:
        """Send a request to a computer, and wait for its ack until the deadline, or until either end has gone.

        `pass_on` takes what the call says to its caller if another process has the caller.
        """
        with self._waiting(caller, target, message, future, pass_on=pass_on) as (ask, pending):
            await self._send(ask, message, pending)
            return await future

    @contextmanager
    def _waiting(
        self,
        caller: str,
        target: Member,
        message: Message,
        future: "asyncio.Future[Answer | None]",
        grace: float = 0.0,
        pass_on: PassOn | None = None,
    ) -> Iterator[tuple[RelayAsk, PendingAck]]:
        """File a relay for the time of the block. Its deadline fails the future."""
        pending = PendingAck(future)
        ask = self._open_relay(caller, target.sid, message, pending, pass_on)
        seconds = self.limits.deadline(ask.waiter.event, message.request.get("timeout"))
        late = RequestTimeoutError(f"the computer did not answer within {seconds:g} s")
        timer = asyncio.get_running_loop().call_later(seconds + grace, pending.fail, late)
        try:
            yield ask, pending
        finally:
            timer.cancel()
            self._close_relay(ask)

    async def _send(self, ask: RelayAsk, message: Message, pending: PendingAck) -> None:
        socket, packet = self._request(ask, message, pending)
        try:
            fits = await socket.offer(packet)
        except SocketIsClosedError:
            raise offices.computer_gone() from None
        if not fits:
            raise TooManyRequestsError("this computer has too much to read; try again later")

    async def _end_relays(self, sid: str) -> None:
        for ask in self._fail_relays(sid):
            if ask.target in self._clients:
                await self._cancel(ask.target, cancellation(ask.waiter))

    async def _cancel(self, sid: str, call: dict[str, str]) -> None:
        await self.emit(CANCEL_TOOL_CALL_NOTIFICATION, call, to=sid)
