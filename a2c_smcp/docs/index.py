"""What is known of a folder's files, and the words in them: one SQLite database a folder, in the user's cache.

Blocking. Several processes may share it. Each page is a row of the full-text index: the words of the file's path, the
title of the document, and the text of the page, as stems, with Chinese as pairs of characters. A row of its own has the
name, the title and the summary of the document. Words that were read from the picture of a page (OCR) are another row
of that page, with the engine that read them. The texts themselves are kept once, by element. The vocabulary holds
the words as they are spelled, for queries with a typo.

A broken database is thrown away and made again: all of it comes from the files. A database that cannot be written to,
on a full disk for example, is left as it is: `problem` says what is wrong until a change has worked again.
"""

import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from a2c_smcp.docs.queries import Query, Term, match_expression
from a2c_smcp.docs.served import RecognisedWords
from a2c_smcp.docs.walking import FoundFile
from a2c_smcp.docs.words import (
    as_indexed,
    best_text,
    has_phrase,
    is_one_edit_away,
    name_words,
    query_term,
    snippet,
    spelled_words,
)
from a2c_smcp.utils.text import well_formed

__all__ = ["Found", "Hit", "Index", "PageTexts", "cache_folder", "private_folder"]

logger = logging.getLogger(__name__)

PageTexts = Sequence[tuple[int, str]] | None
"""The texts of a page with the numbers of their elements; `None` for a page that could not be read."""

#: Another number means that formats, paging or words are no longer what they were: everything is read again.
_VERSION: Final = 3
_MEMORY: Final = ":memory:"
_ABOUT: Final = -1
"""The number of the row that stands for the document itself, in the place of a page."""
_TABLES: Final = ("words", "parts", "pages", "vocabulary", "files")
_SCHEMA: Final = """
    CREATE TABLE files(
        id INTEGER PRIMARY KEY, path BLOB UNIQUE NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
        facts TEXT, tried_under TEXT, tried_at REAL, next_page INTEGER NOT NULL DEFAULT 0,
        missed INTEGER NOT NULL DEFAULT 0, indexed INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX unfinished ON files(path, next_page) WHERE indexed = 0 AND facts IS NOT NULL;
    CREATE TABLE pages(id INTEGER PRIMARY KEY, file INTEGER NOT NULL, page INTEGER NOT NULL, engine TEXT);
    CREATE INDEX pages_of ON pages(file);
    CREATE TABLE parts(page INTEGER NOT NULL, number INTEGER NOT NULL, text TEXT NOT NULL);
    CREATE INDEX parts_of ON parts(page);
    CREATE TABLE vocabulary(
        letters INTEGER NOT NULL, word TEXT NOT NULL, backwards TEXT NOT NULL, pages INTEGER NOT NULL,
        PRIMARY KEY(letters, word)) WITHOUT ROWID;
    CREATE INDEX backwards_of ON vocabulary(letters, backwards);
    CREATE VIRTUAL TABLE words USING fts5(
        name, title, text, content='', tokenize='porter unicode61 remove_diacritics 2');
"""


@dataclass(frozen=True, slots=True)
class _Ranking:
    """How places are ordered, and how many are looked at."""

    enough: int = 3  # documents; if fewer have all words, some that have any of them follow

    name: float = 5.0  # what a word in the path counts, beside 1 for a word in the text
    title: float = 4.0
    each: int = 3  # places of one document, before those of other documents
    most_looked_at: int = 5000  # pages that may have a phrase
    near: int = 8  # words that are searched in the place of one that is misspelled
    shortest: int = 4  # letters of a word that may be misspelled


_RANKING: Final = _Ranking()
_TRY_AGAIN_SECONDS: Final = 86_400.0
"""A file that a worker died of is tried again after a day: perhaps the machine was busy."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A place that a query found."""

    path: str
    page: int
    number: int | None
    """Of the element; `None` if it is the document's name or title that was found."""
    snippet: str
    rank: float
    """The smaller the better."""
    whole: bool = True
    """Whether the page has all words of the query."""
    engine: str | None = None
    """What read the words from a picture (OCR); `None` if they are text in the file."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found in one folder."""

    hits: tuple[Hit, ...] = ()
    corrected: Mapping[str, tuple[str, ...]] | None = None
    """Words that are nowhere in the index, and those that were searched in their place."""
    cut: bool = False
    """Whether there were more pages with the words of a phrase than were looked at."""


