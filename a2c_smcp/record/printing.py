"""Rows of a record as people and programs read them: a table, a story, JSON and CSV. Pure."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from a2c_smcp.record.rows import DIGESTS, StoredRow
from a2c_smcp.utils.text import cut

__all__ = ["CSV_COLUMNS", "as_csv", "as_json", "as_table", "row_title", "story_lines", "time_of"]

#: A program for tables would run a cell that begins so as a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
#: Fields of a body that have a column of their own in CSV.
_OF_BODY: Final = (
    "req_id",
    "place",
    "rule",
    "seconds",
    "bytes",
    "arguments",
    "reason",
    "key",
    "claimed",
    "what",
    "uri",
    "count",
)
CSV_COLUMNS: Final = (
    *("number", "time", "kind", "about", "office", "agent", "server", "tool", "outcome", "code", "how"),
    *(*_OF_BODY, *DIGESTS.values()),
)


def as_json(stored: StoredRow) -> dict[str, Any]:
    """A row for programs."""
    row = stored.row
    named = {
        name: value for name, value in row._asdict().items() if value not in ("", None) and name not in _OTHER_NAMES
    }
    digest = {} if row.digest is None else {stored.digest_name: _hex(row.digest)}
    return {
        "number": stored.number,
        "time": time_of(row.at, UTC).isoformat(),
        **named,
        **stored.body,
        **digest,
        "hash": _hex(stored.hash),
    }


_OTHER_NAMES: Final = frozenset({"at", "digest", "body"})


def _hex(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def time_of(at: int, zone: tzinfo | None) -> datetime:
    """The time of a row. A time that no calendar has becomes its beginning: somebody may have changed the file."""
    try:
        return datetime.fromtimestamp(at / 1_000_000, zone)
    except (OverflowError, ValueError, OSError, TypeError):
        return datetime.fromtimestamp(0, zone)


def as_csv(rows: Iterable[StoredRow]) -> Iterator[str]:
    """Lines of CSV, the names of the columns first. No cell can be run as a formula."""
    yield _csv_line(CSV_COLUMNS)
    for stored in rows:
        found = as_json(stored)
        yield _csv_line([_cell(found.get(name)) for name in CSV_COLUMNS])


def _csv_line(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return str(value).lower()
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(_FORMULA) else text


def as_table(rows: Iterable[StoredRow], zone: tzinfo | None) -> list[list[str]]:
    """The rows for a table: when, what, who, and how it ended. The caller makes the words of others harmless."""
    table = [["NUMBER", "TIME", "WHAT", "AGENT", "OUTCOME", "DECIDED", "ID"]]
    for stored in rows:
        row, body = stored.row, stored.body
        outcome = f"{row.outcome} {row.code}" if row.code is not None else row.outcome
        if isinstance(seconds := body.get("seconds"), int | float):
            outcome = f"{outcome} {seconds:.3f} s"
        if isinstance(count := body.get("count"), int) and count > 1:
            outcome = f"{outcome} × {count}"
        by = body.get("rule") or body.get("place")
        decided = f"{row.how} {by}" if row.how and by else row.how
        when = time_of(row.at, zone).strftime("%Y-%m-%d %H:%M:%S")
        who = "/".join(filter(None, (row.agent, row.office)))
        who = f"says it is {who}" if body.get("claimed") is True else who
        table.append([str(stored.number), when, cut(row_title(stored), 60), cut(who, 60), outcome, decided, row.about])
    return table


def row_title(stored: StoredRow) -> str:
    """What a row is about, in a few words."""
    row = stored.row
    about = "/".join(filter(None, (row.server, row.tool)))
    if row.kind == "read":
        what = f"{stored.body.get('what', '')} {stored.body.get('uri') or stored.body.get('name') or ''}"
        about = f"{row.server}/{what}" if row.server else what
    return f"{row.kind} {about}".rstrip()


def story_lines(stored: StoredRow, zone: tzinfo | None) -> Iterator[str]:
    """One row whole: a line for each field. The caller makes the words of others harmless."""
    when = time_of(stored.row.at, zone).isoformat(sep=" ", timespec="milliseconds")
    yield f"{stored.number}  {when}  {row_title(stored)}"
    for name, value in as_json(stored).items():
        if name not in _IN_TITLE:
            yield f"    {name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


_IN_TITLE: Final = frozenset({"number", "time", "kind", "server", "tool"})
