"""Rows of the record of a server: who came, joined and left, and who called which tool. Pure.

A server reads envelopes only, so a row never has contents.
"""

from typing import Any, Final

from a2c_smcp.record.rows import RecordRow, body_text
from a2c_smcp.server.call_tally import ToolName
from a2c_smcp.server.session_record import SessionRecord

__all__ = ["head_row", "relayed_row", "session_row", "told_of"]

#: Characters of a text of a peer that are kept.
_LONGEST: Final = 256
_LARGEST_CODE: Final = 99_999


def session_row(at: int, kind: str, sid: str, told: dict[str, Any], outcome: str = "") -> RecordRow:
    """Somebody came (`connect`), joined an office (`join`) or left one (`leave`). `told` is what `told_of` has said of
    the session at that moment.
    """
    names = {"office": told.pop("office"), "agent": told.pop("name")}
    return RecordRow(at, kind, sid, **names, outcome=outcome[:_LONGEST], body=body_text(told))


def head_row(at: int, sid: str, told: dict[str, Any], head: str) -> RecordRow:
    """The newest row of a computer's own record, as the computer says."""
    return session_row(at, "head", sid, {**told, "head": head})


def told_of(record: SessionRecord) -> dict[str, Any]:
    """Who a session is. Its record changes later, so this is taken at once."""
    return {
        "office": record.office,
        "name": record.name,
        "role": record.role,
        "key": record.grant.name,
        "subject": record.grant.subject,
        "bound": record.grant.bound,
        "address": record.address,
        "version": record.version or None,
    }


def relayed_row(
    at: int,
    session: tuple[str, dict[str, Any]],
    name: ToolName,
    req_id: str,
    end: tuple[str, float, int | None],
) -> RecordRow:
    """A tool call was answered, or failed, after these seconds and with this code."""
    sid, told = session
    outcome, seconds, code = end
    said = {"req_id": req_id[:_LONGEST], "seconds": round(seconds, 6), "key": told["key"], "address": told["address"]}
    names = (name.office, told["name"], name.computer, name.tool)
    known = code if code is None or abs(code) <= _LARGEST_CODE else None  # a computer may send any number
    return RecordRow(at, "call", sid, *names, outcome=outcome, code=known, body=body_text(said))
