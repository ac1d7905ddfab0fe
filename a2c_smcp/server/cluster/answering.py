"""The questions of another process to this one: each begun once, in order, not too late, and answered."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from a2c_smcp.errors import InternalError, NotFoundError, NotInRoomError, SMCPError, TooManyRequestsError
from a2c_smcp.server.bus import BusInbox, Errand
from a2c_smcp.server.cluster.asking import fail
from a2c_smcp.server.cluster.clock import now as elapsed
from a2c_smcp.server.cluster.frames import (
    CHUNK_BYTES,
    AskFrame,
    BusFrame,
    ChunkFrame,
    Gathering,
    ReplyFrame,
    ReportFrame,
    from_text,
    to_text,
)
from a2c_smcp.server.cluster.line import ProcessLine
from a2c_smcp.server.envelopes import Answer
from a2c_smcp.server.offices import Member
from a2c_smcp.utils.text import in_log, req_id_in_log
from a2c_smcp.wire import codec

__all__ = ["Answering"]

logger = logging.getLogger(__name__)

#: How long an answer may wait for NATS: after that its caller has given up.
_KEEP_ANSWERS = 5.0


@dataclass(slots=True, eq=False)
class _TakenErrand:
    ask: AskFrame
    gathering: Gathering
    answer: "asyncio.Future[Answer | None]"
    instant: float


class Answering:
    """What this process does for one other process."""

    def __init__(self, line: ProcessLine, inbox: BusInbox, check: Callable[[], None], me: str) -> None:
        self._line = line
        self._inbox = inbox
        self._check = check
        self._me = me
        self._served: dict[int, _TakenErrand] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._served)

    def unknown(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Which of these are neither under way nor being answered."""
        return tuple(number for number in numbers if number not in self._served)

    def take(self, ask: AskFrame, text: bytes) -> Callable[[], None] | None:
        """Note a errand. Returns how to begin it, when all of it is here."""
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        served = self._served[ask.id] = _TakenErrand(ask, Gathering(ask.size), answer, ask.instant)
        return self._add(served, text)

    def take_chunk(self, chunk: ChunkFrame, text: bytes) -> tuple[int, Callable[[], None]] | None:
        """More of a errand. Returns the revision that it waits for and how to begin it, when all of it is here."""
        if (served := self._served.get(chunk.id)) is None:
            return None
        served.instant = chunk.instant
        begin = self._add(served, text)
        return (served.ask.revision, begin) if begin is not None else None

    def withdraw(self, number: int) -> None:
        """Nobody waits for this answer any more."""
        if (served := self._served.pop(number, None)) is not None:
            fail(served.answer, NotInRoomError("the caller has gone"))

    def withdraw_all(self) -> None:
        for number in list(self._served):
            self.withdraw(number)

    def _add(self, served: _TakenErrand, text: bytes) -> Callable[[], None] | None:
        if (whole := served.gathering.add(text)) is None:
            return None
        return lambda: self._begin(served, whole)

    def _begin(self, served: _TakenErrand, body: bytes) -> None:
        if not served.answer.done():
            task = asyncio.create_task(self._serve(served, to_text(body)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, served: _TakenErrand, body: str) -> None:
        ask = served.ask
        try:
            self._check()
            if elapsed() > served.instant:
                raise NotFoundError("the request came too late to be started")
            reply, text = _answered(ask, await self._inbox.answer(self._question(ask, body), served.answer))
            if not self._line.has_room_for(len(text)):
                raise TooManyRequestsError("too much waits to be sent to the server process of this agent")
        except SMCPError as error:
            reply, text = _refused(ask, error)
        except Exception:
            # The boundary: a fault of ours becomes the answer, or the caller would wait.
            event, req_id = in_log(ask.event), req_id_in_log({"req_id": ask.req_id})
            logger.exception("failed to handle %s from another server process, req_id %s", event, req_id)
            reply, text = _refused(ask, InternalError("the server failed to handle this; its log says why"))
        del body
        if ask.id in self._served:
            await self._send(reply, text)
            self._served.pop(ask.id, None)

    async def _send(self, reply: ReplyFrame, text: bytes) -> None:
        if len(text) <= CHUNK_BYTES:
            self._line.send(reply, text, keep=_KEEP_ANSWERS)
            return

        def frame_at(start: int) -> BusFrame | None:
            if reply.id not in self._served:
                return None  # withdrawn meanwhile
            return ChunkFrame(reply.id, of_ask=False) if start else reply

        await self._line.send_chunks(text, frame_at, keep=_KEEP_ANSWERS)

    def _question(self, ask: AskFrame, body: str) -> Errand:
        def report(text: str) -> None:
            if ask.id in self._served:
                self._line.send(ReportFrame(ask.id), from_text(text))

        target = Member(ask.target, "computer", ask.computer, ask.office, self._me)
        return Errand(
            f"{self._line.process}/{ask.caller}",
            target,
            ask.event,
            ask.agent,
            ask.req_id,
            ask.timeout,
            body,
            report if ask.reports else None,
        )


def _answered(ask: AskFrame, answer: Answer | None) -> tuple[ReplyFrame, bytes]:
    if answer is None:
        return ReplyFrame(ask.id, 0, answered=False), b""
    text = from_text(answer.encoded.text)
    return ReplyFrame(ask.id, len(text), is_error=answer.error is not None), text


def _refused(ask: AskFrame, error: SMCPError) -> tuple[ReplyFrame, bytes]:
    text = from_text(codec.dumps(error.payload()))
    return ReplyFrame(ask.id, len(text), refused=True), text
