"""Tells the record what happens on a Computer. It returns at once: rows are made in the writer's thread."""

import asyncio
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

from a2c_smcp import __version__
from a2c_smcp.computer.calls.log import LoggedCall, weight_of_content
from a2c_smcp.computer.recording.call_rows import MOST_RESULT, call_row, running_row
from a2c_smcp.computer.recording.event_rows import RECORDED, about_of, event_row
from a2c_smcp.computer.redaction import Redaction
from a2c_smcp.computer.watching.events import (
    ComputerEvent,
    DecisionAsked,
    DecisionDecided,
    OfficeStatus,
    ServerStatus,
)
from a2c_smcp.record.reading import rule_counts
from a2c_smcp.record.rows import RecordRow, body_text
from a2c_smcp.record.writer import RecordWriter
from a2c_smcp.utils.bounded import BoundedDict

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["Recorder"]

#: Above so many bytes the size of a result need not be exact.
_LARGE: Final = 2**24


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
    """Reads the events of a Computer, and is told of its calls. With `with_results`, results are recorded, too."""

    kinds: Final = _all_kinds()

    def __init__(self, writer: RecordWriter, redaction: Redaction, *, with_results: bool = False) -> None:
        self._writer = writer
        self._began = time.time()
        self._redact = redaction
        self._redact_content = partial(redaction, most=2 * MOST_RESULT)  # it is cut to its size later
        self._with_results = with_results
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
        self._writer.add(running_row, call, self._redact)

    def call_ended(self, call: LoggedCall, result: "CallToolResult") -> None:
        # Until the row is made, it keeps the whole result.
        size = 1000 + call.size + weight_of_content(result, _LARGE)
        self._writer.add(call_row, call, result, self._redact_content, self._with_results, size=size)

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
        await asyncio.to_thread(self._writer.close)

    def _repeats(self, key: tuple[type, str], state: tuple[object, ...]) -> bool:
        if self._last.get(key) == state:
            return True
        self._last.put(key, state)
        return False
