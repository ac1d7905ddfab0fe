"""The asyncio shell: performs what `offices` decides, on a python-socketio server. States no rule of its own."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import socketio

from a2c_smcp.errors import (
    InternalError,
    NotFoundError,
    NotInRoomError,
    RequestTimeoutError,
    SMCPError,
    TooManyRequestsError,
)
from a2c_smcp.server import offices
from a2c_smcp.server.auth import AuthenticationProvider, credentials_of
from a2c_smcp.server.base_namespace import BaseSMCPNamespace, Client, PendingAck
from a2c_smcp.server.boundary import Observer, ack_packet, cancellation, log_refusal, notice_of, remote_address
from a2c_smcp.server.broadcast import SMCPManager
from a2c_smcp.server.bus import Bus, LocalBus, RemoteRequest
from a2c_smcp.server.effects import Broadcast, EnterRoom, RoomChange, room_of
from a2c_smcp.server.envelopes import Answer, Message
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.offices import Member, MemberChange
from a2c_smcp.server.outbox import NoticePacket
from a2c_smcp.server.registry import LocalRegistry, Registry
from a2c_smcp.server.relays import RelayAsk
from a2c_smcp.server.sockets import BoundedAsyncSocket, unwritten_sockets
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_NOTIFICATION,
    JOIN_OFFICE_EVENT,
    SMCP_NAMESPACE,
    TOOL_CALL_EVENT,
    TOOL_PROGRESS_EVENT,
    Event,
    Kind,
)
from a2c_smcp.utils.engineio_internals import SocketIsClosedError
from a2c_smcp.utils.socketio_internals import is_connected, socket_of
from a2c_smcp.wire import Encoded

__all__ = ["SMCPNamespace"]

logger = logging.getLogger(__name__)

#: Joins and leaves of one session that may be under way, most of them waiting for the one before.
_MOST_CHANGES: Final = 8
#: How much longer a call to another process is waited for than that process waits: its answer should come first.
_ELSEWHERE_GRACE: Final = 1.0


@dataclass(slots=True, eq=False)
class _LockedClient(Client):
    gone: bool = False
    leaves: int = 0
    """How often it has left an office. Who waits notes this number, and looks at it again."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Join, leave and disconnect of one session are serialised."""
    changes: int = 0
    """Its joins and leaves that have the lock or wait for it."""

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

    It is the `RegistryListener` of its registry and the `BusInbox` of its bus.
    """

    def __init__(
        self,
        auth: AuthenticationProvider,
        *,
        limits: Limits | None = None,
        registry: Registry | None = None,
        bus: Bus | None = None,
        observer: Observer | None = None,
        namespace: str = SMCP_NAMESPACE,
    ) -> None:
        super().__init__(limits, observer, namespace)
        self.registry: Registry = registry or LocalRegistry()
        self.registry.listen(self)
        self._bus: Bus = bus or LocalBus()
        self._bus.serve(self)
        self._auth = auth
        self._serving: set[asyncio.Task[None]] = set()
        self._draining = False

    @property
    def pending_relays(self) -> int:
        """How many requests of agents wait for the answer of a computer."""
        return len(self._relays)

    async def drain(self, seconds: float) -> None:
        """Refuse new requests from now on, and wait until the answers to the running ones are written, but not longer
        than this.
        """
        self._draining = True
        try:
            async with asyncio.timeout(seconds):
                # The hot path of a request owes nothing to shutdown.
                while self._relays or self._serving or unwritten_sockets(self.server):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
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
            await self.registry.connect(sid, grant)
            self._let_in(_LockedClient(sid, self._new_bucket()), socket)
        except Exception as error:
            await asyncio.sleep(self._seconds_to_refusal(address, error))
            raise self._refused_connection(address, error) from None

    async def _disconnect(self, sid: str) -> None:
        client = self._clients.pop(sid, None)
        if client is None:
            return
        client.gone = True
        await self._end_relays(sid)
        async with client.lock:
            transition = await self.registry.disconnect(sid)
        if transition is not None and not self._draining:
            await self._perform((), transition.notices)

    # --- requests

    async def _answer(self, sid: str, message: Message) -> Any:
        try:
            return await self._handle(self._client(sid), message)
        except Exception as error:
            # The boundary: a refusal or a fault becomes the reply to this event.
            return self._refused(sid, message, error)

    async def _handle(self, client: _LockedClient, message: Message) -> Any:
        if message.event == TOOL_PROGRESS_EVENT:
            return self._report(client, message)  # also while the calls that still run are waited for
        if self._draining:
            raise InternalError("the server is shutting down")
        row, request = self._admit_event(client, message), message.request
        match row.kind:
            case Kind.RELAY:
                return await self._relay(client, row, message)
            case Kind.MEMBERSHIP:
                await self._change_membership(client, row, request)
                return True, None
            case Kind.ANNOUNCE:
                self._check_backlog(client.sid)
                leaves = client.leaves
                notice = offices.announce(await self.registry.session(client.sid), row, request)
                self._check_stayed(client, leaves)
                self._bus.publish(notice, await self._tell(notice))
                return {}
            case _:
                leaves = client.leaves
                office_id = offices.list_room(await self.registry.session(client.sid), row, request)
                members = await self.registry.members(office_id)
                self._check_stayed(client, leaves)
                return offices.listing(members, request)

    @staticmethod
    def _check_stayed(client: _LockedClient, leaves: int) -> None:
        """Raise when a session has left its office, or has ended, since it had left that many."""
        if client.gone or client.leaves != leaves:
            raise NotInRoomError("this session has left the office meanwhile")

    async def _change_membership(self, client: _LockedClient, row: Event, request: Any) -> None:
        # Before the lock: what waits for it is kept.
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
                # The session ended while the registry was asked: the office is told nothing.
                await self.registry.disconnect(client.sid)
                raise NotInRoomError("this session has ended")
            client.leaves += transition.left_office
            await self._perform(transition.rooms, ())
        # Outside the lock, because a broadcast may come upon a dead member and wait for its disconnect. Nothing is
        # awaited in between, so the notices of one session stay in order.
        await self._perform((), transition.notices)
        if transition.left_office:
            await self._end_relays(client.sid)

    async def _perform(self, rooms: Iterable[RoomChange], notices: Iterable[Broadcast]) -> None:
        for change in rooms:
            act = self.enter_room if isinstance(change, EnterRoom) else self.leave_room
            await act(change.sid, room_of(change.office_id))
        for notice in notices:
            await self._tell(notice)

    async def _tell(self, notice: Broadcast) -> str:
        """Tell the members of an office that are here; returns the packet's text."""
        manager, room, packet = self.server.manager, room_of(notice.office_id), notice_of(self.namespace, notice)
        if isinstance(manager, SMCPManager):
            manager.broadcast(self.namespace, room, packet)
        else:
            await self.emit(notice.event, notice.data, room=room, skip_sid=notice.skip_sid)
        return str(packet.data)

    def _check_backlog(self, sid: str) -> None:
        manager = self.server.manager
        if isinstance(manager, SMCPManager) and manager.is_behind(sid):
            raise TooManyRequestsError("too much of what this session said is still to be heard; slow down")

    # --- relays

    async def _relay(self, client: _LockedClient, row: Event, message: Message) -> Encoded:
        with self._observed(row.name) as observed:
            leaves = client.leaves
            target = await self.registry.route(client.sid, row, message.request["computer"])
            # From here on the end of either session finds the relay in the table; what ended before does not.
            self._check_stayed(client, leaves)
            ask = self._ask if target.process == self.registry.process else self._ask_elsewhere
            answer = await ask(client.sid, target, message, asyncio.get_running_loop().create_future())
            return self._passed_on(client, message, answer, observed)

    async def _ask(
        self,
        caller: str,
        target: Member,
        message: Message,
        future: "asyncio.Future[Answer | None]",
        report: Callable[[str], None] | None = None,
    ) -> Answer | None:
        """Send a request to a computer and wait for its ack: not for ever, and not after either end has gone.

        `report` takes the progress of a call whose caller another process holds.
        """
        with self._waiting(caller, target, message, future, report=report) as (ask, pending):
            await self._send(ask, message, pending)
            return await future

    async def _ask_elsewhere(
        self, caller: str, target: Member, message: Message, future: "asyncio.Future[Answer | None]"
    ) -> Answer | None:
        """The same for a computer that another process holds."""
        with self._waiting(caller, target, message, future, _ELSEWHERE_GRACE) as (ask, _):
            relay, timeout = ask.waiter, message.request.get("timeout")
            seconds = self.limits.deadline(relay.event, timeout) + _ELSEWHERE_GRACE
            report = partial(self._mention, ask) if relay.on_progress is not None else None
            body = message.take_body()
            remote = RemoteRequest(
                caller, target, relay.event, relay.agent, relay.req_id, timeout, body, report, seconds
            )
            try:
                await self._bus.ask(remote, future)
                return await future
            finally:
                self._bus.forget(remote)

    @contextmanager
    def _waiting(
        self,
        caller: str,
        target: Member,
        message: Message,
        future: "asyncio.Future[Answer | None]",
        grace: float = 0.0,
        report: Callable[[str], None] | None = None,
    ) -> Iterator[tuple[RelayAsk, PendingAck]]:
        """File a relay that waits for this future, until its deadline."""
        pending = PendingAck(future)
        ask = self._open_relay(caller, target.sid, message, pending, report)
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
            raise NotFoundError("the computer has gone") from None
        if not fits:
            raise TooManyRequestsError("too much waits to be read by this computer; try again later")

    async def _end_relays(self, sid: str) -> None:
        for ask in self._fail_relays(sid):
            if ask.target in self._clients:
                await self._cancel(ask.target, cancellation(ask.waiter))

    async def _cancel(self, sid: str, call: dict[str, str]) -> None:
        await self.emit(CANCEL_TOOL_CALL_NOTIFICATION, call, to=sid)

    # --- for other processes: the inbox of the bus

    async def answer(self, remote: RemoteRequest, answer: "asyncio.Future[Answer | None]") -> Answer | None:
        """Ask a computer of this process for an agent of another one. For the bus."""
        request = {
            "agent": remote.agent,
            "req_id": remote.req_id,
            "computer": remote.target.name,
            "timeout": remote.timeout,
            "progress": remote.report is not None,
        }
        message = Message(remote.event, request, body=remote.take_body())
        try:
            await self._check_is_here(remote.target)
            return await self._ask(remote.caller, remote.target, message, answer, remote.report)
        except NotInRoomError:
            # The caller has gone, or its process has. A computer that has not got the call ignores this.
            if remote.event == TOOL_CALL_EVENT and remote.target.sid in self._clients:
                await self._cancel(remote.target.sid, {"agent": remote.agent, "req_id": remote.req_id})
            raise
        except SMCPError as error:
            peer = self._peer_in_log(remote.caller)
            log_refusal(self.admission.session_log, peer, message, remote.caller, error)
            raise

    async def _check_is_here(self, target: Member) -> None:
        """Another process has looked up a computer; look whether it is still there."""
        if self._draining:
            raise InternalError("the server is shutting down")
        session = await self.registry.session(target.sid) if target.sid in self._clients else None
        if session is None or session.member is None or session.member.office_id != target.office_id:
            raise NotFoundError("the computer has gone")

    def hear(self, notice: Broadcast, text: str) -> None:
        """Tell the members that are here what was said in another process. For the bus."""
        manager = self._rooms
        if manager.is_behind(notice.skip_sid):
            # Its own process refuses what it says when that is too much there; it cannot know of this process's rooms.
            sender = notice.skip_sid
            self.admission.session_log.warn(
                self._peer_in_log(sender), "left out %s of %s: too much of it waits", notice.event, sender
            )
            return
        packet = NoticePacket(text, notice.skip_sid, notice.event, collapses=notice.collapses)
        manager.broadcast(self.namespace, room_of(notice.office_id), packet)

    # --- for a registry that several processes share: its listener

    async def began(self, process: str) -> None:
        """This process is about to be known under a name. For the registry."""
        await self._bus.began(process)

    def ended(self, process: str) -> None:
        """Nobody is a member through this process any more: close every connection. For the registry."""
        self._bus.ended(process)
        for sid in list(self._clients):
            self.lost(sid)

    def lost(self, sid: str) -> None:
        """Close the connection of a session that is not a member any more. For the registry."""
        if (socket := socket_of(self.server, self.namespace, sid)) is not None:
            self.server.start_background_task(socket.cut_off)

    def changed(self, changes: Sequence[MemberChange]) -> None:
        """Perform what follows from changes in any process: rooms, notices, calls that end. For the registry."""
        for change in changes:
            rooms, notices = offices.effects_of(change)
            member = change.after or change.before
            assert member is not None
            if member.process == self.registry.process:
                self._change_rooms(rooms)
            elif change.left_office:
                # What it asked of computers here, and what was asked of it from here. A shell ends those of its own.
                self._fail_relays(f"{member.process}/{member.sid}")
                self._fail_relays(member.sid)
            for notice in notices:
                # When another process ends, thousands may go at once, most of them from offices that nobody here is in.
                if not self._draining and self.registry.process in self.registry.holders(notice.office_id):
                    packet = notice_of(self.namespace, notice)
                    self._rooms.broadcast(self.namespace, room_of(notice.office_id), packet)

    def _change_rooms(self, rooms: Iterable[RoomChange]) -> None:
        for change in rooms:
            if not is_connected(self.server, self.namespace, change.sid):
                continue  # it has gone meanwhile, and is in no room
            act = self._rooms.enter if isinstance(change, EnterRoom) else self._rooms.leave
            act(change.sid, self.namespace, room_of(change.office_id))

    @property
    def _rooms(self) -> SMCPManager:
        manager = self.server.manager
        assert isinstance(manager, SMCPManager), "create the server with server_options()"
        return manager
