"""Decides how many of the oldest rows are removed: by age, by size, and before the disk is full. Pure."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["FileState", "Removal", "Retention", "to_remove"]

RemovalReason: TypeAlias = Literal["age", "size", "disk"]


@dataclass(frozen=True, slots=True)
class Retention:
    """How much a record keeps."""

    days: float = 90.0
    """0 for no limit."""
    bytes: int = 2**30
    """The largest size of the file; 0 for no limit. A small call takes 400 bytes, or twice that if it has a row for its
    beginning.
    """
    spare: int = 64 * 2**20
    """When the disk has fewer free bytes than this, the oldest rows make room for new ones."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What there is now. `old` is the number of rows at the beginning that are older than allowed."""

    rows: int
    used: int
    """Bytes of the file that rows use."""
    reusable: int
    """Bytes of the file that are free for new rows."""
    free: int
    """Bytes that are free on the disk."""
    old: int


@dataclass(frozen=True, slots=True)
class Removal:
    """Remove this many of the oldest rows, for this reason."""

    rows: int
    why: RemovalReason


def to_remove(keep: Retention, now: FileState) -> Removal | None:
    """What one look at the file removes; `None` for nothing.

    A disk that is nearly full comes first: deleting needs some space itself. The room of rows that were removed stays
    in the file, for new rows. So it is not the record that pays if something else fills the disk. A look removes
    at most a tenth of the rows by age. So a clock that is wrong for an hour does not remove everything.
    """
    tenth = max(1, now.rows // 10)
    if now.rows == 0:
        return None
    if now.free < keep.spare and now.reusable < now.used // 20:
        return Removal(tenth, "disk")
    if keep.bytes and now.used > keep.bytes:
        share = 1 - 0.9 * keep.bytes / now.used
        return Removal(max(1, int(now.rows * share)), "size")
    if now.old:
        return Removal(min(now.old, max(tenth, 1000)), "age")
    return None
