"""The file of a record: its tables, their versions, and how it is opened."""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from a2c_smcp.record.rows import COLUMNS, NO_HASH, ChainHead, RecordRow, StoredRow
from a2c_smcp.utils.state_folder import make_private_folder
from a2c_smcp.utils.system import IS_UNIX

__all__ = [
    "MIGRATIONS",
    "MOST_INSERTED",
    "SELECTED",
    "RecordFileError",
    "base_of",
    "head_of",
    "inserting",
    "migrate",
    "open_for_reading",
    "open_for_writing",
    "stored",
]

#: `base` is the last row that retention has removed. The triggers keep programs from changing rows by mistake; whoever
#: changes the file on purpose is found by the hashes.
_FIRST: Final = """
CREATE TABLE rows (
    number INTEGER PRIMARY KEY, form INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, about TEXT NOT NULL,
    office TEXT NOT NULL, agent TEXT NOT NULL, server TEXT NOT NULL, tool TEXT NOT NULL, outcome TEXT NOT NULL,
    how TEXT NOT NULL, code INTEGER, digest BLOB, body TEXT NOT NULL, hash BLOB NOT NULL
);
CREATE TABLE base (number INTEGER NOT NULL, hash BLOB NOT NULL);
CREATE TRIGGER rows_stay BEFORE UPDATE ON rows BEGIN SELECT RAISE(ABORT, 'a record is only appended to'); END;
CREATE TRIGGER rows_stay_here BEFORE DELETE ON rows WHEN old.number > (SELECT max(number) FROM base)
BEGIN SELECT RAISE(ABORT, 'a record is only appended to'); END;
"""

#: The scripts that bring a file from each version to the next one. `PRAGMA user_version` is the version of a file.
MIGRATIONS: Final[tuple[str, ...]] = (_FIRST + f"INSERT INTO base VALUES (0, x'{NO_HASH.hex()}');",)

SELECTED: Final = f"number, form, {', '.join(COLUMNS)}, hash"
#: Rows of one statement. An SQLite of 2019 takes at most 999 values.
MOST_INSERTED: Final = 64
#: Seconds for which a statement waits while another process writes.
_BUSY: Final = 1.0


@cache
def inserting(count: int) -> str:
    """The statement that appends so many rows, or none if one of them cannot be written. It takes less time than a
    statement for each.
    """
    row = f"({', '.join('?' * (len(COLUMNS) + 3))})"
    return f"INSERT INTO rows ({SELECTED}) VALUES {', '.join([row] * count)}"


class RecordFileError(Exception):
    """A file that is no record of ours, or that cannot be read. The message says what to do."""


def open_for_writing(file: Path) -> sqlite3.Connection:
    """Open a record, and make it if it is not there; only its owner may read it.

    Raises `OSError`, `sqlite3.Error` or `RecordFileError`.
    """
    make_private_folder(file.parent)
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
    if IS_UNIX and file.stat().st_mode & 0o077:
        file.chmod(0o600)
    connection = sqlite3.connect(file, timeout=_BUSY, isolation_level=None)
    try:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA journal_size_limit = 4194304")
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_reading(file: Path) -> sqlite3.Connection:
    """Open a record that is there. Raises `RecordFileError`."""
    if not file.is_file():
        raise RecordFileError(f"there is no record at {file}")
    try:
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=10, isolation_level=None)
    except sqlite3.Error as error:
        raise RecordFileError(f"{file} cannot be opened: {error}") from None
    try:
        version = _version(connection)
        connection.execute("SELECT 1 FROM rows LIMIT 1")
    except sqlite3.Error as error:
        connection.close()
        raise RecordFileError(f"{file} is no record, or is broken: {error}") from None
    if version > len(MIGRATIONS):
        connection.close()
        raise _too_new(version)
    return connection


def migrate(connection: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Bring a file to the newest version. Raises `RecordFileError` for a file of a later version than ours."""
    if _version(connection) == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # another process may have been quicker
        if version > len(migrations):
            raise _too_new(version)
        for script in migrations[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> list[str]:
    # `executescript` would commit before it begins.
    statements, rest = [], ""
    for part in script.split(";"):
        rest = f"{rest}{part};"
        if sqlite3.complete_statement(rest) and rest.strip() != ";":
            statements.append(rest)
            rest = ""
    return statements


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _too_new(version: int) -> RecordFileError:
    return RecordFileError(f"the record was written by a later version of this program (its form is {version}); update")


def base_of(connection: sqlite3.Connection) -> ChainHead:
    """The last row that retention has removed."""
    return ChainHead(*connection.execute("SELECT number, hash FROM base ORDER BY number DESC LIMIT 1").fetchone())


def head_of(connection: sqlite3.Connection) -> ChainHead:
    """The newest row; if there is none, the last that was removed."""
    newest = connection.execute("SELECT number, hash FROM rows ORDER BY number DESC LIMIT 1").fetchone()
    return base_of(connection) if newest is None else ChainHead(*newest)


def stored(found: Sequence[object]) -> StoredRow:
    """A row of a `SELECT` of the `SELECTED` columns."""
    number, form, *fields, chain_hash = found
    return StoredRow(number, RecordRow(*fields), chain_hash, form)  # type: ignore[arg-type]  # checked by its hash
