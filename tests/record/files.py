"""Records for tests, and what somebody does to them who changes the file."""

import sqlite3
from pathlib import Path

from a2c_smcp.record.checking import ChainReport
from a2c_smcp.record.queries import RecordQuery
from a2c_smcp.record.reading import reading
from a2c_smcp.record.retention import Retention
from a2c_smcp.record.rows import ChainHead, RecordRow, StoredRow, body_text
from a2c_smcp.record.writer import RecordPace, RecordWriter

QUICK = RecordPace(gather=0.001, retry=0.02, look_rows=1_000_000, warn_seconds=0)


def call_row(at: int, number: int) -> RecordRow:
    """A call like many others."""
    arguments = {"path": f"/home/ada/notes/2026/file-{number}.md", "head": 100}
    said = {"req_id": f"{number:032x}", "arguments": arguments, "seconds": 0.0123, "bytes": 1234}
    names = ("lab", f"agent-{number % 7}", "filesystem", "read_text_file", "succeeded", "config")
    return RecordRow(at, "call", f"abcd1234-{number}", *names, digest=bytes(32), body=body_text(said))


def written(file: Path, count: int, keep: Retention | None = None, pace: RecordPace = QUICK) -> Path:
    """A record with so many calls more."""
    writer = RecordWriter(file, keep, pace)
    for number in range(1, count + 1):
        writer.add(call_row, number)
    writer.close(60)
    return file


def rows_of(file: Path, **query: object) -> list[StoredRow]:
    with reading(file) as reader:
        return list(reader.all(RecordQuery(**query)))  # type: ignore[arg-type]


def checked(file: Path, known: ChainHead | None = None) -> ChainReport:
    with reading(file) as reader:
        return reader.check(known)


def head(file: Path) -> ChainHead:
    with reading(file) as reader:
        return reader.head


def changed(file: Path, *statements: str) -> None:
    """Change the file as somebody can who may write it."""
    connection = sqlite3.connect(file, isolation_level=None)
    for trigger in ("rows_stay", "rows_stay_here"):
        connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    for statement in statements:
        connection.execute(statement)
    connection.close()
