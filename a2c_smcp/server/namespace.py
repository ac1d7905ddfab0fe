"""The asyncio shell: performs what `offices` decides, on a python-socketio server. States no rule of its own."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
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
from a2c_smcp.server.auth import AuthenticationProvider, credentials_of
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
from a2c_smcp.server.broadcast import SMCPManager
from a2c_smcp.server.effects import Broadcast, EnterRoom, RoomChange, room_of
from a2c_smcp.server.envelopes import Answer, Message, answer_from, read_answer, read_message
from a2c_smcp.server.limits import Limits, TokenBucket
from a2c_smcp.server.offices import Transition
from a2c_smcp.server.registry import LocalRegistry, Registry
from a2c_smcp.server.relays import Relay, RelayTable
from a2c_smcp.server.socketio_setup import encode_request, expected_ack, forget_ack, sort_packet, use_unique_ack_ids
from a2c_smcp.server.sockets import BoundedAsyncSocket, adopt_sockets, socket_of
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

__all__ = ["SMCPNamespace"]

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Client:
    """What the shell keeps of a connection."""

    sid: str
    bucket: TokenBucket | None
    gone: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Join, leave and disconnect of one session are serialised."""


class _Waiting:
    """For one ack, whichever way it comes: called by python-socketio with what it built, or given as read by us."""

    __slots__ = ("future",)

    def __init__(self, future: asyncio.Future[Answer | None]) -> None:
        self.future = future

    def __call__(self, *args: Any) -> None:
        self.answer(answer_from(args))

    def answer(self, answer: Answer | None) -> None:
        if not self.future.done():
            self.future.set_result(answer)

    def fail(self, error: SMCPError) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class SMCPNamespace(socketio.AsyncNamespace):  # type: ignore[misc]  # python-socketio ships no types
    """The server role on a `socketio.AsyncServer`: `sio.register_namespace(SMCPNamespace(auth))`.

    Create the server with `socketio.AsyncServer(**server_options(...))` for the protocol's message size and fast
    broadcasts.
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
        super().__init__(namespace)
        self.limits = limits or Limits()
        self.admission = Admission(self.limits)
        self.registry: Registry = registry or LocalRegistry()
        self._auth = auth
        self._observer = observer or Silent()
        self._clients: dict[str, _Client] = {}
        self._relays = RelayTable(self.limits.pending_relays)
        self._serving: set[asyncio.Task[None]] = set()
        self._draining = False

    def _set_server(self, server: Any) -> None:
        super()._set_server(server)
        adopt_sockets(server, self.namespace, self.admission, self._take)

    @property
    def pending_relays(self) -> int:
        return len(self._relays)

    async def drain(self, seconds: float) -> None:
        """Refuse new requests from now on, and give the running ones this long."""
        self._draining = True
        try:
            async with asyncio.timeout(seconds):
                while self._relays:  # noqa: ASYNC110 - the relays' hot path owes nothing to shutdown
                    await asyncio.sleep(0.02)
        except TimeoutError:
            logger.warning("%d requests were still waiting for an answer", len(self._relays))

    # --- messages

    def _take(self, socket: BoundedAsyncSocket, text: str) -> bool:
        """Take an event or an ack of ours off its connection; `False` leaves it to python-socketio.

        The library makes two tasks of an event and one of an ack, and builds whatever they carry.
        """
        if (incoming := sort_packet(self.server, self.namespace, socket.sid, text)) is None:
            return False
        sid, head = incoming
        if sid is None:
            return True
        if head.packet_type == EVENT:
            message = read_message(head.body, self.limits.max_timeout)
            task = asyncio.create_task(self._serve(socket, sid, head.ack_id, message))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
            return True
        waiting = expected_ack(self.server.manager, sid, head.ack_id)
        if isinstance(waiting, _Waiting):
            waiting.answer(read_answer(head.body))
        return waiting is None or isinstance(waiting, _Waiting)

    async def _serve(self, socket: BoundedAsyncSocket, sid: str, ack_id: int | None, message: Message) -> None:
        reply = await self._answer(sid, message)
        if ack_id is None:
            return
        with suppress(SocketIsClosedError):
            if isinstance(reply, Encoded):
                if await socket.offer(ack_packet(self.namespace, ack_id, reply)):
                    return
                reply = refusal(message.event, self._unread(sid, message))
            await socket.send(ack_packet(self.namespace, ack_id, reply))

    def _unread(self, sid: str, message: Message) -> SMCPError:
        """The error that an agent gets instead of an answer for which it reads too slowly."""
        error = TooManyRequestsError("too much waits to be read by this agent; the answer was left out")
        log_refusal(self.admission.session_log, message, sid, error)
        self._observer.refused(error.code)
        return error

    async def trigger_event(self, event: Any, sid: str, *args: Any) -> Any:
        """What comes through python-socketio: connections and their ends, and events with binary attachments."""
        # A client can send events of these two names, too: only the library's own are meant.
        if event == "connect" and sid not in self._clients:
            return await self._connect(sid, *args)
        if event == "disconnect" and not self.server.manager.is_connected(sid, self.namespace):
            return await self._disconnect(sid)
        return await self._answer(sid, binary_message(event))

    # --- connections

    async def _connect(self, sid: str, environ: dict[str, Any], auth: Any = None) -> None:
        address = remote_address(environ)
        try:
            await self._admit(sid, environ, auth, address)
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

    async def _admit(self, sid: str, environ: dict[str, Any], auth: Any, address: str) -> None:
        socket = socket_of(self.server, self.namespace, sid)
        if socket is None:
            raise NotInRoomError("the connection has gone")
        socket.take_place()
        grant = await self._auth.authenticate(credentials_of(environ, auth, address))
        manager = self.server.manager
        # python-socketio reports no disconnect for a session whose connect handler is still running.
        if manager.eio_sid_from_sid(sid, self.namespace) not in self.server.environ:
            raise NotInRoomError("the connection has gone")
        await self.registry.connect(sid, grant)
        use_unique_ack_ids(manager, sid)
        rate = self.limits.requests_per_second
        bucket = TokenBucket(rate, asyncio.get_running_loop().time()) if rate else None
        self._clients[sid] = _Client(sid, bucket)
        socket.admit()

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
        """The boundary: whatever happens below, an event is answered."""
        try:
            if (client := self._clients.get(sid)) is None:
                raise NotInRoomError("this session has ended")
            return await self._handle(client, message)
        except SMCPError as error:
            log_refusal(self.admission.session_log, message, sid, error)
            failure = error
        except Exception:
            req_id = req_id_in_log(message.request)
            logger.exception("failed to handle %s from %s, req_id %s", in_log(message.event), sid, req_id)
            failure = InternalError("the server failed to handle this; its log says why")
        self._observer.refused(failure.code)
        return refusal(message.event, failure)

    async def _handle(self, client: _Client, message: Message) -> Any:
        if self._draining:
            raise InternalError("the server is shutting down")
        if client.bucket:
            client.bucket.take(asyncio.get_running_loop().time())
        row, request = offices.admit(message.event), message.request
        if message.error:
            raise message.error
        match row.kind:
            case Kind.RELAY:
                return await self._relay(client, row, message)
            case Kind.MEMBERSHIP:
                await self._change_membership(client, row, request)
                return True, None
            case Kind.ANNOUNCE:
                self._check_backlog(client.sid)
                notice = offices.announce(await self.registry.session(client.sid), row, request)
                await self._perform((), (notice,))
                return {}
            case _:
                office_id = offices.list_room(await self.registry.session(client.sid), row, request)
                return offices.listing(await self.registry.members(office_id), request)

    async def _change_membership(self, client: _Client, row: Event, request: Any) -> None:
        async with client.lock:
            if row.name == JOIN_OFFICE_EVENT:
                self._check_backlog(client.sid)
                offices.check_names(request, self.limits.name_length, self.limits.office_id_length)
                transition = await self.registry.join(client.sid, request)
            else:
                transition = await self.registry.leave(client.sid, request)
            if client.gone:
                # The session ended while the registry was asked: nobody hears of it.
                await self.registry.disconnect(client.sid)
                raise NotInRoomError("this session has ended")
            await self._perform(transition.rooms, ())
        # Outside the lock, because a broadcast may come upon a dead member and wait for its disconnect. Nothing is
        # awaited in between, so the notices of one session stay in order.
        await self._finish(client.sid, transition)

    async def _finish(self, sid: str, transition: Transition) -> None:
        await self._perform((), transition.notices)
        if transition.left_office:
            await self._end_relays(sid)

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

    async def _relay(self, client: _Client, row: Event, message: Message) -> Encoded:
        loop = asyncio.get_running_loop()
        started = loop.time()
        outcome = "failed"
        try:
            target = await self.registry.route(client.sid, row, message.request["computer"])
            answer = answered(row.name, await self._ask(client.sid, target.sid, message))
            outcome = "answered"
            if answer.error:
                outcome = "error"
                log_passed_on(self.admission.session_log, row.name, client.sid, message.request, answer.error)
            return answer.encoded
        except SMCPError as error:
            outcome = str(error.code)
            raise
        finally:
            self._observer.relayed(row.name, outcome, loop.time() - started)

    async def _ask(self, caller: str, target: str, message: Message) -> Answer | None:
        """Send a request to a computer and wait for its ack: not for ever, and not after either end has gone."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(loop.create_future())
        relay = relay_of(caller, target, message, waiting.fail)
        seconds = self.limits.deadline(relay.event, message.request.get("timeout"))
        self._relays.open(relay)
        timer = loop.call_later(
            seconds, waiting.fail, RequestTimeoutError(f"the computer did not answer within {seconds:g} s")
        )
        try:
            await self._send(relay, message, waiting)
            return await waiting.future
        finally:
            timer.cancel()
            self._relays.close(relay)
            forget_ack(self.server.manager, target, relay.ack_id)

    async def _send(self, relay: Relay, message: Message, waiting: _Waiting) -> None:
        """Queue a request for its computer. While its answer is waited for, nothing here holds its payload."""
        manager = self.server.manager
        if not manager.is_connected(relay.target, self.namespace):
            raise NotFoundError("the computer has gone")
        relay.ack_id, text = encode_request(
            self.server,
            self.namespace,
            relay.target,
            relay.event,
            message.take_body(),
            waiting,
            self.limits.max_message,
        )
        socket = self.server.eio.sockets.get(manager.eio_sid_from_sid(relay.target, self.namespace))
        try:
            fits = socket is not None and await socket.offer(Packet(MESSAGE, text))
        except SocketIsClosedError:
            socket = None
        if socket is None:
            raise NotFoundError("the computer has gone")
        if not fits:
            raise TooManyRequestsError("too much waits to be read by this computer; try again later")

    async def _end_relays(self, sid: str) -> None:
        """Fail what waits for this session's answer, and cancel what it asked for."""
        orphans = self._relays.orphaned_by(sid)
        for relay in orphans.unanswered:
            relay.fail(NotFoundError("the computer has gone"))
        for relay in orphans.unwanted:
            relay.fail(NotInRoomError("the agent has gone"))
            if relay.event == TOOL_CALL_EVENT:
                await self.emit(CANCEL_TOOL_CALL_NOTIFICATION, cancellation(relay), to=relay.target)
