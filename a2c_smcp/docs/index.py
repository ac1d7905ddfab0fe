"""What is known of a folder's files, and the words in them: one SQLite database a folder, in the user's cache.

Blocking. Several processes may share it. A text is kept once, as it is; the full-text index beside it holds only the
words, Chinese as pairs of characters. What is broken is thrown away and made again: all of it comes from the files.
"""

import hashlib
import json
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from a2c_smcp.docs.walking import FoundFile
from a2c_smcp.docs.words import as_indexed, as_query, snippet

__all__ = ["Hit", "Index", "cache_folder"]

logger = logging.getLogger(__name__)

#: Another number means that formats, paging or words are no longer what they were: everything is read again.
_VERSION: Final = 1
_SCHEMA: Final = """
    CREATE TABLE files(
        id INTEGER PRIMARY KEY, path BLOB UNIQUE NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
        facts TEXT, indexed INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE parts(
        id INTEGER PRIMARY KEY, file INTEGER NOT NULL, page INTEGER NOT NULL, number INTEGER NOT NULL,
        text TEXT NOT NULL);
    CREATE INDEX parts_of ON parts(file);
    CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61');
"""


@dataclass(frozen=True, slots=True)
class Hit:
    """An element that a query found."""

    path: str
    page: int
    number: int
    snippet: str
    rank: float
    """The smaller the better."""


