"""What agents read, as rows of the record: the first read of an agent and a window or document, then a row a minute
with the count. Pure: the time is passed in.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.calls.log import HowDecided, digest_of
from a2c_smcp.computer.recording.call_rows import vouched
from a2c_smcp.record.rows import RecordRow, body_text
from a2c_smcp.utils.text import cut

__all__ = ["MOST_COUNTED", "READ", "ROW_SECONDS", "ReadCounts", "ReadDone", "ReadRow", "read_row", "story_of_read"]

#: The kind of these rows.
READ: Final = "read"
#: The least time between two rows about the same reads.
ROW_SECONDS: Final = 60.0
#: How many reads that differ are counted one by one. All others of an agent share a count.
MOST_COUNTED: Final = 2000
_MOST_OTHERS: Final = 64
_OTHERS: Final = "others"
_LONGEST: Final = 1000


class ReadDone(NamedTuple):
    """A read that has ended. Reads for which this is the same share a row."""

    asker: Asker
    kind: str
    server: str
    name: str
    """The URI of the whole window or document, or a name."""
    outcome: str
    code: int | None = None


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A row that is to be written: so many reads, of which the last was decided like this."""

    done: ReadDone
    count: int
    how: HowDecided


@dataclass(slots=True)
class _Counted:
    rows_at: float
    """When the last row was made."""
    count: int
    how: HowDecided


class ReadCounts:
    """Counts reads. `read` returns the row of a first read, `due` those of the minute that has passed."""

    def __init__(self, most: int = MOST_COUNTED) -> None:
        self._most = most
        self._counted: dict[ReadDone, _Counted] = {}

    def __len__(self) -> int:
        return len(self._counted)

    def knows(self, done: ReadDone) -> bool:
        """Whether the record has a row about such reads, not long ago."""
        return done in self._counted

    def read(self, done: ReadDone, how: HowDecided, now: float) -> ReadRow | None:
        """Count a read. Returns the row to write now; `None` if a later row will count it."""
        counted = self._counted.get(done)
        if counted is None and len(self._counted) >= self._most:
            done = self._shared(done)
            counted = self._counted.get(done)
        if counted is None:
            self._counted[done] = _Counted(now, 0, how)
            return ReadRow(done, 1, how)
        counted.count += 1
        counted.how = how
        return None

    def _shared(self, done: ReadDone) -> ReadDone:
        """What counts reads for which there is no room of their own."""
        of_agent = ReadDone(done.asker, _OTHERS, "", "", done.outcome)
        if of_agent in self._counted or len(self._counted) < self._most + _MOST_OTHERS:
            return of_agent
        return ReadDone(Asker(""), _OTHERS, "", "", "")

    def due(self, now: float) -> Iterator[ReadRow]:
        """The rows whose minute has passed. What was not read in that minute is forgotten: its next read is a first
        one.
        """
        for done, counted in list(self._counted.items()):
            if now - counted.rows_at < ROW_SECONDS:
                continue
            if not counted.count:
                del self._counted[done]
                continue
            yield ReadRow(done, counted.count, counted.how)
            counted.rows_at, counted.count = now, 0

    def rest(self) -> Iterator[ReadRow]:
        """The rows of everything that is counted and not written. Then nothing is counted any more."""
        counts, self._counted = self._counted, {}
        for done, counted in counts.items():
            if counted.count:
                yield ReadRow(done, counted.count, counted.how)


def story_of_read(asker: Asker, kind: str, server: str, name: str) -> str:
    """The id of all rows about an agent and a window or document."""
    return f"read-{digest_of([asker.office, asker.name, asker.bound, kind, server, name])[:12]}"


def read_row(at: int, row: ReadRow, redact: Callable[[str], str]) -> RecordRow:
    """`redact` takes the known secrets out of a text."""
    done, how = row.done, row.how
    asker = done.asker
    is_decided = how.rule is not None or how.place is not None
    said = {
        "what": done.kind,
        "uri" if "://" in done.name else "name": cut(redact(done.name), _LONGEST) or None,
        "count": row.count,
        "place": how.place,
        "rule": how.rule,
        **(vouched(asker) if asker.name else {}),
    }
    about = story_of_read(asker, done.kind, done.server, done.name)
    names = (about, asker.office, asker.name, done.server, "", done.outcome, how.by if is_decided else "")
    return RecordRow(at, READ, *names, code=done.code, body=body_text(said))
