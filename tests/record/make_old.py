"""Made `form-1.sql`, the record of a release before form 2, with the code of that release.

Run it where `a2c_smcp.record.rows.FORM` is 1: `python make_old.py > form-1.sql`.
"""

import sqlite3
import sys
import tempfile
from pathlib import Path

from a2c_smcp.record.retention import Retention
from a2c_smcp.record.rows import RecordRow, body_text
from a2c_smcp.record.writer import RecordPace, RecordWriter


def call(at: int, number: int) -> RecordRow:
    said = {"req_id": f"{number:032x}", "arguments": {"path": f"/notes/{number}.md"}, "rule": "r", "seconds": 0.01}
    names = (f"abcd1234-{number}", "lab", "ada", "files", "read", "succeeded", "rule")
    return RecordRow(1_700_000_000_000_000 + number, "call", *names, digest=bytes(range(32)), body=body_text(said))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "r.sqlite"
        for keep, first in ((Retention(days=0, bytes=0, spare=0), 1), (Retention(days=0, bytes=14_000, spare=0), 21)):
            writer = RecordWriter(file, keep, RecordPace(gather=0.2, look_rows=1))
            for number in range(first, first + 20):
                writer.add(call, number)
            writer.add(
                lambda at: RecordRow(
                    at,
                    "call",
                    "umlaut",
                    agent='Jörg "x"',
                    tool="send",
                    outcome="failed",
                    code=4005,
                    body='{"reason":"Äpfel\\n"}',
                )
            )
            writer.close(60)
        connection = sqlite3.connect(file)
        sys.stdout.write("\n".join([*connection.iterdump(), "PRAGMA user_version = 1;", ""]))
        connection.close()


if __name__ == "__main__":
    main()
