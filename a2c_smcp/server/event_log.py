"""What happens to sessions, as log lines with fields: connect, join, leave, calls. Refusals are in `boundary`. With a
`record`, all of it is also recorded.

A line names office, session and key, so that a log collector can follow each of them. It never has contents.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from a2c_smcp.server.call_tally import ToolName
from a2c_smcp.server.record_rows import head_row, relayed_row, session_row, told_of
from a2c_smcp.server.session_record import SessionRecord
from a2c_smcp.smcp import RecordHeadRet
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.log_fields import with_fields
from a2c_smcp.utils.text import in_log, req_id_in_log

if TYPE_CHECKING:
    from a2c_smcp.record.writer import RecordWriter

__all__ = ["CALLS", "EventLog", "session_fields"]

logger = logging.getLogger(__name__)
#: Has a line for each call, at the level DEBUG.
CALLS: Final = logger

#: Lines a second about the clients of one key at one address.
_OF_ONE: Final = 20
#: Lines a second about all of them: ten thousand clients may come or go at one moment.
_OF_ALL: Final = 500


def session_fields(sid: str, record: SessionRecord | None) -> dict[str, object]:
    """The fields of a log line about a session; `None` if the session is not known here."""
    if record is None:
        return {"session": sid}
    return {
        "session": sid,
        "office": record.office,
        "role": record.role,
        "name": record.name,
        "key": record.grant.name,
        "address": record.address,
    }


class EventLog:
    """Writes what happens to sessions. Nobody can flood it."""

    def __init__(self) -> None:
        self._of_one = LimitedLog(logger, per_second=_OF_ONE)
        self._of_all = LimitedLog(logger, per_second=_OF_ALL)
        self.record: RecordWriter | None = None

    def connected(self, sid: str, record: SessionRecord) -> None:
        self._note("connect", sid, record)
        words = "connected: session %s from %s, key %s"
        self._write(record, words, sid, record.address, in_log(record.grant.name), event="connect", sid=sid)

    def joined(self, sid: str, record: SessionRecord) -> None:
        self._note("join", sid, record)
        words = "joined office %s: %s %s, session %s, key %s"
        place = in_log(record.office), record.role, in_log(record.name)
        self._write(record, words, *place, sid, in_log(record.grant.name), event="join", sid=sid)

    def left(self, sid: str, record: SessionRecord, reason: str) -> None:
        """A session has left its office, or has ended."""
        self._note("leave", sid, record, reason)
        if record.office:
            words = "left office %s: %s %s, session %s: %s"
            place: tuple[object, ...] = in_log(record.office), record.role, in_log(record.name)
        else:
            words, place = "disconnected: session %s: %s", ()
        self._write(record, words, *place, sid, in_log(reason), event="leave", sid=sid, reason=in_log(reason))

    def called(
        self, client: tuple[str, SessionRecord], name: ToolName, request: object, end: tuple[str, float, int | None]
    ) -> None:
        """A tool call of a client has ended in this way, after these seconds, and perhaps with a code. The line is for
        debugging, so the number of these lines is not limited.
        """
        if self.record is not None:
            req_id = request.get("req_id") if isinstance(request, Mapping) else None
            session = client[0], told_of(client[1])
            self.record.add(relayed_row, session, name, req_id if isinstance(req_id, str) else "", end)
        if not logger.isEnabledFor(logging.DEBUG):
            return
        tool, computer, req_id = in_log(name.tool), in_log(name.computer), req_id_in_log(request)
        outcome, seconds, _ = end
        fields = {"event": "call", "tool": tool, "computer": computer, "req_id": req_id, "outcome": outcome}
        logger.debug(
            "called %s of %s, req_id %s: %s after %.3f s",
            tool,
            computer,
            req_id,
            outcome,
            seconds,
            extra=with_fields(**fields, seconds=round(seconds, 6), **session_fields(*client)),
        )

    def record_head(self, sid: str, record: SessionRecord, head: str) -> RecordHeadRet:
        """A computer says how far its record goes. Without a record of our own nobody keeps it."""
        if self.record is not None:
            self.record.add(head_row, sid, told_of(record), head)
        return {"kept": self.record is not None}

    def _note(self, kind: str, sid: str, record: SessionRecord, outcome: str = "") -> None:
        if self.record is not None:
            self.record.add(session_row, kind, sid, told_of(record), outcome)

    def _write(self, record: SessionRecord, words: str, *args: object, sid: str, **fields: object) -> None:
        peer = f"clients with the key {in_log(record.grant.name)} at {record.address}"
        if logger.isEnabledFor(logging.INFO) and self._of_one.allows(peer):
            self._of_all.log(logging.INFO, "clients", words, *args, fields={**fields, **session_fields(sid, record)})
