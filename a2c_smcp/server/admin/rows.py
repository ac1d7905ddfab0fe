"""What operators are shown: rows of one process, and how the rows of several processes become one answer. Pure.

Rows have names, counts and times. They never have contents of messages, and of a key its name and fingerprint only.
"""

from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import Any, Final, TypedDict

__all__ = [
    "MOST_ROWS",
    "SHOWN_AT_TOP",
    "KeyRow",
    "MemberRow",
    "MembersPage",
    "OfficeRow",
    "OfficesPage",
    "ProcessRow",
    "ToolRow",
    "TopView",
    "member_order",
    "merge_keys",
    "merge_members",
    "merge_offices",
    "merge_top",
]

#: Rows of one answer. A row has 1.2 KiB at most, and NATS takes messages of 1 MiB.
MOST_ROWS: Final = 500
#: Rows of each table in the live view.
SHOWN_AT_TOP: Final = 20


class MemberRow(TypedDict):
    """A session: a member of an office, or a client that has not joined one."""

    session: str
    office: str
    """Empty if it is in no office."""
    role: str
    name: str
    key: str
    """The name of its key."""
    bound: bool
    """Whether its key may only have names like this one."""
    fingerprint: str
    address: str
    version: str
    """What the client says; empty if it says nothing."""
    process: str
    host: str
    """The host and the process id of the server process, for people."""
    since: float
    """Seconds since 1970."""
    calls: int
    received: int
    sent: int
    queued: int
    """Bytes that wait for it."""


class OfficeRow(TypedDict):
    office: str
    agent: str
    """The name of its agent; empty without one."""
    computers: int
    calls: int
    failed: int
    per_minute: float


class ToolRow(TypedDict):
    office: str
    computer: str
    tool: str
    calls: int
    failed: int
    per_minute: float
    mean: float
    """Seconds of a call, lately."""
    slowest: float


class ProcessRow(TypedDict):
    process: str
    host: str
    version: str
    since: float
    ready: str
    """`ready`, or why it is not."""
    sessions: int
    offices: int
    pending: int
    """Requests that wait for an answer."""
    queued: int
    lag: float
    """How late the event loop was last, in seconds."""


class KeyRow(TypedDict):
    name: str
    fingerprint: str
    roles: list[str]
    offices: list[str]
    names: list[str] | None
    """The names that it may have in an office; `None` for any."""
    source: str
    """Where the key comes from: a file, or an option."""
    state: str
    """`valid` or `revoked`."""
    sessions: int
    processes: int
    """How many processes know it."""


class MembersPage(TypedDict):
    members: list[MemberRow]
    next: list[str] | None
    """What to ask for next; `None` if this is the end."""


class OfficesPage(TypedDict):
    offices: list[OfficeRow]
    next: str | None


class TopView(TypedDict):
    processes: list[ProcessRow]
    offices: list[OfficeRow]
    tools: list[ToolRow]
    queues: list[MemberRow]


def member_order(row: MemberRow) -> list[str]:
    """Where a row stands in a list, and what comes after it."""
    return [row["office"], row["role"], row["name"], row["process"], row["session"]]


def merge_members(pages: Sequence[MembersPage], limit: int) -> MembersPage:
    """The first rows of all processes. Each page must have the first `limit` rows of its process."""
    rows = sorted((row for page in pages for row in page["members"]), key=member_order)
    more = len(rows) > limit or any(page["next"] is not None for page in pages)
    rows = rows[:limit]
    return {"members": rows, "next": member_order(rows[-1]) if more and rows else None}


def merge_offices(pages: Sequence[OfficesPage], limit: int) -> OfficesPage:
    """The first offices of all processes, each with the counts of all of them."""
    rows = sorted(_sum_offices(row for page in pages for row in page["offices"]), key=lambda row: row["office"])
    more = len(rows) > limit or any(page["next"] is not None for page in pages)
    rows = rows[:limit]
    return {"offices": rows, "next": rows[-1]["office"] if more and rows else None}


def merge_top(views: Sequence[TopView]) -> TopView:
    """What is most in all processes."""
    return {
        "processes": sorted((row for view in views for row in view["processes"]), key=lambda row: row["host"]),
        "offices": nlargest(
            SHOWN_AT_TOP,
            _sum_offices(row for view in views for row in view["offices"]),
            key=lambda row: (row["per_minute"], row["calls"]),
        ),
        "tools": nlargest(SHOWN_AT_TOP, (row for view in views for row in view["tools"]), key=lambda row: row["mean"]),
        "queues": nlargest(
            SHOWN_AT_TOP, (row for view in views for row in view["queues"]), key=lambda row: row["queued"]
        ),
    }


def merge_keys(lists: Sequence[Sequence[KeyRow]]) -> list[KeyRow]:
    """Each key once. A key counts as revoked if no process accepts it any more."""
    found: dict[str, KeyRow] = {}
    for row in (row for rows in lists for row in rows):
        if (known := found.get(row["fingerprint"])) is None:
            found[row["fingerprint"]] = {**row}
            continue
        known["sessions"] += row["sessions"]
        known["processes"] += row["processes"]
        if row["state"] == "valid":
            known["state"] = "valid"
    return sorted(found.values(), key=lambda row: (row["name"], row["fingerprint"]))


def _sum_offices(rows: Iterable[OfficeRow]) -> list[OfficeRow]:
    found: dict[str, Any] = {}
    for row in rows:
        if (known := found.get(row["office"])) is None:
            found[row["office"]] = {**row}
            continue
        known["agent"] = known["agent"] or row["agent"]
        for count in ("computers", "calls", "failed", "per_minute"):
            known[count] += row[count]
    return list(found.values())
