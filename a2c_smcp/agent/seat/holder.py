"""The process that holds a seat: it is the agent of an office for all processes of this user that use its socket.

It passes requests, answers and notifications on as text. It ends some seconds after the last process has gone, and at
SIGTERM. The process that runs it has the lock of its place.

A process that uses the seat alone may have it (`lending`): it takes the place over with the holder's secret and goes
around the holder. When another process comes, the holder takes the place back in the same way.
"""

import asyncio
import logging
import os
import secrets
import socket
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from a2c_smcp.agent.seat.holder_options import FREED_PAUSE, FREED_SECONDS, HolderOptions
from a2c_smcp.agent.seat.lending import Lending, Seat
from a2c_smcp.agent.seat.pipe import SeatPipe
from a2c_smcp.agent.seat.place import SeatPlace, peer_pid
from a2c_smcp.agent.seat.seat_frames import ABOUT_CALLS, LONGEST_HEAD, State, frame
from a2c_smcp.agent.seat.shared_subscriptions import ResourceKey, SharedSubscriptions
from a2c_smcp.agent.seat.sharers import Sharer
from a2c_smcp.errors import (
    BadRequestError,
    ForbiddenError,
    InternalError,
    NameTakenError,
    RoomFullError,
    SMCPError,
)
from a2c_smcp.link.interface import Connected, Disconnected, Joined, LinkEvent, RejoinFailed
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.relay.passing import RETRY_SECONDS, passing_of
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_EVENT,
    ENTER_OFFICE_NOTIFICATION,
    EVENTS,
    JOIN_OFFICE_EVENT,
    LEAVE_OFFICE_EVENT,
    LEAVE_OFFICE_NOTIFICATION,
    RESOURCE_UPDATED_NOTIFICATION,
    SUBSCRIBE_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
    UNSUBSCRIBE_RESOURCE_EVENT,
    Kind,
)
from a2c_smcp.wire import Encoded, codec, parse

__all__ = ["Holder"]

logger = logging.getLogger(__name__)

#: How often the holder checks that its socket still exists, in seconds.
_LOOK: Final = 5.0
#: How long an answer is waited for that nobody needs, in seconds.
_TIDY: Final = 2.0
_MEMBERSHIP: Final = (JOIN_OFFICE_EVENT, LEAVE_OFFICE_EVENT)


