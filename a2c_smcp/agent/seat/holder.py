"""The process that holds a seat: it is the agent of an office for all processes of this user that use its socket.

It passes requests, answers and notifications on as text. It ends some seconds after the last process has gone, and at
SIGTERM. The process that runs it has the lock of its place.
"""

import asyncio
import logging
import os
import socket
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from a2c_smcp.agent.seat.holder_options import FREED_PAUSE, FREED_SECONDS, HolderOptions
from a2c_smcp.agent.seat.pipe import SeatPipe
from a2c_smcp.agent.seat.place import SeatPlace, peer_pid
from a2c_smcp.agent.seat.seat_frames import LONGEST_HEAD, State, frame
from a2c_smcp.agent.seat.shared_subscriptions import ResourceKey, SharedSubscriptions
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
from a2c_smcp.relay.errands import Errand, ErrandTable
from a2c_smcp.relay.passing import RETRY_SECONDS, passing_of
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_EVENT,
    ENTER_OFFICE_NOTIFICATION,
    EVENTS,
    JOIN_OFFICE_EVENT,
    LEAVE_OFFICE_EVENT,
    LEAVE_OFFICE_NOTIFICATION,
    QUESTION_NOTIFICATION,
    RESOURCE_UPDATED_NOTIFICATION,
    SUBSCRIBE_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
    TOOL_PROGRESS_NOTIFICATION,
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


@dataclass(slots=True, eq=False)
class _Passed:
    """A request that is being passed on."""

    task: asyncio.Task[None]
    call: dict[str, str] | None
    """The `agent` and the `req_id` of a tool call."""


