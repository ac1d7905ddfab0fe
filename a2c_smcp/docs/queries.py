"""What is typed into a search, as a value: words, phrases in quotes, and filters. Pure.

The syntax: `annual report "net income" type:pdf path:2024 after:2024-05-01`. A filter's value may stand in quotes.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

from a2c_smcp.docs.formats import file_type
from a2c_smcp.docs.walking import FoundFile
from a2c_smcp.docs.words import is_common, phrase_expression, query_term, runs_of

__all__ = ["Query", "QueryError", "Term", "match_expression", "parse_query"]

_TOKEN: Final = re.compile(
    r"""(?P<filter>type|path|after):(?:"(?P<quoted>[^"]*)"|(?P<plain>[^\s"]*))
    | "(?P<phrase>[^"]*)"
    | (?P<words>[^\s"]+)""",
    re.VERBOSE | re.IGNORECASE,
)
_DATE: Final = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")


class QueryError(ValueError):
    """A query that cannot be understood. The message is a sentence for its author."""


@dataclass(frozen=True, slots=True)
class Term:
    """A word, and the words that are searched in its place if it is nowhere in the index."""

    word: str
    instead: tuple[str, ...] = ()

    @property
    def expression(self) -> str:
        """As FTS5 has it."""
        found = [query_term(word) for word in self.instead or (self.word,)]
        return found[0] if len(found) == 1 else f"({' OR '.join(found)})"


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for, and in which files."""

    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    types: frozenset[str] = frozenset()
    path: str = ""
    after: float | None = None
    """Only files that were saved at this instant or later: seconds since 1970."""

    @property
    def filters(self) -> bool:
        """Whether only some files are searched."""
        return bool(self.types or self.path or self.after is not None)

    def wants(self, file: FoundFile) -> bool:
        """Whether a file is among those that are searched."""
        if self.types and file_type(file.path).lower() not in self.types:
            return False
        if self.after is not None and file.mtime_ns / 1e9 < self.after:
            return False
        path = file.path.lower()
        return fnmatchcase(path, self.path) if set("*?[") & set(self.path) else self.path in path


def parse_query(text: str) -> Query:
    """Raises `QueryError` for a filter whose value cannot be understood."""
    words: list[str] = []
    phrases: list[str] = []
    types: set[str] = set()
    path = ""
    after: float | None = None
    for token in _TOKEN.finditer(text):
        value = (token["quoted"] or token["plain"] or "").strip().lower()
        match (token["filter"] or "").lower():
            case "type":
                types |= {part.removeprefix(".") for part in value.split(",") if part}
            case "path":
                path = value
            case "after":
                after = _instant(value)
            case _ if token["phrase"] is not None:
                if runs_of(token["phrase"]):
                    phrases.append(token["phrase"])
            case _:
                words += runs_of(token["words"])
    return Query(_to_look_for(words), tuple(phrases), frozenset(types), path, after)


def _to_look_for(words: list[str]) -> tuple[str, ...]:
    """Each word once, without the words that every text has; those too if there are no others."""
    distinct = tuple(dict.fromkeys(word.lower() for word in words))
    return tuple(word for word in distinct if not is_common(word)) or distinct


def _instant(value: str) -> float:
    match = _DATE.fullmatch(value)
    try:
        if match is None:
            raise ValueError
        year, month, day = (int(part or 1) for part in match.groups())
        return datetime(year, month, day, tzinfo=UTC).timestamp()
    except ValueError:
        raise QueryError(f"after: needs a date such as 2024-05-31 or 2024-05, and {value!r} is not one") from None


def match_expression(terms: tuple[Term, ...], phrases: tuple[str, ...], *, any_term: bool = False) -> str:
    """A query of FTS5: every phrase, and all terms or any of them. Empty if there is nothing to look for."""
    wanted = [term.expression for term in terms]
    if any_term and wanted:
        wanted = [f"({' OR '.join(wanted)})"]
    return " AND ".join([*map(phrase_expression, phrases), *wanted])
