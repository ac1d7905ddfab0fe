"""Checks the chain of a record: which row was changed or removed. Pure: the rows are handed in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from a2c_smcp.record.rows import REMOVED, ChainHead, StoredRow, chained

__all__ = ["ChainReport", "check_chain", "removed_in_all"]


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What a check has found. The record is whole if there are no `problems`."""

    rows: int
    base: ChainHead
    """The last row that retention has removed."""
    head: ChainHead
    """The last row."""
    problems: tuple[str, ...]
    removed: Mapping[str, int] = field(default_factory=dict)
    """How many rows retention has removed, by the reason: `age`, `size`, or `disk`, which is before their time."""


def removed_in_all(stored: StoredRow) -> dict[str, int]:
    """How many rows retention had removed when it wrote this row, by the reason."""
    said = stored.body.get("in_all")
    if not isinstance(said, dict):  # an earlier version counted only its own
        said = {str(stored.body.get("why")): stored.body.get("rows")}
    return {str(why): count for why, count in said.items() if isinstance(count, int)}


def check_chain(
    rows: Iterable[StoredRow], base: ChainHead, known: ChainHead | None = None, most: int = 20
) -> ChainReport:
    """Check rows in the order of their numbers, against a head that is held elsewhere, too, if one is `known`."""
    problems: list[str] = []
    removed: dict[str, int] = {}
    head, count, removed_to = base, 0, 0
    matches = known is None or known == base
    for stored in rows:
        count += 1
        number = stored.number
        if number != head.number + 1 and len(problems) < most:
            problems.append(_missing(head.number + 1, number - 1))
        elif (problem := _changed(head, stored)) is not None and len(problems) < most:
            problems.append(problem)
        if stored.row.kind == REMOVED:
            through = stored.body.get("through")
            removed_to = through if isinstance(through, int) else removed_to
            removed = removed_in_all(stored)
        head = ChainHead(number, stored.hash)
        matches = matches or head == known
    if removed_to != base.number:
        problems.append(f"rows 1 to {base.number} are gone, but no row says that retention has removed them")
    if not matches and known is not None:
        problems.append(_other_head(known, base, head))
    return ChainReport(count, base, head, tuple(problems), removed)


def _missing(first: int, last: int) -> str:
    if last < first:
        return f"row {first} follows a row with another number"
    return f"row {first} was removed" if first == last else f"rows {first} to {last} were removed"


def _changed(before: ChainHead, stored: StoredRow) -> str | None:
    try:
        is_right = chained(before, stored.row, stored.form).hash == stored.hash
    except KeyError:
        return f"row {stored.number} has a form that this version does not know"
    except (TypeError, ValueError, AttributeError):  # values of other types than ours
        is_right = False
    return None if is_right else f"row {stored.number} was changed, or a row before it was replaced"


def _other_head(known: ChainHead, base: ChainHead, head: ChainHead) -> str:
    if known.number > head.number:
        return f"the end was cut off: the known head is row {known.number}, and the last row is {head.number}"
    if known.number < base.number:
        return f"the known head, row {known.number}, was removed by retention since: it cannot be compared"
    return f"the record was rewritten: row {known.number} has another hash than the known head"
