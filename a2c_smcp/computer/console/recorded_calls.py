"""Calls of the record, as the page shows calls: yesterday's, and those that the memory has forgotten. Blocking.

A recorded call has no result, only its size and digest, unless results are recorded. What agents have read is shown in
the same way. Several rows may be about the same reads, so such a row has an id with its own number.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from a2c_smcp.computer.console.call_search import CallQuery
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.decisions.shown_text import as_text, text_start, visible
from a2c_smcp.computer.recording.call_rows import CALL
from a2c_smcp.computer.recording.read_rows import READ
from a2c_smcp.record.printing import as_json
from a2c_smcp.record.queries import RecordQuery
from a2c_smcp.record.reading import RecordReader, reading
from a2c_smcp.record.rows import StoredRow

__all__ = ["export_recorded", "recorded_calls", "recorded_result", "recorded_view", "story_of"]

_PAGE: Final = 200
#: Begins the id of a row about reads.
_ROW: Final = "row-"
_READ_FIELDS: Final = ("uri", "name", "count")
#: Rows of one story that a page shows.
_LONGEST_STORY: Final = 100


def recorded_calls(
    file: Path, query: CallQuery, before: str | None, known: Callable[[str], bool]
) -> Iterator[StoredRow]:
    """The recorded calls that match, newest first, without those that are `known` from memory. With `before`, the id
    of a recorded call, those that ended before that call. Raises `RecordFileError`.
    """
    number: int | None = None
    if before is not None:
        with reading(file) as reader:
            row = _row_of(reader, before)
        if row is None:
            return
        number = row.number
    while True:
        # The file is not held while a page reads: each piece is read at once.
        with reading(file) as reader:
            found = reader.newest(_as_query(query, number), _PAGE)
        yield from (row for row in found if not known(row.row.about))
        if len(found) < _PAGE:
            return
        number = found[-1].number


def _row_of(reader: RecordReader, call_id: str) -> StoredRow | None:
    """The row of a call or of a read that a page knows by this id."""
    if (number := call_id.removeprefix(_ROW)) != call_id:
        stored = reader.number(int(number[:18])) if number.isascii() and number.isdigit() else None
        return stored if stored is not None and stored.row.kind == READ else None
    found = reader.newest(RecordQuery(kind=CALL, about=call_id), 1)
    return found[0] if found else None


def _as_query(query: CallQuery, before: int | None) -> RecordQuery:
    return RecordQuery(
        kind=READ if query.reads else CALL,
        words=query.words,
        outcome=query.outcome,
        how=("person",) if query.by_person else (),
        req_id=query.req_id,
        since=None if query.since is None else int(query.since * 1e6),
        until=None if query.until is None else int(query.until * 1e6),
        before=before,
    )


def recorded_view(stored: StoredRow, most: int | None = CONSOLE_LIMITS.preview_characters) -> dict[str, Any]:
    """A recorded call with the fields of one in memory, and what the record knows of its result."""
    row, body = stored.row, stored.body
    if is_read := row.kind == READ:
        body = {
            **body,
            "name": f"read {body.get('what', '')}",
            "arguments": {key: body[key] for key in _READ_FIELDS if key in body},
        }
    given = body.get("arguments", {})
    arguments, cut = (as_text(given), False) if most is None else text_start(given, most)
    place, cancelled_by = body.get("place"), body.get("cancelled_by")
    said = body.get("seconds")
    seconds = float(said) if isinstance(said, int | float) else 0.0
    return {
        "id": f"{_ROW}{stored.number}" if is_read else row.about,
        "req_id": str(body.get("req_id", "")),
        "agent": visible(row.agent) or None,
        "claimed": row.agent != "" and body.get("claimed") is not False,  # releases before wrote down claims only
        "server": row.server or None,
        "tool": visible(row.tool or str(body.get("name", ""))),
        "name": str(body.get("name") or row.tool),
        "arguments": arguments,
        "cut": cut,
        "timeout": body.get("timeout"),
        "started_at": row.at / 1e6 - seconds,
        "duration": seconds,
        "ok": row.outcome == "succeeded",
        "code": row.code,
        "outcome": row.outcome,
        "verdict": _verdict(row.outcome, place, cancelled_by),
        "decided_by": cancelled_by or place,
        "rule": body.get("rule") if row.how == "rule" else None,
        "text": visible(str(body.get("reason", ""))),
        "recorded": {
            "bytes": body.get("bytes"),
            "reads": body.get("count") if is_read else None,
            "digest": f"{stored.digest_name} {row.digest.hex()}" if isinstance(row.digest, bytes) else None,
        },
    }


def _verdict(outcome: str, place: str | None, cancelled_by: str | None) -> str | None:
    if cancelled_by:
        return "cancelled" if outcome == "cancelled" else None
    if not place:
        return None
    return "refused" if outcome == "refused" else "allowed"


def export_recorded(stored: StoredRow) -> dict[str, Any]:
    """A recorded call for programs."""
    return as_json(stored)


def recorded_result(file: Path, call_id: str) -> dict[str, Any] | None:
    """A recorded call with all of its arguments, and with its result if that is recorded; `None` if it is unknown."""
    with reading(file) as reader:
        found = _row_of(reader, call_id)
    if found is None:
        return None
    result = found.body.get("result")
    content = [{"type": "text", "text": as_text(result)}] if result is not None else []
    return {**recorded_view(found, None), "content": content, "structured": None}


def story_of(file: Path, call_id: str) -> list[dict[str, Any]]:
    """What happened to one call, oldest first."""
    with reading(file) as reader:
        row = _row_of(reader, call_id) if call_id.startswith(_ROW) else None
        about = call_id if row is None else row.row.about
        rows = islice(reader.all(RecordQuery(about=about)), _LONGEST_STORY)
        return [_step(stored) for stored in rows]


def _step(stored: StoredRow) -> dict[str, Any]:
    row, body = stored.row, stored.body
    told = {name: visible(str(body[name])) for name in ("what", "rule", "message", "reason") if body.get(name)}
    return {
        "number": stored.number,
        "at": row.at / 1e6,
        "kind": row.kind,
        "outcome": row.outcome,
        "how": row.how,
        "place": body.get("place"),
        "always": body.get("always") is True,
        "count": body.get("count"),
        **told,
    }