def cache_folder() -> Path:
    """Where the user's caches are."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "a2c-smcp" / "docs"


P = ParamSpec("P")
R = TypeVar("R")


def _mended(
    otherwise: Callable[[], R],
) -> "Callable[[Callable[Concatenate[Index, P], R]], Callable[Concatenate[Index, P], R]]":
    """Do it once more on a new database if the old one is broken. `otherwise` is the answer if that does not work."""

    def decorate(method: "Callable[Concatenate[Index, P], R]") -> "Callable[Concatenate[Index, P], R]":
        def run(index: "Index", /, *args: P.args, **kwargs: P.kwargs) -> R:
            with index.lock:
                try:
                    try:
                        answer = method(index, *args, **kwargs)
                    except sqlite3.DatabaseError as error:
                        if not _is_broken(error):
                            raise
                        logger.warning("the index %s is made again: %s", index.path, error)
                        index.start_again()
                        answer = method(index, *args, **kwargs)
                except (sqlite3.Error, OSError) as error:
                    index.note_problem(method.__name__, error)
                    return otherwise()
                index.note_success(method.__name__)
                return answer

        return run

    return decorate


def _is_broken(error: sqlite3.DatabaseError) -> bool:
    """Whether the database itself is broken. A full disk, or another process that is writing, is no such case."""
    if not isinstance(error, sqlite3.OperationalError):
        return True
    return any(word in str(error) for word in ("no such table", "no such column", "malformed", "vtable"))


def _no_page() -> int | None:
    return None


def _no_words() -> RecognisedWords | None:
    return None


class Index:
    """The database of one folder. Its methods may be called from any thread."""

    def __init__(self, root: str, folder: Path | None) -> None:
        """`folder` is where the database is kept, in a folder of its own; `None` keeps it in memory."""
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:20]
        self.lock = threading.RLock()
        self.rebuilt = 0
        """How often it was thrown away."""
        self.problem: str | None = None
        """Why something could not be kept or looked up, until it works again."""
        self._failed = ""
        self.path = _MEMORY
        if folder is not None:
            try:
                self.path = str(private_folder(folder, "index") / f"{name}.sqlite")
            except OSError as error:
                self._in_memory(error)
        try:
            self._database = self._opened()
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, sqlite3.DatabaseError) and _is_broken(error):
                logger.warning("the index %s is made again: %s", self.path, error)
                self._remove()
            try:
                self._database = self._opened()
            except (sqlite3.Error, OSError) as still:
                self._in_memory(still)
                self._database = self._opened()

    def _in_memory(self, error: Exception) -> None:
        logger.warning("the index is kept in memory, and made again at the next start: %s", error)
        self.path = _MEMORY

    def _opened(self) -> sqlite3.Connection:
        if self.path != _MEMORY:
            # SQLite gives the files beside it the same mode.
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.fchmod(handle, 0o600)
            finally:
                os.close(handle)
        database = sqlite3.connect(self.path, timeout=20.0, isolation_level=None, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode = WAL").fetchall()
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("BEGIN IMMEDIATE")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version != _VERSION:
                for table in _TABLES:
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
        if self.path != _MEMORY:
            for suffix in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.unlink(self.path + suffix)

    def start_again(self) -> None:
        """Throw everything away."""
        with suppress(sqlite3.Error):
            self._database.close()
        self._remove()
        self._database = self._opened()

    def note_problem(self, doing: str, error: Exception) -> None:
        """Say once what is wrong, and remember it for the answers of searches."""
        said = f"the index {self.path} cannot be used: {error}"
        if self.problem != said:
            logger.warning("%s", said)
        self.problem, self._failed = said, doing

    def note_success(self, doing: str) -> None:
        """What did not work before works now."""
        if self.problem is not None and self._failed == doing:
            logger.warning("the index %s can be used again", self.path)
            self.problem = None

    def close(self) -> None:
        with self.lock:
            self._database.close()

    # --- what is known of files

    @_mended(dict[str, dict[str, Any] | None])
    def known(self, files: Mapping[str, FoundFile], under: str = "") -> dict[str, dict[str, Any] | None]:
        """What was said of those files that are still the same. `None` stands for a file that is no document.

        A file that a worker died of under these limits is among them for a day: it is not tried at every start.
        """
        rows = self._database.execute("SELECT path, size, mtime_ns, facts, tried_under, tried_at FROM files")
        now = time.time()
        return {
            found.path: json.loads(facts) if facts else None
            for path, size, mtime_ns, facts, tried_under, tried_at in rows
            if (found := files.get(os.fsdecode(path))) is not None
            and found.version == (size, mtime_ns)
            and (tried_under is None or (tried_under == under and 0 <= now - tried_at < _TRY_AGAIN_SECONDS))
        }

    @_mended(lambda: False)
    def remember(self, described: Iterable[tuple[FoundFile, dict[str, Any] | None]], under: str | None = None) -> bool:
        """Keep what was said of files; their old words go. False if nothing could be written.

        `under` names the limits that a worker died under.
        """
        with self._change():
            for file, facts in described:
                self._forget_one(file.path)
                row = self._database.execute(
                    "INSERT INTO files(path, size, mtime_ns, facts, tried_under, tried_at) VALUES(?, ?, ?, ?, ?, ?)",
                    (
                        os.fsencode(file.path),
                        file.size,
                        file.mtime_ns,
                        None if facts is None else json.dumps(facts),
                        under,
                        None if under is None else time.time(),
                    ),
                ).lastrowid
                if facts is not None and row is not None:
                    about = f"{facts['summary']}\n{' '.join(facts['keywords'])}"
                    self._add_page(row, _ABOUT, file.path, facts["title"], _Prepared.of([(0, well_formed(about))]))
        return True

    @_mended(lambda: None)
    def forget_others(self, paths: Iterable[str]) -> None:
        """Forget every file that is not among these."""
        kept = {os.fsencode(path) for path in paths}
        with self._change():
            gone = [path for (path,) in self._database.execute("SELECT path FROM files") if path not in kept]
            for path in gone:
                self._forget_one(os.fsdecode(path))

    def _forget_one(self, path: str) -> None:
        row = self._database.execute("SELECT id, facts FROM files WHERE path = ?", (os.fsencode(path),)).fetchone()
        if row is None:
            return
        file, facts = row
        title = json.loads(facts)["title"] if facts else ""
        for (page,) in self._database.execute("SELECT id FROM pages WHERE file = ?", (file,)).fetchall():
            texts = self._database.execute("SELECT number, text FROM parts WHERE page = ?", (page,)).fetchall()
            prepared = _Prepared.of(texts)
            name, head = _head(path, title)
            # An index that keeps no text has to be told what it was.
            self._database.execute(
                "INSERT INTO words(words, rowid, name, title, text) VALUES('delete', ?, ?, ?, ?)",
                (page, name, head, prepared.indexed),
            )
            self._count_words(prepared.words | spelled_words(f"{name} {head}"), -1)
            self._database.execute("DELETE FROM parts WHERE page = ?", (page,))
        self._database.execute("DELETE FROM pages WHERE file = ?", (file,))
        self._database.execute("DELETE FROM files WHERE id = ?", (file,))

    # --- words

    @_mended(dict[str, int])
    def unfinished(self) -> dict[str, int]:
        """Documents whose words are not all in the index, with the first page that is missing."""
        rows = self._database.execute("SELECT path, next_page FROM files WHERE indexed = 0 AND facts IS NOT NULL")
        return {os.fsdecode(path): page for path, page in rows}

    @_mended(dict[str, int])
    def missed(self) -> dict[str, int]:
        """Documents with pages that could not be read, and how many."""
        rows = self._database.execute("SELECT path, missed FROM files WHERE missed > 0")
        return {os.fsdecode(path): count for path, count in rows}

    def add_pages(self, file: FoundFile, first: int, pages: Sequence[PageTexts], *, last: bool) -> int | None:
        """Put the words of some pages into the index, and return which page comes next.

        That is another page if another process was faster. `None` if the file is no longer the same, or if nothing
        could be written: then `problem` says why. `last` is whether the document has no further pages.
        """
        # Finding the words takes longer than writing them. A search need not wait for that.
        return self._add_prepared(file, first, [_Prepared.of(texts) if texts else texts for texts in pages], last)

    @_mended(_no_page)
    def _add_prepared(
        self, file: FoundFile, first: int, pages: "Sequence[_Prepared | PageTexts]", last: bool
    ) -> int | None:
        with self._change():
            row = self._database.execute(
                "SELECT id, next_page, facts FROM files WHERE path = ? AND size = ? AND mtime_ns = ? AND indexed = 0",
                (os.fsencode(file.path), file.size, file.mtime_ns),
            ).fetchone()
            if row is None:
                return None
            number, next_page, facts = row
            if next_page != first:
                return int(next_page)
            title = json.loads(facts)["title"]
            for page, prepared in enumerate(pages, first):
                if isinstance(prepared, _Prepared):
                    self._add_page(number, page, file.path, title, prepared)
            missed = sum(texts is None for texts in pages)
            self._database.execute(
                "UPDATE files SET next_page = ?, missed = missed + ?, indexed = ? WHERE id = ?",
                (first + len(pages), missed, last, number),
            )
            return first + len(pages)

    @_mended(lambda: False)
    def add_recognised(self, file: FoundFile, page: int, number: int, words: RecognisedWords) -> bool:
        """Keep the words that were read from the picture of a page, as the element with this number. They go with the
        file. False if they were not kept: the file has changed, has such words already, or nothing can be written.
        """
        prepared = _Prepared.of([(number, well_formed("\n".join(words.lines)))])
        with self._change():
            if self._recognised(file, page) is not None:
                return False
            row = self._database.execute(
                "SELECT id, facts FROM files WHERE path = ? AND size = ? AND mtime_ns = ? AND facts IS NOT NULL",
                (os.fsencode(file.path), file.size, file.mtime_ns),
            ).fetchone()
            if row is None:
                return False
            title = json.loads(row[1])["title"]
            self._add_page(row[0], page, file.path, title, prepared, words.engine)
        return True

    @_mended(_no_words)
    def recognised(self, file: FoundFile, page: int) -> RecognisedWords | None:
        """The words that were read from the picture of a page, if they are kept."""
        return self._recognised(file, page)

    def _recognised(self, file: FoundFile, page: int) -> RecognisedWords | None:
        row = self._database.execute(
            """SELECT pages.engine, parts.text FROM files JOIN pages ON pages.file = files.id
            JOIN parts ON parts.page = pages.id
            WHERE path = ? AND size = ? AND mtime_ns = ? AND pages.page = ? AND engine IS NOT NULL""",
            (os.fsencode(file.path), file.size, file.mtime_ns, page),
        ).fetchone()
        return None if row is None else RecognisedWords(row[0], tuple(row[1].split("\n")))

    def _add_page(
        self, file: int, page: int, path: str, title: str, prepared: "_Prepared", engine: str | None = None
    ) -> None:
        row = self._database.execute(
            "INSERT INTO pages(file, page, engine) VALUES(?, ?, ?)", (file, page, engine)
        ).lastrowid
        self._database.executemany(
            "INSERT INTO parts(page, number, text) VALUES(?, ?, ?)",
            [(row, number, text) for number, text in prepared.texts],
        )
        name, head = _head(path, title)
        self._database.execute(
            "INSERT INTO words(rowid, name, title, text) VALUES(?, ?, ?, ?)", (row, name, head, prepared.indexed)
        )
        self._count_words(prepared.words | spelled_words(f"{name} {head}"), 1)

    def _count_words(self, words: Set[str], by: int) -> None:
        self._database.executemany(
            """INSERT INTO vocabulary(letters, word, backwards, pages) VALUES(?, ?, ?, ?)
            ON CONFLICT(letters, word) DO UPDATE SET pages = pages + excluded.pages""",
            [(len(word), word, word[::-1], by) for word in words],
        )
        if by < 0:
            self._database.executemany(
                "DELETE FROM vocabulary WHERE letters = ? AND word = ? AND pages <= 0",
                [(len(word), word) for word in words],
            )

    # --- searching

    @_mended(Found)
    def search(self, query: Query, most: int) -> Found:
        """The places that have all words of a query, best first. If these are few, some that have any word follow."""
        files = self._wanted(query) if query.filters else None
        if not query.words and not query.phrases:
            return Found(tuple(self._by_filters(files or {}, most)))
        terms = tuple(self._spelled(word) for word in query.words)
        corrected = {term.word: term.instead for term in terms if term.instead}
        hits, cut = self._places(match_expression(terms, query.phrases), query, terms, files, most)
        with_all = {hit.path for hit in hits}
        if len(with_all) < _RANKING.enough and len(terms) + len(query.phrases) > 1:
            # A phrase is never left out. With a phrase and one word, the phrase alone is enough.
            some = match_expression(terms if len(terms) > 1 else (), query.phrases, any_term=True)
            others, cut_too = self._places(some, query, terms, files, most)
            partly = [replace(hit, whole=False) for hit in others if hit.path not in with_all]
            room = _RANKING.enough - len(with_all) if hits else most
            more = list(dict.fromkeys(hit.path for hit in partly))[:room]
            hits = [*hits, *(hit for hit in partly if hit.path in more)][:most]
            cut = cut or cut_too
        return Found(tuple(hits), corrected, cut)

    def _places(
        self, wanted: str, query: Query, terms: Sequence[Term], files: Mapping[int, str] | None, most: int
    ) -> tuple[list[Hit], bool]:
        rows = self._database.execute(
            f"""SELECT pages.id, pages.file, pages.page, pages.engine, bm25(words, ?, ?, 1.0) AS score FROM words
            JOIN pages ON pages.id = words.rowid
            WHERE words MATCH ? {"" if files is None else "AND pages.file IN (SELECT value FROM json_each(?))"}
            ORDER BY score, pages.id LIMIT ?""",
            (
                _RANKING.name,
                _RANKING.title,
                wanted,
                *(() if files is None else (json.dumps(list(files)),)),
                _RANKING.most_looked_at + 1,
            ),
        )
        words = [word for term in terms for word in term.instead or (term.word,)]
        hits: list[Hit] = []
        later: list[Hit] = []
        by_name: dict[int, int] = {}  # documents that were found by their names, and the numbers of those hits
        per_file: Counter[int] = Counter()
        looked_at = 0
        for row, file, page, engine, score in rows:
            looked_at += 1
            if looked_at > _RANKING.most_looked_at or len(hits) >= most:
                break
            many = per_file[file] >= _RANKING.each
            if (many and len(later) >= most) or (page == _ABOUT and per_file[file]):
                continue
            if (hit := self._hit(row, file, page, score, words, query.phrases)) is None:
                continue
            hit = replace(hit, engine=engine)
            if page == _ABOUT:
                by_name[file] = len(hits)
                hits.append(hit)
            elif file in by_name:
                # The page says more than the name does, and stands where the name stood.
                at = by_name.pop(file)
                hits[at] = replace(hit, rank=hits[at].rank)
                per_file[file] += 1
            else:
                (later if many else hits).append(hit)
                per_file[file] += 1
        cut = bool(query.phrases) and looked_at > _RANKING.most_looked_at
        return [*hits, *later][:most], cut

    def _hit(
        self, row: int, file: int, page: int, score: float, words: Sequence[str], phrases: Sequence[str]
    ) -> Hit | None:
        """A page as a place; `None` if a phrase only seemed to be there."""
        path, facts = self._database.execute("SELECT path, facts FROM files WHERE id = ?", (file,)).fetchone()
        about = f"{_shown(os.fsdecode(path))}\n{json.loads(facts)['title']}"
        found = self._database.execute("SELECT number, text FROM parts WHERE page = ? ORDER BY rowid", (row,))
        numbers, texts = zip(*found.fetchall(), strict=True)
        if phrases:
            text = " ".join(texts)
            if not all(has_phrase(text, phrase) or has_phrase(about, phrase) for phrase in phrases):
                return None
        best = best_text(texts, words, phrases)
        shown = snippet(texts[best], [*words, *phrases])
        number = None if page == _ABOUT else numbers[best]
        return Hit(os.fsdecode(path), max(0, page), number, shown, score)

    def _wanted(self, query: Query) -> dict[int, str]:
        """The files that a query's filters let through."""
        rows = self._database.execute(
            "SELECT id, path, size, mtime_ns FROM files WHERE facts IS NOT NULL ORDER BY path"
        )
        return {
            number: os.fsdecode(path)
            for number, path, size, mtime_ns in rows
            if query.wants(FoundFile(os.fsdecode(path), size, mtime_ns))
        }

    def _by_filters(self, files: Mapping[int, str], most: int) -> Iterator[Hit]:
        for number, path in list(files.items())[:most]:
            (facts,) = self._database.execute("SELECT facts FROM files WHERE id = ?", (number,)).fetchone()
            yield Hit(path, 0, None, snippet(json.loads(facts)["summary"], ()), 0.0)

    def _spelled(self, word: str) -> Term:
        """A word as it is searched: with the words that are one letter away, if it is nowhere in the index."""
        found = self._database.execute("SELECT 1 FROM words WHERE words MATCH ? LIMIT 1", (query_term(word),))
        if found.fetchone() is not None:
            return Term(word)
        folded = next(iter(spelled_words(word)), "")
        return Term(word, tuple(self._near(folded))) if len(folded) >= _RANKING.shortest else Term(word)

    def _near(self, word: str) -> list[str]:
        """The words within one edit, the most frequent first.

        One edit leaves the first half of a word as it is, or the second half; only two letters that changed places may
        stand in both. So only words that begin or end alike are compared.
        """
        half = len(word) // 2
        begins, ends = word[:half], word[half:][::-1]
        swapped = f"{word[: half - 1]}{word[half]}{word[half - 1]}{word[half + 1 :]}"
        letters = (len(word) - 1, len(word), len(word) + 1)
        rows = self._database.execute(
            """SELECT word, pages FROM vocabulary WHERE letters IN (?, ?, ?) AND word >= ? AND word < ?
            UNION SELECT word, pages FROM vocabulary WHERE letters IN (?, ?, ?) AND backwards >= ? AND backwards < ?
            UNION SELECT word, pages FROM vocabulary WHERE letters = ? AND word = ?""",
            (*letters, begins, f"{begins}\U0010ffff", *letters, ends, f"{ends}\U0010ffff", len(word), swapped),
        )
        found = [(-pages, near) for near, pages in rows if is_one_edit_away(word, near)]
        return [near for _, near in sorted(found)[: _RANKING.near]]

    @contextmanager
    def _change(self) -> Iterator[None]:
        """All of it, or nothing."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
            raise


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The texts of a page, and what the index makes of them."""

    texts: Sequence[tuple[int, str]]
    indexed: str
    words: frozenset[str]

    @classmethod
    def of(cls, texts: Sequence[tuple[int, str]]) -> "_Prepared":
        text = "\n".join(text for _, text in texts)
        return cls(texts, as_indexed(text), frozenset(spelled_words(text)))


def _head(path: str, title: str) -> tuple[str, str]:
    """The name and the title as the index has them."""
    return as_indexed(name_words(_shown(path))), as_indexed(well_formed(title))


def _shown(path: str) -> str:
    """A path as text. The name of a file may have bytes that are not text."""
    return well_formed(path)


def private_folder(folder: Path, name: str) -> Path:
    """A folder in `folder` that only this user can look into. Raises `OSError` if there cannot be one."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    private = folder / name
    with suppress(FileExistsError):
        private.mkdir(mode=0o700)
    handle = os.open(private, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_uid != os.getuid():
            raise PermissionError(f"{private} belongs to somebody else")
        os.fchmod(handle, 0o700)
    finally:
        os.close(handle)
    return private
