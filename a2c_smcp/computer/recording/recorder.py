"""Tells the record what happens on a Computer. It returns at once: rows are made in the writer's thread."""

import asyncio
import os
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

from a2c_smcp import __version__
from a2c_smcp.computer.calls.log import HowDecided, LoggedCall, weight_of_content
from a2c_smcp.computer.recording.call_rows import MOST_ARGUMENTS, MOST_RESULT, call_row, running_row
from a2c_smcp.computer.recording.event_rows import RECORDED, about_of, event_row
from a2c_smcp.computer.recording.read_rows import ROW_SECONDS, ReadCounts, ReadDone, ReadRow, read_row
from a2c_smcp.computer.redaction import Redaction
from a2c_smcp.computer.watching.events import (
    ComputerEvent,
    DecisionAsked,
    DecisionDecided,
    OfficeStatus,
    ServerStatus,
)
from a2c_smcp.errors import InternalError
from a2c_smcp.record.reading import rule_counts
from a2c_smcp.record.rows import RecordRow, body_text
from a2c_smcp.record.writer import RecordWriter
from a2c_smcp.utils.bounded import BoundedDict

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["Recorder"]

#: Above so many bytes the size of a result need not be exact.
_LARGE: Final = 2**24
#: How long something that must be recorded waits for its row.
_WRITE_SECONDS: Final = 5.0


def _unrecorded(problem: str) -> InternalError:
    return InternalError(
        f"this computer does nothing that it cannot record, and its record cannot be written: {problem}",
        {"reason": problem},
    )


def _all_kinds() -> frozenset[type]:
    events: set[type] = set()
    waiting: list[Any] = [ComputerEvent]
    while waiting:
        kind = waiting.pop()
        if nested := get_args(kind):
            waiting.extend(nested)
        elif hasattr(kind, "recorded_as"):
            events.add(kind)
    return RECORDED | events


class Recorder:
    """Reads the events of a Computer, and is told of its calls and of what agents read. With `with_results`, results
    are recorded, too. If it `is_required`, call `written` before anything happens.
    """

    kinds: Final = _all_kinds()

    def __init__(
        self, writer: RecordWriter, redaction: Redaction, *, with_results: bool = False, is_required: bool = False
    ) -> None:
        self._writer = writer
        self.is_required = is_required
        """Whether nothing may happen that cannot be recorded."""
        self._reads = ReadCounts()
        self._next_rows: asyncio.TimerHandle | None = None
        self._began = time.time()
        self._redact = redaction
        # What is cut to a size later is looked at a little beyond it: to look at 100 KB takes milliseconds.
        self._redact_arguments = partial(redaction, most=MOST_ARGUMENTS + 1024)
        self._redact_result = partial(redaction, most=2 * MOST_RESULT) if with_results else None
        #: The last state of each server and office: an event may repeat it.
        self._last: BoundedDict[tuple[type, str], tuple[object, ...]] = BoundedDict(1000)
        #: The ids of the stories to which pending decisions belong.
        self._about: BoundedDict[str, str] = BoundedDict(10_000)

    def computer(self, outcome: str, name: str) -> None:
        """The Computer with this name has `started` or `stopped`."""
        said = body_text({"name": name, "version": __version__, "process": os.getpid()})
        self._writer.add(lambda at: RecordRow(at, "computer", outcome=outcome, body=said))

    def rule_counts(self) -> dict[str, tuple[int, float]]:
        """How often each rule decided in earlier runs, and when last. Blocking."""
        return rule_counts(self._writer.file, before=self._began)

    def call_started(self, call: LoggedCall) -> None:
        self._writer.add(running_row, call, self._redact_arguments)

    def call_ended(self, call: LoggedCall, result: "CallToolResult") -> None:
        sent = None if call.sent is None else call.sent.text
        # Until the row is made, it keeps the whole result, as an object and as text.
        size = 1000 + call.size + (weight_of_content(result, _LARGE) if sent is None else 2 * len(sent))
        self._writer.add(call_row, call, result, sent, self._redact_arguments, self._redact_result, size=size)

    def read(self, done: ReadDone, how: HowDecided) -> None:
        """An agent has read something, or was refused. Call it from the event loop."""
        loop = asyncio.get_running_loop()
        if (row := self._reads.read(done, how, loop.time())) is not None:
            self._writer.add(read_row, row, self._redact)
        if self._next_rows is None:
            self._next_rows = loop.call_later(ROW_SECONDS, self._reads_due)

    async def read_begins(self, done: ReadDone, how: HowDecided) -> None:
        """An agent is about to read this, and the record is required. Raises as `written` does."""
        if not self._reads.knows(done):
            self._writer.add(read_row, ReadRow(done._replace(outcome="begun"), 1, how), self._redact)
            await self.written()
        elif self._writer.problem:
            raise _unrecorded(self._writer.problem)

    async def written(self) -> None:
        """Wait until the file has everything that happened so far. Raises `InternalError` with the reason why it has
        not.
        """
        loop = asyncio.get_running_loop()
        told: asyncio.Future[str] = loop.create_future()

        def tell(problem: str) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(lambda: None if told.done() else told.set_result(problem))

        self._writer.when_written(tell)
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                problem = await told
        except TimeoutError:
            problem = f"it was not written within {_WRITE_SECONDS:g} s"
        if problem:
            raise _unrecorded(problem)

    def _reads_due(self) -> None:
        loop = asyncio.get_running_loop()
        for row in self._reads.due(loop.time()):
            self._writer.add(read_row, row, self._redact)
        # Rows of reads that began in between come up to half a minute later.
        self._next_rows = loop.call_later(ROW_SECONDS / 2, self._reads_due) if len(self._reads) else None

    def put(self, number: int, event: ComputerEvent, size: int) -> None:
        """Take an event of the Computer."""
        about = ""
        match event:
            case ServerStatus():
                if self._repeats((ServerStatus, event.server), (event.state, event.reason)):
                    return
            case OfficeStatus():
                if self._repeats((OfficeStatus, event.id), (event.state, event.office, event.reason)):
                    return
            case DecisionAsked(decision=decision):
                self._about.put(decision.id, about_of(decision))
            case DecisionDecided(decision_id=decision_id):
                about = self._about.get(decision_id) or ""
        self._writer.add(event_row, event, about, self._redact)

    async def aclose(self) -> None:
        """Write what waits, in bounded time. What happens later is still recorded."""
        if self._next_rows is not None:
            self._next_rows.cancel()
            self._next_rows = None
        for row in self._reads.rest():
            self._writer.add(read_row, row, self._redact)
        await asyncio.to_thread(self._writer.close)

    def _repeats(self, key: tuple[type, str], state: tuple[object, ...]) -> bool:
        if self._last.get(key) == state:
            return True
        self._last.put(key, state)
        return False
