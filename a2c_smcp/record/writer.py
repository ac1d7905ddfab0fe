"""Writes a record from a thread of its own: in batches, and without ever holding up those who add rows.

What is added is in the file within a tenth of a second, and survives the death of the process from then on. If the file
cannot be written, rows wait in memory. When too many wait, the oldest are given up, which the log says at once and the
record says later. A row that no file can hold is given up, too: it must not keep the others waiting. Several processes
may write the same file: each batch continues the chain where the file ends.
"""

import logging
import os
import secrets
import shutil
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from a2c_smcp import __version__
from a2c_smcp.record.checking import removed_in_all
from a2c_smcp.record.retention import FileState, Removal, Retention, to_remove
from a2c_smcp.record.rows import BEGUN, FORM, LOST, REMOVED, ChainHead, RecordRow, body_text, chained
from a2c_smcp.record.schema import (
    MOST_INSERTED,
    SELECTED,
    RecordFileError,
    base_of,
    head_of,
    inserting,
    open_for_writing,
    stored,
)

__all__ = ["RecordPace", "RecordWriter"]

logger = logging.getLogger(__name__)

#: Makes a row, in the writer's thread, of the time and of the arguments with which it was added. `None` makes no row.
RowMaker: TypeAlias = Callable[..., RecordRow | None]
#: The time, what makes the row of what, and about how many bytes that keeps.
_Added: TypeAlias = tuple[float, RowMaker, tuple[Any, ...], int]
#: Is told, in the writer's thread, that the file has all rows that were added before it; or why it has not.
WhenWritten: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RecordPace:
    """How often a record is written, and how much waits for it."""

    gather: float = 0.05
    """Seconds for which rows are gathered into one batch."""
    retry: float = 1.0
    """Seconds until the next attempt after one has failed."""
    waiting: int = 20_000
    """Rows that wait while the file cannot be written."""
    waiting_bytes: int = 64 * 2**20
    """About how many bytes these rows have at most, and what they are made of."""
    look_rows: int = 1000
    """After so many rows, or `look_seconds`, retention looks at the file."""
    look_seconds: float = 600.0
    warn_seconds: float = 60.0
    """The least time between two warnings."""
    removed_at_once: int = 2000
    """Rows that one transaction of the retention removes."""
    removed_when_full: int = 100
    """The same while the file cannot be written: a full disk has no room for a large transaction."""


_DAY: Final = 86_400_000_000  # microseconds
#: About how many bytes Python needs for a row beside its body.
_ROW: Final = 1000
#: What was added is taken in pieces of so many.
_TAKEN: Final = 256
#: What SQLite and its Python module raise for the values of a row, and not for the file.
_UNWRITABLE: Final = (
    *(TypeError, ValueError, OverflowError, AttributeError),
    *(sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError),
)


