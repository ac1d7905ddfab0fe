"""The asyncio shell: performs what `offices` decides, on a python-socketio server. States no rule of its own."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import socketio

from a2c_smcp.errors import InternalError, NotFoundError, NotInRoomError, RequestTimeoutError, TooManyRequestsError
from a2c_smcp.server import offices
from a2c_smcp.server.auth import AuthenticationProvider, credentials_of
from a2c_smcp.server.base_namespace import BaseSMCPNamespace, Client, PendingAck
from a2c_smcp.server.boundary import Observer, ack_packet, cancellation, notice_of, remote_address
from a2c_smcp.server.broadcast import SMCPManager
from a2c_smcp.server.effects import Broadcast, EnterRoom, RoomChange, room_of
from a2c_smcp.server.envelopes import Answer, Message
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.registry import LocalRegistry, Registry
from a2c_smcp.server.relays import Relay
from a2c_smcp.server.sockets import BoundedAsyncSocket
from a2c_smcp.smcp import CANCEL_TOOL_CALL_NOTIFICATION, JOIN_OFFICE_EVENT, SMCP_NAMESPACE, Event, Kind
from a2c_smcp.utils.engineio_internals import SocketIsClosedError
from a2c_smcp.wire import Encoded

__all__ = ["SMCPNamespace"]

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _LockedClient(Client):
    gone: bool = False
    leaves: int = 0
    """How often it has left an office. Who waits notes this number, and looks at it again."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Join, leave and disconnect of one session are serialised."""


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
        self._draining = False

    @property
    def pending_relays(self) -> int:
        """How many requests of agents wait for the answer of a computer."""
        return len(self._relays)

    async def drain(self, seconds: float) -> None:
        """Refuse new requests from now on, and wait until the running ones are answered, but not longer than this."""
        self._draining = True
        try:
            async with asyncio.timeout(seconds):
                while self._relays:  # noqa: ASYNC110 - the relays' hot path owes nothing to shutdown
                    await asyncio.sleep(0.02)
        except TimeoutError:
            logger.warning("%d requests were still waiting for an answer", len(self._relays))

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
            socket = self._arriving(sid)
            grant = await self._auth.authenticate(credentials_of(environ, auth, address))
            self._check_connected(sid)
            await self.registry.connect(sid, grant)
            self._let_in(_LockedClient(sid, self._new_bucket()), socket)
        except Exception as error:
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
                await self._perform((), (notice,))
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
        async with client.lock:
            if row.name == JOIN_OFFICE_EVENT:
                self._check_backlog(client.sid)
                offices.check_names(request, self.limits.name_length, self.limits.office_id_length)
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
        manager = self.server.manager
        for notice in notices:
            room = room_of(notice.office_id)
            if isinstance(manager, SMCPManager):
                manager.broadcast(self.namespace, room, notice_of(self.namespace, notice))
            else:
                await self.emit(notice.event, notice.data, room=room, skip_sid=notice.skip_sid)

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
            answer = await self._ask(client.sid, target.sid, message)
            return self._passed_on(client, message, answer, observed)

    async def _ask(self, caller: str, target: str, message: Message) -> Answer | None:
        """Send a request to a computer and wait for its ack: not for ever, and not after either end has gone."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer | None] = loop.create_future()
        pending = PendingAck(future)
        relay = self._open_relay(caller, target, message, pending)
        seconds = self.limits.deadline(relay.event, message.request.get("timeout"))
        timer = loop.call_later(
            seconds, pending.fail, RequestTimeoutError(f"the computer did not answer within {seconds:g} s")
        )
        try:
            await self._send(relay, message, pending)
            return await future
        finally:
            timer.cancel()
            self._close_relay(relay)

    async def _send(self, relay: Relay, message: Message, pending: PendingAck) -> None:
        socket, packet = self._request(relay, message, pending)
        try:
            fits = await socket.offer(packet)
        except SocketIsClosedError:
            raise NotFoundError("the computer has gone") from None
        if not fits:
            raise TooManyRequestsError("too much waits to be read by this computer; try again later")

    async def _end_relays(self, sid: str) -> None:
        for relay in self._fail_relays(sid):
            await self.emit(CANCEL_TOOL_CALL_NOTIFICATION, cancellation(relay), to=relay.target)