def cache_folder() -> Path:
    """Where the user's caches are."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "a2c-smcp" / "docs"


P = ParamSpec("P")
R = TypeVar("R")


def _mended(method: "Callable[Concatenate[Index, P], R]") -> "Callable[Concatenate[Index, P], R]":
    """Do it once more on a new database if the old one is broken."""

    def run(index: "Index", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with index.lock:
            try:
                return method(index, *args, **kwargs)
            except sqlite3.OperationalError as error:
                if not _is_broken(error):
                    raise
                broken: sqlite3.DatabaseError = error
            except sqlite3.DatabaseError as error:
                broken = error
            logger.warning("the index %s is made again: %s", index.path, broken)
            index.start_again()
            return method(index, *args, **kwargs)

    return run


def _is_broken(error: sqlite3.OperationalError) -> bool:
    """Whether the database itself is broken; another process that is writing is no such case."""
    text = str(error)
    return any(word in text for word in ("no such table", "no such column", "malformed", "disk I/O", "vtable"))


class Index:
    """The database of one folder. Its methods may be called from any thread."""

    def __init__(self, root: str, folder: Path | None) -> None:
        """`folder` is where the database is kept; `None` keeps it in memory."""
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:20]
        self.path = ":memory:" if folder is None else str(folder / f"{name}.sqlite")
        self.lock = threading.RLock()
        self.rebuilt = 0
        """How often it was thrown away."""
        if folder is not None:
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                logger.warning("the index is kept in memory: %s", error)
                self.path = ":memory:"
        try:
            self._database = self._opened()
        except sqlite3.DatabaseError as error:
            logger.warning("the index %s is made again: %s", self.path, error)
            self._remove()
            try:
                self._database = self._opened()
            except sqlite3.Error as still:
                logger.warning("the index is kept in memory: %s", still)
                self.path = ":memory:"
                self._database = self._opened()

    def _opened(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=20.0, isolation_level=None, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode = WAL").fetchall()
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("BEGIN IMMEDIATE")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version != _VERSION:
                for table in ("words", "parts", "files"):
                    database.execute(f"DROP TABLE IF EXISTS {table}")
                for statement in _SCHEMA.split(";"):
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {_VERSION}")
            database.execute("COMMIT")
        except BaseException:
            database.close()
            raise
        return database

    def _remove(self) -> None:
        self.rebuilt += 1
        if self.path != ":memory:":
            for suffix in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.unlink(self.path + suffix)

    def start_again(self) -> None:
        """Throw everything away."""
        with suppress(sqlite3.Error):
            self._database.close()
        self._remove()
        self._database = self._opened()

    def close(self) -> None:
        with self.lock:
            self._database.close()

    # --- what is known of files

    @_mended
    def known(self, files: Mapping[str, FoundFile]) -> dict[str, dict[str, Any] | None]:
        """What was said of those files that are still the same. `None` stands for a file that is no document."""
        rows = self._database.execute("SELECT path, size, mtime_ns, facts FROM files")
        return {
            found.path: json.loads(facts) if facts else None
            for path, size, mtime_ns, facts in rows
            if (found := files.get(os.fsdecode(path))) is not None and found.version == (size, mtime_ns)
        }

    @_mended
    def remember(self, described: Iterable[tuple[FoundFile, dict[str, Any] | None]]) -> None:
        """Keep what was said of files; their old words go."""
        with self._change():
            for file, facts in described:
                self._forget_one(file.path)
                self._database.execute(
                    "INSERT INTO files(path, size, mtime_ns, facts) VALUES(?, ?, ?, ?)",
                    (os.fsencode(file.path), file.size, file.mtime_ns, None if facts is None else json.dumps(facts)),
                )

    @_mended
    def forget_others(self, paths: Iterable[str]) -> None:
        """Forget every file that is not among these."""
        kept = {os.fsencode(path) for path in paths}
        with self._change():
            gone = [path for (path,) in self._database.execute("SELECT path FROM files") if path not in kept]
            for path in gone:
                self._forget_one(os.fsdecode(path))

    def _forget_one(self, path: str) -> None:
        row = self._database.execute("SELECT id FROM files WHERE path = ?", (os.fsencode(path),)).fetchone()
        if row is None:
            return
        self._forget_words(row[0])
        self._database.execute("DELETE FROM files WHERE id = ?", row)

    def _forget_words(self, file: int) -> None:
        # An index that keeps no text has to be told what it was.
        for part, text in self._database.execute("SELECT id, text FROM parts WHERE file = ?", (file,)).fetchall():
            self._database.execute(
                "INSERT INTO words(words, rowid, text) VALUES('delete', ?, ?)", (part, as_indexed(text))
            )
        self._database.execute("DELETE FROM parts WHERE file = ?", (file,))

    # --- words

    @_mended
    def without_words(self) -> set[str]:
        """Documents that are known, and whose words are not in the index."""
        rows = self._database.execute("SELECT path FROM files WHERE indexed = 0 AND facts IS NOT NULL")
        return {os.fsdecode(path) for (path,) in rows}

    @_mended
    def add_words(self, file: FoundFile, texts: Sequence[tuple[int, int, str]]) -> bool:
        """Put the words of a whole document into the index: page, number and text of each element.

        False if the file has changed meanwhile, or another process was faster.
        """
        with self._change():
            row = self._database.execute(
                "SELECT id FROM files WHERE path = ? AND size = ? AND mtime_ns = ? AND indexed = 0",
                (os.fsencode(file.path), file.size, file.mtime_ns),
            ).fetchone()
            if row is None:
                return False
            for page, number, text in texts:
                part = self._database.execute(
                    "INSERT INTO parts(file, page, number, text) VALUES(?, ?, ?, ?)", (row[0], page, number, text)
                ).lastrowid
                self._database.execute("INSERT INTO words(rowid, text) VALUES(?, ?)", (part, as_indexed(text)))
            self._database.execute("UPDATE files SET indexed = 1 WHERE id = ?", row)
            return True

    @_mended
    def search(self, query: str, most: int) -> list[Hit]:
        """Elements that hold all words of a query; where there is none, those that hold any of them. Best first."""
        for any_term in (False, True):
            if wanted := as_query(query, any_term=any_term):
                rows = self._database.execute(
                    """SELECT files.path, page, number, parts.text, rank FROM words
                    JOIN parts ON parts.id = words.rowid JOIN files ON files.id = parts.file
                    WHERE words MATCH ? ORDER BY rank LIMIT ?""",
                    (wanted, most),
                ).fetchall()
                if rows:
                    return [
                        Hit(os.fsdecode(path), page, number, snippet(text, query), rank)
                        for path, page, number, text, rank in rows
                    ]
        return []

    @contextmanager
    def _change(self) -> Iterator[None]:
        """All of it, or nothing."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")