class Holder:
    """`await Holder(options, place).run()` holds the seat until nobody uses it any more."""

    def __init__(self, options: HolderOptions, place: SeatPlace) -> None:
        self._options = options
        self._place = place
        self._sharers: set[Sharer] = set()
        self._subscriptions: SharedSubscriptions[Sharer] = SharedSubscriptions()
        self._tidying: set[asyncio.Task[None]] = set()
        """What is told to the computers for processes that have gone, and links that are being closed."""
        self._state = State(options.membership.name)
        self._ending = False
        self._news = asyncio.Event()
        """Set when something has changed that may end the run."""
        self._left = asyncio.Event()
        """The link will not return to the office by itself, and the seat is not lent."""
        self._left.set()
        self._is_in_office = asyncio.Event()
        self._has_tried = asyncio.Event()
        """Cleared when the seat is taken back. Set when that has worked or failed."""
        self._has_tried.set()
        self._empty_since = 0.0
        self._lending: Lending[Sharer] = Lending(options.lend_after)
        self._past: set[OfficeLink] = set()
        """Links whose place was taken over. They stay until their requests are answered."""
        self._orphaned: str | None = None
        """The secret of a process that ended while it had the seat."""
        self._link = self._new_link(secrets.token_urlsafe(32))

    async def run(self) -> None:
        path = self._place.socket
        with suppress(FileNotFoundError):
            path.unlink()  # left by a holder that was killed
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            path.chmod(0o600)
            inode = path.stat().st_ino
            listener.listen(128)
            listener.setblocking(False)
            server = await asyncio.get_running_loop().create_unix_server(self._greet, sock=listener)
            attending = asyncio.create_task(self._attend())
            try:
                await self._until_unwanted(inode)
            finally:
                is_ours = _is_at(path, inode)  # before the close: since Python 3.13 `close` removes the socket, too
                server.close()
                if is_ours:
                    # The lock is still held. A process that waits for it notices that the file was replaced, and opens
                    # the new one.
                    for file in (path, self._place.lock, self._place.log):
                        file.unlink(missing_ok=True)
                attending.cancel()
                await asyncio.wait({attending})
                for sharer in list(self._sharers):
                    sharer.pipe.close()
                for link in (self._link, *self._past):
                    await link.close()

    def end(self) -> None:
        """Give the seat up now. One of the processes that use it starts another holder."""
        self._ending = True
        self._news.set()

    async def _until_unwanted(self, inode: int) -> None:
        now = asyncio.get_running_loop().time
        self._empty_since = now()
        # If somebody has removed the socket, no process can reach this holder any more.
        while not self._ending and _is_at(self._place.socket, inode):
            pause = _LOOK
            if not self._sharers:
                pause = min(pause, self._empty_since + self._options.linger - now())
                if pause <= 0:
                    return
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._news.wait()

    # --- the office

    async def _attend(self) -> None:
        """Connect and join, and never give up."""
        now = asyncio.get_running_loop().time
        begun = now()
        while True:
            await self._left.wait()
            self._left.clear()
            link = self._link
            try:
                await self._join(link)
                error = None
            except SMCPError as refusal:
                error = refusal
            if link is self._link:
                self._has_tried.set()
            if error is None or link is not self._link:
                await self._left.wait()
                begun = now()
                continue
            is_hopeful = isinstance(error, RoomFullError | NameTakenError) and now() - begun < FREED_SECONDS
            # It is tried for ever, so it is logged once: otherwise the log would fill the disk.
            if not is_hopeful and (self._state.problem is None or self._state.problem.message != error.message):
                logger.warning("not in the office: %s", error)
            if not is_hopeful or self._state.problem is None:
                self._say(connected=link.connected, problem=error, is_hopeful=is_hopeful)
            try:
                async with asyncio.timeout(FREED_PAUSE if is_hopeful else RETRY_SECONDS[passing_of(error)]):
                    await self._left.wait()
            except TimeoutError:
                if link is self._link:  # otherwise the seat is lent
                    self._left.set()

    async def _join(self, link: OfficeLink) -> None:
        await link.open()
        orphaned, self._orphaned = self._orphaned, None
        try:
            await link.join(self._options.membership)
        except (RoomFullError, NameTakenError):
            if orphaned is None:
                raise
            # The server has not noticed yet that the process has ended. When an agent leaves, the computers end what
            # it had called and subscribed to.
            async with OfficeLink(self._options.link, {}, resume=orphaned) as last:
                await last.join(self._options.membership)
                await last.leave()
            await link.join(self._options.membership)

    def _new_link(self, secret: str) -> OfficeLink:
        """A link for this place. What an older link hears is passed on if it is about a call that it has passed on."""

        def on_event(event: LinkEvent) -> None:
            if link is self._link:
                self._on_link_event(event)
            elif isinstance(event, Disconnected) and event.final:
                self._past.discard(link)

        async def pass_on(event: str, data: Any) -> None:
            if link is self._link or event in ABOUT_CALLS:
                self._pass_on(event, data)

        notifications = [event.name for event in EVENTS.values() if event.kind is Kind.NOTIFICATION]
        handlers = {name: partial(pass_on, name) for name in notifications}
        link = OfficeLink(self._options.link, handlers, on_event=on_event, resume=secret)
        return link

    def _on_link_event(self, event: LinkEvent) -> None:
        if not isinstance(event, Connected):
            self._is_in_office.clear()
        match event:
            case Connected(way=way):
                self._say(connected=True, way=way, dialect=self._link.server_dialect, reason="")
            case Disconnected(reason=reason, final=final):
                self._subscriptions.forget()
                self._say(connected=False, joined=False, reason=reason)
                if final:
                    self._left.set()
            case Joined():
                # Before the processes hear of it: each of them subscribes again then.
                self._subscriptions.forget()
                self._is_in_office.set()
                self._say(joined=True, problem=None, is_hopeful=False)
                self._lending.move("back", self._lending.who)
                self._tell([each for each in self._sharers if each is not self._lending.who], ["back"])
            case RejoinFailed(error=error, final=final):
                self._say(problem=error)
                if final:
                    self._left.set()

    def _say(self, **changes: Any) -> None:
        self._state = replace(self._state, **changes)
        self._tell_all(["state"], self._state.encode())

    # --- a process that is alone

    def _offer(self, sharer: Sharer) -> None:
        """Let a process that calls a tool have the seat, if it has been alone for some time."""
        if self._link.joined and self._lending.offer(sharer, len(self._sharers), asyncio.get_running_loop().time()):
            sharer.pipe.send(["lend", self._link.resume])

    def _move(self, word: str, sharer: Sharer) -> None:
        match self._lending.move(word, sharer):
            case Seat.LENT:
                self._renew_link(self._link.resume)
                self._say(connected=False)
            case Seat.RETURNING:
                self._take_back(self._link.resume)

    def _take_back(self, secret: str) -> None:
        self._renew_link(secret)
        self._has_tried.clear()
        self._left.set()

    def _renew_link(self, secret: str) -> None:
        """Another session has the place. Earlier requests are answered on the link that they went by."""
        link, self._link = self._link, self._new_link(secret)
        link.let_go()
        if link.joined:
            self._past.add(link)
        else:
            self._tidy(link.close())
        self._left.clear()
        self._subscriptions.forget()
        self._is_in_office.clear()
        self._say(joined=False, reason="")

    def _pass_on(self, event: str, data: Any) -> None:
        # Nothing is awaited here, so notifications are passed on in the order they came in.
        notice = data if isinstance(data, dict) else {}
        if event in (ENTER_OFFICE_NOTIFICATION, LEAVE_OFFICE_NOTIFICATION) and notice.get("computer"):
            self._subscriptions.forget(str(notice["computer"]))
        self._tell(self._readers(event, notice), ["notice", event], codec.dumps(data).encode())

    def _readers(self, event: str, notice: dict[str, Any]) -> Iterable[Sharer]:
        """The processes that a notification is for: those that made the call, those that subscribed, or all."""
        if event in ABOUT_CALLS:
            call = str(notice.get("agent")), str(notice.get("req_id"))
            return [sharer for sharer in self._sharers if call in sharer.calls]
        if event == RESOURCE_UPDATED_NOTIFICATION:
            return self._subscriptions.wanting((str(notice.get("computer")), str(notice.get("uri"))))
        return self._sharers

    def _tell_all(self, head: list[Any], body: bytes) -> None:
        self._tell(self._sharers, head, body)

    @staticmethod
    def _tell(sharers: Iterable[Sharer], head: list[Any], body: bytes = b"") -> None:
        data = frame(head, body)
        for sharer in sharers:
            sharer.pipe.send_frame(data)

    # --- the processes

    def _greet(self) -> SeatPipe:
        sharer: Sharer

        def come() -> None:
            try:
                pid = peer_pid(sharer.pipe.socket)
            except OSError as error:
                logger.warning("refused a process: %s", error)
                sharer.pipe.close()
                return
            logger.info("process %s came", pid)
            self._sharers.add(sharer)
            self._lending.changed(asyncio.get_running_loop().time())
            if (user := self._lending.who) is not None:
                user.pipe.send(["recall"])
                self._move("recall", user)
            sharer.pipe.ended.add_done_callback(lambda _: self._go(sharer))
            sharer.pipe.send(["state"], self._state.encode())

        sharer = Sharer(
            SeatPipe(
                lambda head, body: self._take(sharer, head, body),
                self._options.link.max_message + LONGEST_HEAD,
                made=come,
                max_waiting=self._options.max_waiting,
            )
        )
        return sharer.pipe

    def _go(self, sharer: Sharer) -> None:
        """A process has ended or was cut off. Nobody waits for its answers, and its tools need not run on."""
        self._sharers.discard(sharer)
        self._lending.changed(asyncio.get_running_loop().time())
        for errand in sharer.errands.lost():
            errand.work.task.cancel()
            if errand.work.call is not None:
                self._tidy(self._cancel(errand.work.call))
        if keys := self._subscriptions.gone(sharer):
            self._tidy(self._unsubscribe(sharer, keys))
        match self._lending.gone(sharer):
            case Seat.OFFERED | Seat.UNWANTED:  # it may have taken the place
                self._take_back(self._link.resume)
            case Seat.LENT | Seat.RETURNING:
                self._orphaned = self._link.resume
                self._take_back(secrets.token_urlsafe(32))
        if not self._sharers:
            self._empty_since = asyncio.get_running_loop().time()
            self._news.set()

    def _take(self, sharer: Sharer, head: list[Any], body: bytes) -> None:
        match head:
            case ["ask", int() as number, str() as event, int() | float() as timeout, *call] if (
                number not in sharer.errands
            ):
                ids = {"agent": str(call[0]), "req_id": str(call[1])} if event == TOOL_CALL_EVENT else None
                # By the link of this moment: the place may be taken over before the task begins.
                exchange = partial(self._exchange, self._link, event, timeout, body)
                task = asyncio.create_task(self._relay(sharer, number, event, exchange, body))
                sharer.begin(number, task, ids)
                if ids is not None:
                    self._offer(sharer)
            case ["forget", int() as number]:
                if (errand := sharer.errands.withdraw(number)) is not None:
                    errand.work.task.cancel()  # a process that stops waiting for a tool call cancels the call itself
            case ["taken" | "declined" as word]:
                self._move(word, sharer)
                self._lending.changed(asyncio.get_running_loop().time())
            case ["resume", str() as secret]:
                if self._link.joined:
                    sharer.pipe.send(["back"])
                elif self._lending.move("resume", sharer) is not None:
                    self._link.resume = secret
            case ["yield"]:
                if self._sharers == {sharer}:
                    self.end()
                else:
                    sharer.pipe.send(["kept"])
            case _:
                logger.warning("ignored a frame that begins with %r", head[:1])

    async def _relay(
        self, sharer: Sharer, number: int, event: str, exchange: Callable[[], Awaitable[bytes]], body: bytes
    ) -> None:
        kind = "answer"
        try:
            if event in (SUBSCRIBE_RESOURCE_EVENT, UNSUBSCRIBE_RESOURCE_EVENT):
                answer = await self._subscribe(sharer, event, body, exchange)
            else:
                answer = await exchange()
        except SMCPError as error:
            kind, answer = "failed", codec.dumps(error.payload()).encode()
        if sharer.errands.finished(number):
            sharer.pipe.send([kind, number], answer)

    async def _subscribe(
        self, sharer: Sharer, event: str, body: bytes, exchange: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        """Begin or end a subscription of one process. Its computer is asked only if no other process has it."""

        async def ask() -> str:
            return (await exchange()).decode()

        try:
            request = parse(event, codec.loads(body))
        except ValueError as error:
            raise BadRequestError(f"{event}: {error}") from None
        act = self._subscriptions.subscribe
        if event == UNSUBSCRIBE_RESOURCE_EVENT:
            act = self._subscriptions.unsubscribe
        answer = await act(sharer, (request["computer"], request["uri"]), ask)
        return (codec.dumps([{"req_id": request["req_id"]}]) if answer is None else answer).encode()

    async def _exchange(self, link: OfficeLink, event: str, timeout: float, body: bytes) -> bytes:
        if event in _MEMBERSHIP:
            raise ForbiddenError(f"{event} is not for those who share a seat")
        if not link.connected:
            # A process may ask before it hears that the seat was lent a moment ago, and is being taken back for it.
            await self._has_tried.wait()
            link = self._link
        try:
            answer = await link.exchange(event, Encoded(body.decode()), timeout)
            return answer.encode()
        except SMCPError:
            raise
        except Exception:
            # This is the last boundary. Without an answer the caller would wait until its timeout.
            logger.exception("failed to pass %s on", event)
            raise InternalError(f"the seat's holder failed to pass {event} on; {self._place.log} says why") from None

    def _tidy(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tidying.add(task)
        task.add_done_callback(self._tidying.discard)

    async def _cancel(self, call: dict[str, str]) -> None:
        with suppress(SMCPError, TimeoutError):
            await self._in_office()
            await self._link.request(CANCEL_TOOL_CALL_EVENT, call, timeout=_TIDY)

    async def _in_office(self) -> None:
        async with asyncio.timeout(_TIDY):
            await self._is_in_office.wait()

    async def _unsubscribe(self, sharer: Sharer, keys: list[ResourceKey]) -> None:
        """End what only this process wanted, unless another process wants it by now."""
        with suppress(TimeoutError):
            await self._in_office()
        call = {"agent": self._options.membership.name, "req_id": uuid.uuid4().hex}
        for computer, uri in keys:
            data = Encoded(codec.dumps({**call, "computer": computer, "uri": uri}))
            ask = partial(self._link.exchange, UNSUBSCRIBE_RESOURCE_EVENT, data, _TIDY)
            with suppress(SMCPError):
                await self._subscriptions.unsubscribe(sharer, (computer, uri), ask)


def _is_at(path: os.PathLike[str], inode: int) -> bool:
    try:
        return os.stat(path).st_ino == inode
    except OSError:
        return False