class RecordWriter:
    """`add` what happens, from any thread; `close` at the end. The thread starts with the first row."""

    def __init__(self, file: Path, keep: Retention | None = None, pace: RecordPace | None = None) -> None:
        self.file = file
        self._keep = keep or Retention()
        self._pace = pace = pace or RecordPace()
        self._added: deque[_Added] = deque()
        self._added_bytes = 0
        self._dropped = 0
        #: For what threads add, which the writer's thread takes.
        self._adding = threading.Lock()
        self._rows: deque[RecordRow] = deque()
        self._bytes = 0
        self._lost = 0
        self._waiters: list[WhenWritten] = []
        """Those who wait for the rows that wait now."""
        self._hurry = threading.Event()
        """Set if somebody waits: then rows are not gathered."""
        self.problem = ""
        """Why the file cannot be written now; empty if the last attempt worked."""
        self._wake = threading.Event()
        self._is_awake = False
        self._is_ending = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._since_look = pace.look_rows  # the first batch looks
        self._looked = 0.0
        self._warned = -pace.warn_seconds
        self._is_failing = False

    def add(self, make: RowMaker, *args: Any, size: int = _ROW) -> None:
        """Add the row that `make(at, *args)` returns. Called in the writer's thread; `at` is the time now in
        microseconds. `size` is about how many bytes the arguments keep in memory.
        """
        pace = self._pace
        with self._adding:
            self._added.append((time.time(), make, args, size))
            self._added_bytes += size
            while len(self._added) > 2 * pace.waiting or (
                self._added_bytes > pace.waiting_bytes and len(self._added) > 1
            ):
                _, dropped, args, bytes_ = self._added.popleft()
                self._added_bytes -= bytes_
                if dropped is _waits:
                    args[0]("too many rows wait for it")
                else:
                    self._dropped += 1
        if not self._is_awake:
            self._is_awake = True
            self._wake.set()
            if self._thread is None:
                self._start()

    def when_written(self, told: WhenWritten) -> None:
        """Call `told` once: with an empty text when the file has every row that was added before, or with the reason
        why it has not. In the writer's thread, without the pause for gathering.
        """
        self.add(_waits, told)
        self._hurry.set()

    def close(self, timeout: float = 5.0) -> None:
        """Write what waits and end the thread, in bounded time. Blocking. A row that is added later starts it again."""
        with self._starting:
            thread = self._thread
            if thread is None:
                return
            self._is_ending = True
            self._wake.set()
            self._hurry.set()
        thread.join(timeout)
        if thread.is_alive():
            logger.warning("the record %s was not written to its end in time", self.file)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._is_ending = False
                self._thread = threading.Thread(target=self._run, name="a2c-record", daemon=True)
                self._thread.start()

    # --- the thread

    def _run(self) -> None:
        try:
            while not self._is_ending:
                self._wake.wait(self._pace.retry if self._rows else None)
                if not self._is_ending:
                    self._hurry.wait(self._pace.gather)
                self._round()
            self._round()
            if self._rows:
                logger.error("%d rows could not be written into the record %s", len(self._rows), self.file)
        finally:
            self._disconnect()
            with self._starting:
                self._thread = None
                self._is_awake = False
            if self._added:  # since the last round
                self._start()

    def _round(self) -> None:
        # Cleared first: what is added from here on wakes the thread again.
        self._wake.clear()
        self._hurry.clear()
        self._is_awake = False
        try:
            is_done = False
            while not is_done and self._make_rows():
                # What was added since then is gathered for the next round.
                is_done = not self._is_full(0)
                if self._is_failing:
                    self._look(self._connected())  # old rows may make room
                self._write()
            self._tell_waiters("")
            if self._connection is not None:
                self._look(self._connection)
        except (OSError, sqlite3.Error, RecordFileError) as error:
            self._disconnect()
            self._warn(error)

    def _make_rows(self) -> bool:
        """Make rows of what was added, and return whether rows wait. While the file cannot be written, the oldest rows
        are given up when there are too many.
        """
        while (self._is_failing or not self._is_full(0)) and (added := self._taken()):
            for at, make, args, _ in added:
                if make is _waits:
                    self._waiters.append(args[0])
                    continue
                try:
                    row = make(int(at * 1e6), *args)
                except Exception:
                    # A boundary: rows are made of what peers send, and one that fails must not end the record.
                    logger.exception("something could not be put into the record %s", self.file)
                    self._lost += 1
                    continue
                if row is not None:
                    self._rows.append(row)
                    self._bytes += len(row.body) + _ROW
                while self._is_failing and self._is_full(1):
                    self._bytes -= len(self._rows.popleft().body) + _ROW
                    self._lost += 1
        with self._adding:
            self._lost, self._dropped = self._lost + self._dropped, 0
        return bool(self._rows)

    def _taken(self) -> list[_Added]:
        with self._adding:
            added = [self._added.popleft() for _ in range(min(len(self._added), _TAKEN))]
            self._added_bytes -= sum([size for *_, size in added])
        return added

    def _is_full(self, more: int) -> bool:
        """Whether as many rows wait as may wait, and so many more."""
        return len(self._rows) >= self._pace.waiting + more or self._bytes > self._pace.waiting_bytes

    def _write(self) -> None:
        """Append all rows that wait, in one transaction."""
        connection = self._connected()
        connection.execute("BEGIN IMMEDIATE")
        try:
            head = head_of(connection)
            rows = list(self._rows)
            if head.number == 0:
                begun = body_text({"id": secrets.token_hex(16), "version": __version__})
                rows.insert(0, RecordRow(rows[0].at, BEGUN, body=begun))
            head, unwritable = _append(connection, head, rows)
            if lost := self._lost + unwritable:
                said = {"rows": lost, "why": self.problem or None}
                _append(connection, head, [RecordRow(_now(), LOST, body=body_text(said))])
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        self._rows.clear()
        self._bytes = self._lost = 0
        self.problem = ""
        self._since_look += len(rows)
        if self._is_failing:
            self._is_failing = False
            logger.warning("the record %s is written again", self.file)

    def _tell_waiters(self, problem: str) -> None:
        waiters, self._waiters = self._waiters, []
        for told in waiters:
            told(problem)

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_for_writing(self.file)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _warn(self, error: Exception) -> None:
        # A full disk may have room again when old rows are removed.
        self._since_look = self._pace.look_rows
        self._is_failing = True
        self.problem = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
        self._tell_waiters(self.problem)
        now = time.monotonic()
        if now - self._warned >= self._pace.warn_seconds:
            self._warned = now
            logger.error(
                "the record %s cannot be written: %s; calls go on, and %d rows wait (%d are lost)",
                self.file,
                error,
                len(self._rows),
                self._lost,
            )

    # --- retention

    def _look(self, connection: sqlite3.Connection) -> None:
        """Remove the oldest rows, if it is time to look, and there are too many."""
        now = time.monotonic()
        if self._since_look < self._pace.look_rows and now - self._looked < self._pace.look_seconds:
            return
        self._since_look, self._looked = 0, now
        if (removal := to_remove(self._keep, _state(connection, self.file, self._keep))) is None:
            return
        left = removal.rows
        at_once = self._pace.removed_when_full if self._is_failing else self._pace.removed_at_once
        while left > 0:
            step = min(left, at_once)
            _remove(connection, Removal(step, removal.why))
            left -= step
        log = logger.warning if removal.why == "disk" else logger.info
        log("the record %s: the %d oldest rows were removed (%s)", self.file, removal.rows, removal.why)


