"""Reads a record: its rows by a query, the story of one call, and whether its chain is whole."""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from a2c_smcp.record.checking import ChainReport, check_chain
from a2c_smcp.record.queries import HAS_WORD, RecordQuery, has_word, where
from a2c_smcp.record.rows import ChainHead, StoredRow
from a2c_smcp.record.schema import SELECTED, RecordFileError, base_of, head_of, open_for_reading, stored

__all__ = ["RecordReader", "reading", "rule_counts"]

_PIECE: Final = 500
_LATEST: Final = 1e12


class RecordReader:
    """The rows of one file, as they are now. Blocking; to be used in the thread that made it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.create_function(HAS_WORD, -1, has_word, deterministic=True)

    def newest(self, query: RecordQuery, most: int) -> list[StoredRow]:
        """The newest rows that match, newest first."""
        return list(self._rows(query, "DESC", most))

    def all(self, query: RecordQuery) -> Iterator[StoredRow]:
        """All rows that match, oldest first. They are read in pieces: whoever reads slowly does not hold the file."""
        while rows := list(self._rows(query, "ASC", _PIECE)):
            yield from rows
            query = replace(query, after=rows[-1].number)

    def number(self, number: int) -> StoredRow | None:
        found = self._connection.execute(f"SELECT {SELECTED} FROM rows WHERE number = ?", (number,)).fetchone()
        return None if found is None else stored(found)

    def by_rule(self, before: float = math.inf) -> dict[str, tuple[int, float]]:
        """How many calls each rule has decided, and when the last one ended, in Unix time; of calls that ended `before`
        then. A quarter of a second for 100,000 calls.
        """
        select = (
            "SELECT json_extract(body, '$.rule'), count(*), max(at) FROM rows"
            " WHERE kind = 'call' AND how = 'rule' AND at < ? AND json_valid(body) GROUP BY 1"
        )
        found = self._connection.execute(select, (min(before, _LATEST) * 1e6,))
        return {rule: (count, at / 1e6) for rule, count, at in found if isinstance(rule, str)}

    @property
    def head(self) -> ChainHead:
        return head_of(self._connection)

    def check(self, known: ChainHead | None = None) -> ChainReport:
        """Check the whole chain, as it is at this moment."""
        self._connection.execute("BEGIN")
        try:
            rows = self._connection.execute(f"SELECT {SELECTED} FROM rows ORDER BY number")
            return check_chain(map(stored, rows), base_of(self._connection), known)
        finally:
            self._connection.execute("ROLLBACK")

    def _rows(self, query: RecordQuery, order: str, most: int) -> Iterator[StoredRow]:
        condition, given = where(query)
        select = f"SELECT {SELECTED} FROM rows WHERE {condition} ORDER BY number {order} LIMIT ?"
        return map(stored, self._connection.execute(select, (*given, most)))


@contextmanager
def reading(file: Path) -> Iterator[RecordReader]:
    """Read a record. Raises `RecordFileError`, also for a file that turns out to be broken while it is read."""
    with closing(open_for_reading(file)) as connection:
        try:
            yield RecordReader(connection)
        except sqlite3.Error as error:
            raise RecordFileError(f"{file} cannot be read: {error}") from None


def rule_counts(file: Path, before: float = math.inf) -> dict[str, tuple[int, float]]:
    """How often each rule has decided, as `RecordReader.by_rule` says; nothing if there is no record to be read."""
    try:
        with reading(file) as reader:
            return reader.by_rule(before)
    except RecordFileError:
        return {}
