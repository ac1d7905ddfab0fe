"""An agent's connection to its office through a shared seat. It has the interface of `OfficeLink`.

When the holder ends, one of the processes that use it starts the next one. A request that was not sent yet waits for
the new holder. A request that only reads is asked again. A tool call that was already sent fails: nobody knows whether
the tool has run.

A process that is the only one may be lent the seat (`own_way`). Then its requests go to the server directly.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from a2c_smcp.agent.seat.holder_options import HolderOptions
from a2c_smcp.agent.seat.lending import Seat, moved
from a2c_smcp.agent.seat.own_way import OwnWay
from a2c_smcp.agent.seat.pipe import SeatPipe
from a2c_smcp.agent.seat.place import SeatPlace, is_held, peer_pid, place_of, try_lock
from a2c_smcp.agent.seat.seat_frames import ABOUT_CALLS, LONGEST_HEAD, State, read_error
from a2c_smcp.agent.seat.starting import start_holder
from a2c_smcp.dialects.handshake import Dialect
from a2c_smcp.errors import (
    AlreadyInRoomError,
    ConnectionLostError,
    NotInRoomError,
    PayloadTooLargeError,
    RequestTimeoutError,
    SMCPError,
)
from a2c_smcp.link.interface import (
    Connected,
    Disconnected,
    Handler,
    Joined,
    Left,
    LinkEvent,
    LinkFactory,
    LinkOptions,
    Membership,
    RejoinFailed,
)
from a2c_smcp.link.supervision import First, Supervisor
from a2c_smcp.link.transports import Way
from a2c_smcp.relay.asks import Ask, AskTable
from a2c_smcp.relay.futures import reject, reject_all, resolve
from a2c_smcp.smcp import TOOL_CALL_EVENT
from a2c_smcp.utils.backoff import backoff
from a2c_smcp.wire import PACKET_OVERHEAD, Encoded, codec, written

__all__ = ["NobodyHoldsItError", "SeatLink", "SharedSeat", "shared_seat"]

logger = logging.getLogger(__name__)

#: The first and the longest pause before this process starts another holder.
_RESTART: Final = (0.5, 10.0)
#: How many seconds a holder may take to send its first frame.
_GREETING: Final = 10.0
_ENDED: Final = "the process that held the seat has ended"


class NobodyHoldsItError(Exception):
    """No process holds this seat, and this process was told not to start one."""


class _HolderGoneError(Exception):
    """The holder ended before it answered."""


@dataclass(frozen=True, slots=True)
class SharedSeat:
    """Which seat to use, and whether to start a holder if there is none."""

    place: SeatPlace
    options: HolderOptions
    start: bool = True
    take_over: bool = True
    """Whether to start a new holder when the old one ends."""


def shared_seat(
    link: LinkOptions, office: str, name: str, *, start: bool = True, take_over: bool = True, linger: float = 10.0
) -> LinkFactory:
    """Share the seat of this office with this user's other processes: hand the returned value to an agent as its
    `link`.

    The first process starts a holder, unless `start` is false. `take_over` says whether to start a new holder when the
    old one ends. `linger` is how many seconds the seat is kept after the last process has gone. Raises `NotSharedError`
    where seats cannot be shared, for instance on Windows.
    """
    options = HolderOptions(link, Membership("agent", name, office), linger)
    return partial(SeatLink, seat=SharedSeat(place_of(link, office), options, start, take_over))


class SeatLink:
    """The link of an `AsyncSMCPAgentClient`, over the local socket of a holder."""

    def __init__(
        self,
        options: LinkOptions,
        handlers: Mapping[str, Handler],
        *,
        on_event: Callable[[LinkEvent], None],
        seat: SharedSeat,
    ) -> None:
        self.options = options
        self.membership: Membership | None = None
        self._handlers = handlers
        self._on_event = on_event
        self._seat = seat
        self._name = seat.options.membership.name
        self._pipe: SeatPipe | None = None
        self._state = State(self._name)
        self._trouble: SMCPError | None = None
        """Why there is no holder to ask."""
        self._supervisor = Supervisor(self._supervise, "a2c-seat")
        self._changed = asyncio.Event()
        self._numbers = itertools.count(1)
        self._asks: AskTable[int, asyncio.Future[str]] = AskTable()
        self._working: set[asyncio.Task[None]] = set()
        self._was_joined = False
        self._own = OwnWay(options, handlers, self._on_own_event)
        self._has = Seat.HELD
        self._borrowing: asyncio.Task[None] | None = None

    # --- as OfficeLink

    @property
    def connected(self) -> bool:
        return self._own.connected if self._own.is_used else self._state.connected

    @property
    def joined(self) -> bool:
        return (self._own.joined if self._own.is_used else self._state.joined) and self.membership is not None

    @property
    def way(self) -> Way | None:
        return self._own.way if self._own.is_used else self._state.way

    @property
    def server_dialect(self) -> Dialect:
        return self._own.server_dialect if self._own.is_used else self._state.dialect

    @property
    def problem(self) -> SMCPError | None:
        """Why the office cannot be used right now, if it is known."""
        if self._own.is_used:
            return None if self.joined else self._own.problem
        if self._state.joined:
            return None
        lost, reason = None, self._state.reason
        if reason:
            ended = f"the connection to the server was lost: {reason}"
            lost = ConnectionLostError(ended if self._pipe is not None else reason)
        return self._trouble or self._state.problem or lost

    async def open(self) -> None:
        """Connect to the holder, and start one if that is allowed. Raises `NobodyHoldsItError` if there is none."""
        await self._supervisor.open()

    def attend(self, membership: Membership) -> None:
        """Connect to the holder and be in the office as soon as it is. Returns at once; `problem` says why it is not
        there yet.
        """
        self._supervisor.begin()
        self.membership = membership

    async def close(self) -> None:
        """Disconnect. The seat stays with the other processes."""
        await self._supervisor.close()
        if self._borrowing is not None:
            self._borrowing.cancel()
            await asyncio.wait({self._borrowing})
            self._borrowing = None
        was_used, self._has = self._own.is_used, Seat.HELD
        if self._pipe is not None:
            self._pipe.close()
            self._lose("closed by this side", final=True)
        await self._own.close()
        if was_used:
            self._tell(Disconnected("closed by this side", final=True))
        self._changed.set()

    async def join(self, membership: Membership) -> None:
        """Wait until the holder is in the office, or raise the reason why it is not; `AlreadyInRoomError` for another
        office.
        """
        if membership.office_id != (office_id := self._seat.options.membership.office_id):
            raise AlreadyInRoomError(f"the shared seat is in office {office_id!r}; another office needs one of its own")
        await self._ready(self.options.connect_timeout + self.options.membership_timeout)
        self.membership = membership
        self._was_joined = True
        self._tell(Joined(membership, again=False))

    async def leave(self) -> None:
        """Stop using the office. The seat stays with the other processes."""
        was_in, membership, self.membership = self.joined, self.membership, None
        if membership is not None and was_in:
            self._tell(Left(membership))

    async def exchange(self, event: str, data: Any, timeout: float) -> str:
        """As `OfficeLink.exchange`. If the holder ends meanwhile, a tool call raises `ConnectionLostError`."""
        self._supervisor.check_loop()
        if self.membership is None:
            raise NotInRoomError("join an office first")
        if self._own.is_used:
            return await self._own.exchange(event, data, timeout)
        body = written(event, data).encode()
        if len(body) + len(event) + PACKET_OVERHEAD > self.options.max_message:
            raise PayloadTooLargeError(f"{event} has more than {self.options.max_message} bytes")
        is_repeatable = event != TOOL_CALL_EVENT
        call = [] if is_repeatable else [data["agent"], data["req_id"]]
        try:
            async with asyncio.timeout(timeout):
                return await self._ask([event, timeout, *call], body, is_repeatable=is_repeatable)
        except TimeoutError:
            raise RequestTimeoutError(f"the server did not answer {event} within {timeout:g} s") from None

    # ---

    async def _ask(self, head: list[Any], body: bytes, *, is_repeatable: bool) -> str:
        """Ask one holder after the other, until one answers."""
        loop = asyncio.get_running_loop()
        while True:
            if (pipe := await self._ready(seconds=30.0)) is None:
                return await self._own.exchange(head[0], Encoded(body.decode()), head[1])
            answered: asyncio.Future[str] = loop.create_future()
            ask = Ask(next(self._numbers), answered, was_sent=not pipe.has_ended)
            self._asks.ask(ask)
            if ask.was_sent:  # otherwise it waits for the next holder
                pipe.send(["ask", ask.id, *head], body)
            try:
                return await answered
            except _HolderGoneError:
                if ask.was_sent and not is_repeatable:
                    raise ConnectionLostError(f"{_ENDED} while the tool was called; it may have run") from None
            finally:
                if self._asks.withdraw(ask.id):
                    pipe.send(["forget", ask.id])

    async def _ready(self, seconds: float) -> SeatPipe | None:
        """The pipe to a holder that is in the office; `None` if this process is in the office itself. Waits while
        either of them is still joining.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    if not self._supervisor.is_running:
                        raise ConnectionLostError("not connected to the server")
                    if self._own.joined:
                        return None
                    if not self._own.is_used:
                        if self._pipe is not None and self._state.joined:
                            return self._pipe
                        problem = self._trouble or self._state.problem
                        if problem is not None and not self._state.is_hopeful:
                            raise problem
                        if self._pipe is not None and self._state.reason:
                            raise ConnectionLostError(f"not connected to the server: {self._state.reason}")
                    self._changed.clear()
                    await self._changed.wait()
        raise ConnectionLostError(f"the seat of the office was not taken within {seconds:g} s")

    # --- going to the holder

    async def _supervise(self, first: First) -> None:
        while True:
            try:
                pipe = await self._attach(first)
            except (NobodyHoldsItError, ConnectionLostError) as error:
                if not first.done():
                    first.set_exception(error)
                    return
                await asyncio.sleep(_RESTART[0])
                continue
            if not first.done():
                first.set_result(None)
            await asyncio.shield(pipe.ended)
            self._lose(_ENDED)

    async def _attach(self, first: First) -> SeatPipe:
        """Connect to the holder, and start one if that is allowed. Raises `NobodyHoldsItError` if it is not, and
        `ConnectionLostError` for a holder that cannot be used.
        """
        now, place = asyncio.get_running_loop().time, self._seat.place
        may_start = self._seat.take_over if first.done() else self._seat.start
        starts, not_before = 0, 0.0
        while True:
            try:
                return await self._connect()
            except (FileNotFoundError, ConnectionError):
                pass  # there is no socket, or no process listens there
            except OSError as error:
                raise self._note(str(error)) from None
            if not may_start:
                if not is_held(place):
                    raise NobodyHoldsItError
            elif now() >= not_before:
                try:
                    if await self._start():
                        if starts:
                            self._note(f"the process that is to hold the seat does not start; {place.log} says why")
                        starts += 1
                        not_before = now() + backoff(starts, *_RESTART)
                except OSError as error:
                    raise self._note(f"a process that holds the seat cannot be started: {error}") from None
            await asyncio.sleep(0.02)  # a holder is starting

    async def _start(self) -> bool:
        """Start a holder, unless another has the lock."""
        if (lock := try_lock(self._seat.place)) is None:
            return False
        await asyncio.to_thread(start_holder, self._seat.place, lock, self._seat.options)
        return True

    async def _connect(self) -> SeatPipe:
        """A pipe whose holder has sent its first frame. Raises `OSError`, and its subclass `TimeoutError`."""
        longest = self.options.max_message + LONGEST_HEAD
        pipe = SeatPipe(lambda head, body: self._take(pipe, head, body), longest)
        path = str(self._seat.place.socket)
        await asyncio.get_running_loop().create_unix_connection(lambda: pipe, path)
        pipe.ended.add_done_callback(lambda _: self._changed.set())
        try:
            pid = peer_pid(pipe.socket)
            async with asyncio.timeout(_GREETING):
                while self._pipe is not pipe:
                    if pipe.ended.done():
                        raise ConnectionResetError
                    self._changed.clear()
                    await self._changed.wait()
        except BaseException as error:
            pipe.close()
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"process {pid} holds the seat and does not answer") from None
            raise
        return pipe

    def _note(self, trouble: str) -> ConnectionLostError:
        if self._trouble is None or self._trouble.message != trouble:
            logger.warning("%s", trouble)
        self._trouble = ConnectionLostError(trouble)
        self._changed.set()
        return self._trouble

    def _lose(self, reason: str, *, final: bool = False) -> None:
        was_connected, self._pipe = self._state.connected, None
        self._state = State(self._name, reason=reason)
        reject_all(self._asks, partial(ConnectionLostError, reason) if final else _HolderGoneError)
        if was_connected and not self._own.is_used:
            self._tell(Disconnected(reason, final))
        self._changed.set()

    # --- hearing from the holder

    def _take(self, pipe: SeatPipe, head: list[Any], body: bytes) -> None:
        match head:
            case ["answer", int() as number]:
                resolve(self._asks, number, body.decode())
            case ["failed", int() as number]:
                reject(self._asks, number, read_error(codec.loads(body)))
            case ["notice", str() as event] if not self._own.is_used or event in ABOUT_CALLS:
                self._begin(self._hear(event, codec.loads(body)))
            case ["state"]:
                is_new, self._pipe = self._pipe is not pipe, pipe
                if is_new:
                    self._offer_back()
                self._apply(State.decode(body))
            case ["lend", str() as secret]:
                if self._borrowing is not None:  # the offer of an earlier holder
                    pipe.send(["declined"])
                    return
                self._move("lend")
                self._borrowing = self._begin(self._borrow(pipe, secret))
            case ["recall" | "back" as word]:
                self._move(word)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return task

    async def _borrow(self, pipe: SeatPipe, secret: str) -> None:
        """Take the seat over. The earlier requests of this process are answered by the holder."""
        try:
            await self._own.take(replace(self._seat.options.membership, name=self._state.name), secret)
        except SMCPError as error:
            logger.info("the seat stays with its holder: %s", error)
        answer, self._borrowing = "taken" if self._own.is_used else "declined", None
        self._move(answer)
        pipe.send([answer])
        if self._own.is_used:
            self._look_again()
        if self._pipe is not pipe:
            self._offer_back()

    def _offer_back(self) -> None:
        """Let a new holder have the seat."""
        if self._pipe is not None and (secret := self._own.secret) is not None:
            self._pipe.send(["resume", secret])
            self._move("resume")

    def _move(self, word: str) -> None:
        before, self._has = self._has, moved(self._has, word)
        if self._has is Seat.RETURNING:
            self._own.let_go()
            if not self._own.is_used:
                self._has = Seat.HELD
        elif before is Seat.RETURNING:
            self._own.give_back()
            self._look_again()

    def _look_again(self) -> None:
        """What the office told during the change may be lost. So the agent looks at all of it again."""
        if self.membership is not None:
            self._tell(Joined(self.membership, again=True))
        self._changed.set()

    def _on_own_event(self, event: LinkEvent) -> None:
        self._changed.set()
        if isinstance(event, Joined | RejoinFailed):
            if self.membership is None:
                return
            event = replace(event, membership=self.membership)
        self._tell(event)
        if not self._own.is_used:
            # What the holder has said meanwhile is news now.
            self._has, state, self._state = Seat.HELD, self._state, State(self._name)
            self._apply(state)

    def _apply(self, state: State) -> None:
        before, self._state, self._trouble = self._state, state, None
        if self._own.is_used:
            return
        if state.connected and not before.connected:
            self._tell(Connected(self.options.url, state.way))
        if before.connected and not state.connected:
            self._tell(Disconnected(state.reason, final=False))
        if self.membership is not None:
            if state.joined and not before.joined:
                self._tell(Joined(self.membership, again=self._was_joined))
                self._was_joined = True
            elif state.problem is not None and not state.is_hopeful and (before.problem is None or before.is_hopeful):
                self._tell(RejoinFailed(self.membership, state.problem, final=False))
        self._changed.set()

    async def _hear(self, event: str, data: Any) -> None:
        if (handler := self._handlers.get(event)) is None:
            return
        try:
            await handler(data)
        except SMCPError as error:
            logger.warning("ignored %s: %s", event, error)
        except Exception:
            # This is the caller's code. Whatever it raises, the seat is kept.
            logger.exception("failed to take %s", event)

    def _tell(self, event: LinkEvent) -> None:
        try:
            self._on_event(event)
        except Exception:
            # This is the caller's code. Whatever it raises, the seat is kept.
            logger.exception("a listener failed to take %s", type(event).__name__)
