"""The rows of a record, their canonical forms, and the chain of their hashes. Pure.

The hash of a row is the SHA-256 of the hash before it and of the row's canonical form. So a row cannot be changed or
removed, unless every later hash is changed, too. A chain may have rows of several forms: each names its own.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Self

import orjson

from a2c_smcp.utils.text import well_formed

__all__ = [
    "BEGUN",
    "COLUMNS",
    "DIGESTS",
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

#: The form of new rows. Each row names its form, so that later versions can check old rows.
FORM: Final = 2
#: Of what kind `digest` is, by the form. In form 1 it is of the result as JSON with sorted keys, without `meta`, and in
#: form 2 of the result as it is sent.
DIGESTS: Final[Mapping[int, str]] = {1: "sha256", 2: "blake3"}
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
    """The digest of the result; `DIGESTS` says which."""
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
    def digest_name(self) -> str:
        return DIGESTS.get(self.form, "digest")

    @property
    def body(self) -> dict[str, Any]:
        """The body as an object; empty if somebody has written something else there."""
        try:
            found = orjson.loads(self.row.body)
        except (ValueError, TypeError):
            return {}
        return found if isinstance(found, dict) else {}


def chained(before: ChainHead, row: RecordRow, form: int = FORM) -> ChainHead:
    """The number and the hash of a row that follows. Raises `TypeError`, `ValueError` or `AttributeError` for a row
    that has other types than ours, or characters that no UTF-8 can carry; `KeyError` for a form that is not known.
    """
    number = before.number + 1
    return ChainHead(number, hashlib.sha256(before.hash + _CANONICAL[form](number, row)).digest())


def _first_form(number: int, row: RecordRow) -> bytes:
    *names, code, digest, body = row
    return orjson.dumps([1, number, *names, code, None if digest is None else digest.hex(), body])


def _second_form(number: int, row: RecordRow) -> bytes:
    *names, code, digest, body = row
    # JSON has no line break here, so the body begins behind the first one. Inside of JSON it would be escaped.
    return b"%b\n%b" % (orjson.dumps([2, number, *names, code, digest and digest.hex()]), body.encode())


_CANONICAL: Final[Mapping[int, Callable[[int, RecordRow], bytes]]] = {1: _first_form, 2: _second_form}


def body_text(value: dict[str, Any]) -> str:
    """A body as text. Fields without a value are left out."""
    said = {name: item for name, item in value.items() if item is not None}
    try:
        return orjson.dumps(said).decode()
    except TypeError:  # an integer over 64 bits, or characters that no UTF-8 can carry
        return json.dumps(said, default=str, separators=(",", ":"))
