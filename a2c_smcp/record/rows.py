"""The rows of a record, their canonical form, and the chain of their hashes. Pure.

The hash of a row is the SHA-256 of the hash before it and of the row's canonical form. So a row cannot be changed or
removed, unless every later hash is changed, too.
"""

import hashlib
import json
from typing import Any, Final, NamedTuple, Self

import orjson

from a2c_smcp.utils.text import well_formed

__all__ = [
    "BEGUN",
    "COLUMNS",
    "FORM",
    "LOST",
    "NO_HASH",
    "REMOVED",
    "ChainHead",
    "RecordRow",
    "StoredRow",
    "body_text",
    "chained",
]

#: The version of the canonical form. Each row names its form, so that later versions can check old rows.
FORM: Final = 1
#: What stands in the place of the hash before the first row.
NO_HASH: Final = bytes(32)

#: The kinds of rows that the record itself writes: its first row; retention has removed the oldest rows; rows could
#: not be written.
BEGUN: Final = "begun"
REMOVED: Final = "removed"
LOST: Final = "lost"


class RecordRow(NamedTuple):
    """One thing that happened. A text is empty if it does not apply."""

    at: int
    """Microseconds since 1970, by the clock of the machine, which may jump."""
    kind: str
    about: str = ""
    """The id of the call, decision or session that it belongs to: rows with the same id tell one story."""
    office: str = ""
    agent: str = ""
    """Who did it. At a server, the name of the member, which may be a computer."""
    server: str = ""
    """The MCP server. At a server, the computer that was called."""
    tool: str = ""
    outcome: str = ""
    how: str = ""
    """What decided it: a value of `DecidedBy`."""
    code: int | None = None
    digest: bytes | None = None
    """The SHA-256 of the result."""
    body: str = "{}"
    """What only rows of this kind have, as a JSON object."""

    def well_formed(self) -> "RecordRow":
        """The row as a database can keep it: peers may send characters that no UTF-8 can carry."""
        fixed: list[Any] = [well_formed(value) if isinstance(value, str) else value for value in self]
        return RecordRow(*fixed)


#: The columns of a row, in the order of its canonical form.
COLUMNS: Final = RecordRow._fields


class ChainHead(NamedTuple):
    """The number and the hash of a row."""

    number: int = 0
    hash: bytes = NO_HASH

    def __str__(self) -> str:
        return f"{self.number}:{self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The head that `str` has made. Raises `ValueError`."""
        number, _, digest = text.strip().partition(":")
        head = cls(int(number), bytes.fromhex(digest))
        if head.number < 0 or len(head.hash) != len(NO_HASH):
            raise ValueError(text)
        return head


class StoredRow(NamedTuple):
    """A row in the file."""

    number: int
    row: RecordRow
    hash: bytes
    form: int = FORM

    @property
    def body(self) -> dict[str, Any]:
        """The body as an object; empty if somebody has written something else there."""
        try:
            found = orjson.loads(self.row.body)
        except (ValueError, TypeError):
            return {}
        return found if isinstance(found, dict) else {}


def chained(before: ChainHead, row: RecordRow) -> ChainHead:
    """The number and the hash of a row that follows. Raises `TypeError` for a row that has other types than ours."""
    number = before.number + 1
    return ChainHead(number, hashlib.sha256(before.hash + _canonical(number, row)).digest())


def _canonical(number: int, row: RecordRow) -> bytes:
    *names, code, digest, body = row
    return orjson.dumps([FORM, number, *names, code, None if digest is None else digest.hex(), body])


def body_text(value: dict[str, Any]) -> str:
    """A body as text. Fields without a value are left out."""
    said = {name: item for name, item in value.items() if item is not None}
    try:
        return orjson.dumps(said).decode()
    except TypeError:  # an integer over 64 bits, or characters that no UTF-8 can carry
        return json.dumps(said, default=str, separators=(",", ":"))