@dataclass(slots=True, eq=False)
class _Sharer:
    """A process that uses this seat."""

    pipe: SeatPipe
    errands: ErrandTable[int, _Passed] = field(default_factory=ErrandTable)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Its tool calls that run, by `agent` and `req_id`."""

    def begin(self, number: int, task: "asyncio.Task[None]", call: dict[str, str] | None) -> None:
        """Note a request that is being passed on."""
        self.errands.take(Errand(number, _Passed(task, call)))
        if call is not None:
            key = call["agent"], call["req_id"]
            self.calls[key] += 1
            task.add_done_callback(lambda _: self._end(key))

    def _end(self, key: tuple[str, str]) -> None:
        self.calls[key] -= 1
        if not self.calls[key]:
            del self.calls[key]


class Holder:
    """`await Holder(options, place).run()` holds the seat until nobody uses it any more."""

    def __init__(self, options: HolderOptions, place: SeatPlace) -> None:
        self._options = options
        self._place = place
        self._sharers: set[_Sharer] = set()
        self._subscriptions: SharedSubscriptions[_Sharer] = SharedSubscriptions()
        self._tidying: set[asyncio.Task[None]] = set()
        """What is told to the computers for processes that have gone."""
        self._state = State(options.membership.name)
        self._ending = False
        self._news = asyncio.Event()
        """Set when something has changed that may end the run."""
        self._left = asyncio.Event()
        """The link will not return to the office by itself."""
        self._empty_since = 0.0
        notifications = [event.name for event in EVENTS.values() if event.kind is Kind.NOTIFICATION]
        handlers = {name: partial(self._pass_on, name) for name in notifications}
        self._link = OfficeLink(options.link, handlers, on_event=self._on_link_event)

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
                for sharer in list(self._sharers):
                    sharer.pipe.close()
                await self._link.close()

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
            try:
                await self._link.open()
                await self._link.join(self._options.membership)
            except SMCPError as error:
                if isinstance(error, RoomFullError | NameTakenError) and now() - begun < FREED_SECONDS:
                    if self._state.problem is None:
                        self._say(problem=error, is_hopeful=True)
                    await asyncio.sleep(FREED_PAUSE)
                    continue
                # It is tried for ever, so it is logged once: otherwise the log would fill the disk.
                if self._state.problem is None or self._state.problem.message != error.message:
                    logger.warning("not in the office: %s", error)
                self._say(problem=error, is_hopeful=False)
                await asyncio.sleep(RETRY_SECONDS[passing_of(error)])
            else:
                await self._left.wait()
                self._left.clear()
                begun = now()

    def _on_link_event(self, event: LinkEvent) -> None:
        match event:
            case Connected(way=way):
                self._say(connected=True, way=way, reason="")
            case Disconnected(reason=reason, final=final):
                self._subscriptions.forget()
                self._say(connected=False, joined=False, reason=reason)
                if final:
                    self._left.set()
            case Joined():
                # Before the processes hear of it: each of them subscribes again then.
                self._subscriptions.forget()
                self._say(joined=True, problem=None, is_hopeful=False)
            case RejoinFailed(error=error, final=final):
                self._say(problem=error)
                if final:
                    self._left.set()

    def _say(self, **changes: Any) -> None:
        self._state = replace(self._state, **changes)
        self._tell_all(["state"], self._state.encode())

    async def _pass_on(self, event: str, data: Any) -> None:
        # Nothing is awaited here, so notifications are passed on in the order they came in.
        notice = data if isinstance(data, dict) else {}
        if event in (ENTER_OFFICE_NOTIFICATION, LEAVE_OFFICE_NOTIFICATION) and notice.get("computer"):
            self._subscriptions.forget(str(notice["computer"]))
        self._tell(self._readers(event, notice), ["notice", event], codec.dumps(data).encode())

    def _readers(self, event: str, notice: dict[str, Any]) -> Iterable[_Sharer]:
        """The processes that a notification is for: those that made the call, those that subscribed, or all."""
        if event in (TOOL_PROGRESS_NOTIFICATION, QUESTION_NOTIFICATION):
            call = str(notice.get("agent")), str(notice.get("req_id"))
            return [sharer for sharer in self._sharers if call in sharer.calls]
        if event == RESOURCE_UPDATED_NOTIFICATION:
            return self._subscriptions.wanting((str(notice.get("computer")), str(notice.get("uri"))))
        return self._sharers

    def _tell_all(self, head: list[Any], body: bytes) -> None:
        self._tell(self._sharers, head, body)

    @staticmethod
    def _tell(sharers: Iterable[_Sharer], head: list[Any], body: bytes) -> None:
        data = frame(head, body)
        for sharer in sharers:
            sharer.pipe.send_frame(data)

    # --- the processes

    def _greet(self) -> SeatPipe:
        sharer: _Sharer

        def come() -> None:
            try:
                pid = peer_pid(sharer.pipe.socket)
            except OSError as error:
                logger.warning("refused a process: %s", error)
                sharer.pipe.close()
                return
            logger.info("process %s came", pid)
            self._sharers.add(sharer)
            sharer.pipe.ended.add_done_callback(lambda _: self._go(sharer))
            sharer.pipe.send(["state"], self._state.encode())

        sharer = _Sharer(
            SeatPipe(
                lambda head, body: self._take(sharer, head, body),
                self._options.link.max_message + LONGEST_HEAD,
                made=come,
                max_waiting=self._options.max_waiting,
            )
        )
        return sharer.pipe

    def _go(self, sharer: _Sharer) -> None:
        """A process has ended or was cut off. Nobody waits for its answers, and its tools need not run on."""
        self._sharers.discard(sharer)
        for errand in sharer.errands.lost():
            errand.work.task.cancel()
            if errand.work.call is not None:
                self._tidy(self._cancel(errand.work.call))
        if keys := self._subscriptions.gone(sharer):
            self._tidy(self._unsubscribe(sharer, keys))
        if not self._sharers:
            self._empty_since = asyncio.get_running_loop().time()
            self._news.set()

    def _take(self, sharer: _Sharer, head: list[Any], body: bytes) -> None:
        match head:
            case ["ask", int() as number, str() as event, int() | float() as timeout, *call] if (
                number not in sharer.errands
            ):
                ids = {"agent": str(call[0]), "req_id": str(call[1])} if event == TOOL_CALL_EVENT else None
                task = asyncio.create_task(self._relay(sharer, number, event, timeout, body))
                sharer.begin(number, task, ids)
            case ["forget", int() as number]:
                if (errand := sharer.errands.withdraw(number)) is not None:
                    errand.work.task.cancel()  # a process that stops waiting for a tool call cancels the call itself
            case ["yield"]:
                if self._sharers == {sharer}:
                    self.end()
                else:
                    sharer.pipe.send(["kept"])
            case _:
                logger.warning("ignored a frame that begins with %r", head[:1])

    async def _relay(self, sharer: _Sharer, number: int, event: str, timeout: float, body: bytes) -> None:
        kind = "answer"
        try:
            exchange = partial(self._exchange, event, timeout, body)
            if event in (SUBSCRIBE_RESOURCE_EVENT, UNSUBSCRIBE_RESOURCE_EVENT):
                answer = await self._subscribe(sharer, event, body, exchange)
            else:
                answer = await exchange()
        except SMCPError as error:
            kind, answer = "failed", codec.dumps(error.payload()).encode()
        if sharer.errands.finished(number):
            sharer.pipe.send([kind, number], answer)

    async def _subscribe(
        self, sharer: _Sharer, event: str, body: bytes, exchange: Callable[[], Awaitable[bytes]]
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

    async def _exchange(self, event: str, timeout: float, body: bytes) -> bytes:
        if event in _MEMBERSHIP:
            raise ForbiddenError(f"{event} is not for those who share a seat")
        try:
            answer = await self._link.exchange(event, Encoded(body.decode()), timeout)
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
        with suppress(SMCPError):
            await self._link.request(CANCEL_TOOL_CALL_EVENT, call, timeout=_TIDY)

    async def _unsubscribe(self, sharer: _Sharer, keys: list[ResourceKey]) -> None:
        """End what only this process wanted, unless another process wants it by now."""
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