def _waits(at: int, told: WhenWritten) -> None:
    """Stands among the rows for somebody who waits for those before it."""


def _append(connection: sqlite3.Connection, head: ChainHead, rows: list[RecordRow]) -> tuple[ChainHead, int]:
    """Append rows, many with one statement. Returns the new head, and how many rows no file can hold."""
    unwritable = begin = 0
    while left := len(rows) - begin:
        count = next(size for size in _PIECES if size <= left)
        piece = rows[begin : begin + count]
        begin += count
        try:
            head = _insert(connection, head, piece)
        except _UNWRITABLE:  # nothing of this statement stays
            head, given_up = _append_each(connection, head, piece)
            unwritable += given_up
    return head, unwritable


#: A statement for each of these is kept, and no other is made.
_PIECES: Final = (MOST_INSERTED, 16, 4, 1)


def _append_each(connection: sqlite3.Connection, head: ChainHead, rows: list[RecordRow]) -> tuple[ChainHead, int]:
    """Append rows of which one at least is odd."""
    unwritable = 0
    for row in rows:
        try:
            try:
                head = _insert(connection, head, [row])
            except (TypeError, UnicodeEncodeError):  # characters that no UTF-8 can carry
                head = _insert(connection, head, [row.well_formed()])
        except _UNWRITABLE:
            logger.exception("a row of the kind %s cannot be written into a record", row.kind)
            unwritable += 1
    return head, unwritable


def _insert(connection: sqlite3.Connection, head: ChainHead, rows: list[RecordRow]) -> ChainHead:
    values: list[object] = []
    for row in rows:
        head = chained(head, row)
        values += (head.number, FORM, *row, head.hash)
    connection.execute(inserting(len(rows)), values)
    return head


def _remove(connection: sqlite3.Connection, removal: Removal) -> None:
    """Remove the oldest rows, and say so in the record. The hash of the last removed row stays."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        base = base_of(connection)
        last = connection.execute(
            "SELECT number, hash FROM rows WHERE number <= ? ORDER BY number DESC LIMIT 1",
            (base.number + removal.rows,),
        ).fetchone()
        head = head_of(connection)
        if last is not None and last[0] < head.number:
            through, before = ChainHead(*last), _removed_before(connection, base)
            connection.execute("UPDATE base SET number = ?, hash = ?", through)
            deleted = connection.execute("DELETE FROM rows WHERE number <= ?", (through.number,)).rowcount
            said = {"through": through.number, "hash": through.hash.hex(), "rows": deleted, "why": removal.why}
            said["in_all"] = {**before, removal.why: before.get(removal.why, 0) + deleted}
            _, unwritable = _append(connection, head, [RecordRow(_now(), REMOVED, body=body_text(said))])
            if unwritable:  # no row is removed unless a row says so
                raise sqlite3.DatabaseError("the row of the retention cannot be written")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _removed_before(connection: sqlite3.Connection, base: ChainHead) -> dict[str, int]:
    """How many rows were removed so far, by the reason. The last row of retention says it: earlier ones may be gone."""
    if not base.number:
        return {}
    select = f"SELECT {SELECTED} FROM rows WHERE kind = ? ORDER BY number DESC LIMIT 1"
    found = connection.execute(select, (REMOVED,)).fetchone()
    return {} if found is None else removed_in_all(stored(found))


def _state(connection: sqlite3.Connection, file: Path, keep: Retention) -> FileState:
    names = "page_size", "page_count", "freelist_count"
    page, pages, unused = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in names)
    base, head = base_of(connection), head_of(connection)
    old = 0
    if keep.days:
        # A clock may have jumped: only rows before the first young one are old.
        oldest = _now() - int(keep.days * _DAY)
        young = connection.execute(
            "SELECT number FROM rows WHERE at >= ? ORDER BY number LIMIT 1", (oldest,)
        ).fetchone()
        old = max(0, (head.number if young is None else young[0] - 1) - base.number)
    free = shutil.disk_usage(os.path.dirname(file.absolute())).free
    return FileState(head.number - base.number, page * (pages - unused), page * unused, free, old)


def _now() -> int:
    return int(time.time() * 1e6)
