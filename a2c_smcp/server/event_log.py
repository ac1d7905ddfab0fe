"""What happens to sessions, as log lines with fields: connect, join, leave, calls. Refusals are in `boundary`.

A line names office, session and key, so that a log collector can follow each of them. It never has contents.
"""

import logging
from typing import Final

from a2c_smcp.server.call_tally import ToolName
from a2c_smcp.server.session_record import SessionRecord
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.log_fields import with_fields
from a2c_smcp.utils.text import in_log, req_id_in_log

__all__ = ["EventLog", "session_fields"]

logger = logging.getLogger(__name__)

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

    def connected(self, sid: str, record: SessionRecord) -> None:
        words = "connected: session %s from %s, key %s"
        self._write(record, words, sid, record.address, in_log(record.grant.name), event="connect", sid=sid)

    def joined(self, sid: str, record: SessionRecord) -> None:
        words = "joined office %s: %s %s, session %s, key %s"
        place = in_log(record.office), record.role, in_log(record.name)
        self._write(record, words, *place, sid, in_log(record.grant.name), event="join", sid=sid)

    def left(self, sid: str, record: SessionRecord, reason: str) -> None:
        """A session has left its office, or has ended."""
        if record.office:
            words = "left office %s: %s %s, session %s: %s"
            place: tuple[object, ...] = in_log(record.office), record.role, in_log(record.name)
        else:
            words, place = "disconnected: session %s: %s", ()
        self._write(record, words, *place, sid, in_log(reason), event="leave", sid=sid, reason=in_log(reason))

    def called(
        self, client: tuple[str, SessionRecord], name: ToolName, request: object, end: tuple[str, float]
    ) -> None:
        """A tool call of a client has ended in this way, after these seconds. It is for debugging, so the number of
        these lines is not limited.
        """
        if not logger.isEnabledFor(logging.DEBUG):
            return
        tool, computer, req_id = in_log(name.tool), in_log(name.computer), req_id_in_log(request)
        outcome, seconds = end
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

    def _write(self, record: SessionRecord, words: str, *args: object, sid: str, **fields: object) -> None:
        peer = f"clients with the key {in_log(record.grant.name)} at {record.address}"
        if logger.isEnabledFor(logging.INFO) and self._of_one.allows(peer):
            self._of_all.log(logging.INFO, "clients", words, *args, fields={**fields, **session_fields(sid, record)})
