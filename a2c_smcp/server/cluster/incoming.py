"""The requests of another process to this one: each is begun once, in order, not too late, and answered."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from a2c_smcp.errors import InternalError, NotInRoomError, SMCPError, TooManyRequestsError
from a2c_smcp.relay.errands import Errand, ErrandTable
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bus import BusInbox, RemoteRequest
from a2c_smcp.server.cluster.bus_frames import (
    AskFrame,
    BusFrame,
    ChunkFrame,
    Gathering,
    ReplyFrame,
    ReportFrame,
    from_text,
    to_text,
)
from a2c_smcp.server.cluster.clock import now as elapsed
from a2c_smcp.server.cluster.line import ProcessLine
from a2c_smcp.server.cluster.outgoing import fail, lost
from a2c_smcp.server.envelopes import Answer, Message
from a2c_smcp.server.offices import Member
from a2c_smcp.smcp import QUESTION_NOTIFICATION
from a2c_smcp.tracing.trace_context import well_formed
from a2c_smcp.utils.text import in_log, req_id_in_log
from a2c_smcp.wire import codec

__all__ = ["IncomingRequests"]

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Taken:
    ask: AskFrame
    gathering: Gathering
    answer: "asyncio.Future[Answer | None]"
    is_whole: bool = False


class IncomingRequests:
    """What this process does for one other process."""

    def __init__(self, line: ProcessLine, inbox: BusInbox, check: Callable[[], None], me: str) -> None:
        self._line = line
        self._inbox = inbox
        self._check = check
        self._me = me
        self._errands: ErrandTable[int, _Taken] = ErrandTable()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._errands)

    def unknown(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """The numbers among these whose requests are neither under way nor being answered."""
        return tuple(number for number in numbers if number not in self._errands)

    def take(self, ask: AskFrame, text: bytes) -> Callable[[], None] | None:
        """Note a request. Returns the function that begins it; `None` if a part is missing, or if it came before."""
        if ask.id in self._errands:
            return None
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        taken = _Taken(ask, Gathering(ask.size), answer)
        self._errands.take(Errand(ask.id, taken, deadline=ask.instant))
        return self._add(taken, text)

    def take_chunk(self, chunk: ChunkFrame, text: bytes) -> tuple[int, Callable[[], None]] | None:
        """Add a chunk. If this completes the request, returns its revision, and the function that begins it."""
        if (errand := self._errands.get(chunk.id)) is None:
            return None
        errand.deadline = chunk.instant
        begin = self._add(errand.work, text)
        return (errand.work.ask.revision, begin) if begin is not None else None

    def withdraw(self, number: int) -> None:
        """Stop a request: nobody waits for its answer any more."""
        if (errand := self._errands.withdraw(number)) is not None:
            fail(errand.work.answer, NotInRoomError("the caller has gone"))

    def cut(self) -> None:
        """One of the two processes was cut off from NATS. Refuse the requests of which only a part has come."""
        for number in self._errands.ids():
            errand = self._errands.get(number)
            if errand is not None and not errand.work.is_whole and self._errands.finished(number):
                self._refuse(number, lost())

    def _refuse(self, number: int, error: SMCPError) -> None:
        reply, text = _refused(number, error)
        self._line.send(reply, text, keep=tuning.TIMES.keep_answers)

    def withdraw_all(self) -> None:
        for errand in self._errands.lost():
            fail(errand.work.answer, NotInRoomError("the caller has gone"))

    def _add(self, taken: _Taken, text: bytes) -> Callable[[], None] | None:
        if (whole := taken.gathering.add(text)) is None:
            return None
        taken.is_whole = True
        return lambda: self._begin(taken, whole)

    def _begin(self, taken: _Taken, body: bytes) -> None:
        if not taken.answer.done():
            task = asyncio.create_task(self._serve(taken, self._remote_request(taken.ask, to_text(body))))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, taken: _Taken, remote: RemoteRequest) -> None:
        ask = taken.ask
        try:
            self._check()
            if self._errands.begin(ask.id, elapsed()) is None:
                return
            reply, text = _answered(ask, await self._inbox.answer(remote, taken.answer))
        except SMCPError as error:
            reply, text = _refused(ask.id, error)
        except Exception:
            # The boundary: a fault of ours becomes the answer. Otherwise the caller would wait.
            event, req_id = in_log(ask.event), req_id_in_log({"req_id": to_text(ask.req_id)})
            logger.exception("failed to handle %s from another server process, req_id %s", event, req_id)
            reply, text = _refused(ask.id, InternalError("the server failed to handle this; its log says why"))
        if ask.id in self._errands:
            await self._send(reply, text)
            self._errands.finished(ask.id)

    async def _send(self, reply: ReplyFrame, text: bytes) -> None:
        keep = tuning.TIMES.keep_answers
        if len(text) <= tuning.BOUNDS.chunk_bytes:
            self._line.send(reply, text, keep=keep)
            return

        def frame_at(start: int) -> BusFrame | None:
            if reply.id not in self._errands:
                return None  # withdrawn meanwhile
            return ChunkFrame(reply.id, of_ask=False) if start else reply

        with self._line.room_for(len(text)) as fits:
            if not fits:
                self._refuse(reply.id, TooManyRequestsError("too much waits for the server process of this agent"))
            elif not await self._line.send_chunks(text, frame_at, keep=keep) and reply.id in self._errands:
                self._refuse(reply.id, lost())

    def _remote_request(self, ask: AskFrame, body: str) -> RemoteRequest:
        def pass_on(event: str, text: str) -> bool:
            if ask.id not in self._errands:
                return False
            # A question that is lost would never be answered.
            keep = tuning.TIMES.keep_answers if event == QUESTION_NOTIFICATION else 0.0
            self._line.send(ReportFrame(ask.id, event), from_text(text), keep=keep)
            return True

        request = {
            "agent": to_text(ask.agent),
            "req_id": to_text(ask.req_id),
            "computer": ask.computer,
            "timeout": ask.timeout,
            "progress": ask.reports,
            "questions": ask.questions,
            "traceparent": well_formed(ask.traceparent),
        }
        target = Member(ask.target, "computer", ask.computer, ask.office, self._me)
        message = Message(ask.event, request, body=body)
        return RemoteRequest(f"{self._line.process}/{ask.caller}", target, message, pass_on)


def _answered(ask: AskFrame, answer: Answer | None) -> tuple[ReplyFrame, bytes]:
    if answer is None:
        return ReplyFrame(ask.id, 0, answered=False), b""
    text = from_text(answer.text)
    return ReplyFrame(ask.id, len(text), is_error=answer.error is not None), text


def _refused(number: int, error: SMCPError) -> tuple[ReplyFrame, bytes]:
    text = from_text(codec.dumps(error.payload()))
    return ReplyFrame(number, len(text), refused=True), text
