"""What somebody looks for in a record, as a value and as SQL. Pure."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

__all__ = ["HAS_WORD", "RecordQuery", "has_word", "moment", "where"]

_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
#: The columns in which words are looked for.
_NAMES: Final = ("about", "office", "agent", "server", "tool", "outcome")
#: Whether a row has letters beyond ASCII.
_OTHER_LETTERS: Final = " OR ".join(
    f"length({column}) <> length(CAST({column} AS BLOB))" for column in ("body", "office", "agent", "server", "tool")
)
#: The name of `has_word` in SQL.
HAS_WORD: Final = "a2c_has_word"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordQuery:
    """What a row must have to be found. An empty field sets no condition."""

    words: tuple[str, ...] = ()
    """Each of these stands somewhere in the row, in upper or lower case."""
    since: int | None = None
    """Microseconds since 1970."""
    until: int | None = None
    agent: str = ""
    """Names may have `*` and `?`."""
    tool: str = ""
    office: str = ""
    outcome: str = ""
    kind: str = ""
    how: tuple[str, ...] = ()
    """One of these."""
    about: str = ""
    req_id: str = ""
    before: int | None = None
    """Only rows with a smaller number."""
    after: int | None = None
    """Only rows with a larger number."""


def where(query: RecordQuery) -> tuple[str, list[Any]]:
    """The condition of a query, and its parameters."""
    parts: list[str] = []
    given: list[Any] = []

    def need(condition: str, *values: Any) -> None:
        parts.append(condition)
        given.extend(values)

    if query.before is not None:
        need("number < ?", query.before)
    if query.after is not None:
        need("number > ?", query.after)
    if query.since is not None:
        need("at >= ?", query.since)
    if query.until is not None:
        need("at < ?", query.until)
    for column in ("kind", "outcome", "about"):
        if value := getattr(query, column):
            need(f"{column} = ?", value)
    for column in ("agent", "tool", "office"):
        if value := getattr(query, column):
            need(f"{column} GLOB ?", value)
    if query.how:
        need(f"how IN ({', '.join('?' * len(query.how))})", *query.how)
    if query.req_id:
        need("instr(body, ?) > 0", f'"req_id":{_quoted(query.req_id)}')
    for word in query.words:
        folded = word.casefold()
        anywhere = [f"{column} LIKE ? ESCAPE '\\'" for column in (*_NAMES, "body")]
        values = [*[_like(folded)] * len(_NAMES), _like(_quoted(folded)[1:-1])]
        if not folded.isascii():
            anywhere, values = [], []
        if not word.isascii():
            # LIKE knows the two cases of ASCII only. Rows without any other letter need not be looked at.
            anywhere.append(f"(({_OTHER_LETTERS}) AND {HAS_WORD}(?, ?, {', '.join(_NAMES)}, body))")
            values += [folded, _quoted(folded)[1:-1]]
        need(f"({' OR '.join(anywhere)})", *values)
    return " AND ".join(parts) or "1", given


def has_word(folded: str, quoted: str, *texts: str) -> bool:
    """Whether a casefolded word stands in one of these texts. The last one is JSON, where the word is `quoted`."""
    *names, body = texts
    return any(folded in name.casefold() for name in names) or quoted in body.casefold()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _like(word: str) -> str:
    escaped = re.sub(r"([\\%_])", r"\\\1", word)
    return f"%{escaped}%"


def moment(text: str, now: datetime) -> int:
    """A moment that a person types, in microseconds since 1970: `90m`, `2d`, `today`, `yesterday`, or a date in ISO
    8601, by the time zone of `now` if it names none. Raises `ValueError`.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if ago := _AGO.fullmatch(text.strip()):
        found = now - timedelta(**{_UNITS[ago[2]]: float(ago[1])})
    elif text == "today":
        found = midnight
    elif text == "yesterday":
        found = midnight - timedelta(days=1)
    else:
        found = datetime.fromisoformat(text.strip())
        found = found.replace(tzinfo=now.tzinfo) if found.tzinfo is None else found
    return int(found.astimezone(UTC).timestamp() * 1_000_000)
