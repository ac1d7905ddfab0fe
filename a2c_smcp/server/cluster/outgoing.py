"""The requests of this process to another one: each is sent once and answered once. All fail when that one is gone."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from a2c_smcp.errors import (
    InternalError,
    NotFoundError,
    RequestTimeoutError,
    SMCPError,
    TooManyRequestsError,
    error_from_payload,
)
from a2c_smcp.relay.asks import Ask, AskTable
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bus import BusObserver, RemoteRequest
from a2c_smcp.server.cluster.bus_frames import (
    AskFrame,
    BusFrame,
    ChunkFrame,
    Gathering,
    PingFrame,
    PongFrame,
    ReplyFrame,
    ReportFrame,
    WithdrawFrame,
    encode,
    from_text,
    kind_of,
    to_text,
)
from a2c_smcp.server.cluster.clock import now as elapsed
from a2c_smcp.server.cluster.line import ProcessLine
from a2c_smcp.server.envelopes import Answer, read_answer
from a2c_smcp.utils.text import req_id_in_log
from a2c_smcp.wire import codec

__all__ = ["OutgoingRequests", "fail", "lost"]

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Sent:
    """What is kept of a request beside its place in the table of asks."""

    number: int
    remote: RemoteRequest
    answer: "asyncio.Future[Answer | None]"
    began: float
    sent_at: float | None = None
    """When all of it was sent."""
    frame: bytes | None = None
    """The frame as it was sent. It is kept for a moment, because it is sent again if NATS says that nobody took it."""
    refused: bool = False
    reply: ReplyFrame | None = None
    gathering: Gathering | None = None


class OutgoingRequests:
    """What this process waits for from one other process."""

    def __init__(
        self,
        line: ProcessLine,
        numbers: Callable[[], int],
        revision: Callable[[], int],
        check: Callable[[], None],
        observer: BusObserver,
    ) -> None:
        self._line = line
        self._check = check
        self._next_number = numbers
        self._revision = revision
        self._observer = observer
        self._asks: AskTable[int, _Sent] = AskTable()
        self._met: asyncio.Future[None] | None = None
        self._withdrawn: deque[tuple[float, int]] = deque()
        """The requests that were withdrawn lately, and when."""

    def __len__(self) -> int:
        return len(self._asks)

    # --- sending

    async def ask(self, remote: RemoteRequest, answer: "asyncio.Future[Answer | None]") -> None:
        """Send a request. It is sent when this returns, unless `answer` is done."""
        data = from_text(remote.message.take_body())
        with self._line.room_for(len(data)) as fits:
            if not fits:
                raise TooManyRequestsError(
                    "too much waits to be sent to the server process of this computer; try again later"
                )
            await self._send(_Sent(self._next_number(), remote, answer, elapsed()), data)

    async def _send(self, call: _Sent, data: bytes) -> None:
        remote, answer = call.remote, call.answer
        remote.number = call.number
        self._asks.ask(Ask(call.number, call))
        if not self._line.clock.is_fresh(elapsed()):
            await self._meet(answer)
            self._check()
        if answer.done() or not self._asks.sent(call.number):
            return
        ask = self._frame_of(call, len(data))
        if len(data) <= tuning.BOUNDS.chunk_bytes:
            call.frame = encode(ask, data)
            self._send_whole(call)
        elif await self._line.send_chunks(data, lambda start: self._chunk_of(call, ask, start)):
            call.sent_at = elapsed()
        else:
            fail(answer, lost())

    def forget(self, remote: RemoteRequest) -> None:
        """Nobody waits for the answer any more. Withdraws a request that has no answer."""
        if self._asks.withdraw(remote.number):
            self._withdraw(remote.number)
        if not self._asks:
            self._line.health.nobody_waits()

    def _withdraw(self, number: int) -> None:
        now = elapsed()
        while self._withdrawn and self._withdrawn[0][0] < now - tuning.TIMES.remembered_for_cuts:
            self._withdrawn.popleft()
        self._withdrawn.append((now, number))
        self._line.send(WithdrawFrame(number))

    async def _meet(self, answer: "asyncio.Future[Answer | None]") -> None:
        """Learn the clock of the other process, unless that process is given up first."""
        if self._met is None or self._met.done():
            self._met = asyncio.get_running_loop().create_future()
            self.ping()
        await asyncio.wait((self._met, answer), return_when=asyncio.FIRST_COMPLETED)

    def _frame_of(self, call: _Sent, size: int) -> AskFrame:
        remote, target, request = call.remote, call.remote.target, call.remote.message.request
        assert remote.message.event is not None
        return AskFrame(
            call.number,
            self._revision(),
            self._instant(call),
            size,
            remote.caller,
            target.sid,
            target.office_id,
            target.name,
            remote.message.event,
            from_text(request["agent"]),
            from_text(request["req_id"]),
            request.get("timeout"),
            bool(request.get("progress")),
            bool(request.get("questions")),
            request.get("traceparent"),
        )

    def _instant(self, call: _Sent) -> float:
        """The moment at which this process may give up, by the clock of the other process."""
        given_up = self._line.health.gives_up_at(elapsed())
        return self._line.clock.at(min(given_up, call.began + call.remote.seconds))

    def _chunk_of(self, call: _Sent, ask: AskFrame, start: int) -> BusFrame | None:
        if call.answer.done():
            return None
        self._line.health.sent(elapsed())
        return ChunkFrame(call.number, of_ask=True, instant=self._instant(call)) if start else ask

    def _send_whole(self, call: _Sent) -> None:
        assert call.frame is not None
        call.refused = False
        call.sent_at = elapsed()
        self._line.health.sent(call.sent_at)
        self._line.send_encoded(
            kind_of(AskFrame), call.frame, number=call.number, undelivered=lambda: fail(call.answer, _out_of_reach())
        )

    def _waiting(self, number: int) -> _Sent | None:
        ask = self._asks.get(number)
        return None if ask is None else ask.waiter

    def _calls(self) -> list[_Sent]:
        return [ask.waiter for ask in self._asks.waiting()]

    # --- what comes back

    def take_reply(self, reply: ReplyFrame, text: bytes) -> None:
        if (call := self._waiting(reply.id)) is not None:
            call.reply, call.gathering = reply, Gathering(reply.size)
            self._add(call, text)

    def take_chunk(self, chunk: ChunkFrame, text: bytes) -> None:
        if (call := self._waiting(chunk.id)) is not None:
            self._add(call, text)

    def take_report(self, report: ReportFrame, text: bytes) -> None:
        if (call := self._waiting(report.id)) is not None and call.remote.pass_on is not None:
            call.remote.pass_on(report.event, to_text(text))

    def _add(self, call: _Sent, text: bytes) -> None:
        if call.reply is None or call.gathering is None or (whole := call.gathering.add(text)) is None:
            return
        call.gathering = None
        self._asks.answer(call.number)
        waited = elapsed() - call.began
        self._observer.answered_across(waited)
        try:
            result = _read(call.reply, whole)
        except RequestTimeoutError as error:
            # Long before the request's deadline, "too late" has another reason: the process was nearly given up.
            fail(call.answer, error if waited > call.remote.seconds - tuning.TIMES.near_the_end else _gone())
        except SMCPError as error:
            fail(call.answer, error)
        else:
            if not call.answer.done():
                call.answer.set_result(result)

    # --- whether it is there

    def ping(self) -> None:
        """Ask whether the other process is there, and whether it knows the requests that wait for it."""
        now = elapsed()
        self._line.health.sent(now)
        late = [
            call
            for call in self._calls()
            if call.sent_at is not None and not call.refused and now - call.sent_at > tuning.TIMES.ping
        ]
        for call in late:
            call.frame = None
        self._line.send(PingFrame(now, tuple(call.number for call in late[: tuning.BOUNDS.named])))

    def take_pong(self, pong: PongFrame) -> None:
        learnt = self._line.clock.learn(pong.sent, elapsed(), pong.clock)
        # If the clock was not learnt, the next ping follows within a second, because somebody waits.
        if learnt and self._met is not None and not self._met.done():
            self._met.set_result(None)
        for number in pong.unknown:
            if (call := self._waiting(number)) is None or call.answer.done() or call.gathering is not None:
                continue
            # A request that was sent again after that ping may have arrived by now.
            if call.sent_at is not None and call.sent_at < pong.sent:
                message = call.remote.message
                req_id = req_id_in_log(message.request)
                logger.warning("%s, req_id %s, was lost between server processes", message.event, req_id)
                fail(call.answer, lost())

    def take_refusal(self, number: int) -> None:
        """NATS says that nobody took a request."""
        if (call := self._waiting(number)) is None:
            return
        if call.frame is None:
            fail(call.answer, _gone())
        else:
            call.refused = True

    def send_again(self) -> None:
        """Send the requests again that nobody took."""
        for call in self._calls():
            if call.refused and call.frame is not None and not call.answer.done():
                self._send_whole(call)

    def cut(self) -> None:
        """One of the two processes was cut off from NATS. An answer of which only a part has come is lost. A request
        that was withdrawn meanwhile may still run.
        """
        for call in self._calls():
            if call.gathering is not None:
                fail(call.answer, lost())
        for _, number in self._withdrawn:
            self._line.send(WithdrawFrame(number))

    def give_up(self, error: SMCPError | None = None) -> None:
        """Fail everything that waits for the other process, because it counts as gone."""
        for call in self._calls():
            fail(call.answer, error or _gone())
        if self._met is not None:
            self._met.cancel()


def fail(answer: "asyncio.Future[Answer | None]", error: Exception) -> None:
    """Fail a wait, if it has not ended."""
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # otherwise asyncio logs it if nobody waits


def _read(reply: ReplyFrame, text: bytes) -> Answer | None:
    """The answer of a computer. Raises the error that the other process raised."""
    if not reply.answered:
        return None
    if reply.refused:
        raise error_from_payload(codec.loads(text)) or InternalError("another server process failed")
    if reply.is_error:
        return read_answer(f"[{to_text(text)}]")
    return Answer(to_text(text))


def _gone() -> NotFoundError:
    return NotFoundError("the server process that holds this computer is out of reach", details={"gone": "process"})


def lost() -> InternalError:
    """The error for a caller when nobody knows what became of its request."""
    return InternalError("the request or its answer was lost between two server processes")


def _out_of_reach() -> InternalError:
    return InternalError("NATS is out of reach: no other server process can be asked")
