"""The rows of operators as tables for people. Pure: the clock is handed in."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["age", "key_table", "member_table", "office_table", "process_table", "silent_lines", "size", "tool_table"]

Table = list[Sequence[str]]


def age(since: float, now: float) -> str:
    """How long ago something was, in one or two units."""
    seconds = max(0, int(now - since))
    for unit, length, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= length:
            return f"{seconds // length}{unit}{seconds % length // part}{smaller}"
    return f"{seconds}s"


def size(count: float) -> str:
    """A number of bytes in a few characters."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"


def member_table(rows: Iterable[Mapping[str, Any]], now: float) -> Table:
    head = (
        "NAME", "ROLE", "OFFICE", "ADDRESS", "KEY", "VERSION", "SERVER", "SINCE", "CALLS", "IN", "OUT", "WAITS",
        "SESSION",
    )  # fmt: skip
    return [
        head,
        *(
            (
                row["name"] or "-",
                row["role"] or "-",
                row["office"] or "-",
                row["address"],
                row["key"],
                row["version"] or "-",
                row["host"],
                age(row["since"], now),
                str(row["calls"]),
                size(row["received"]),
                size(row["sent"]),
                size(row["queued"]),
                row["session"],
            )
            for row in rows
        ),
    ]


def office_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    return [
        ("OFFICE", "AGENT", "COMPUTERS", "CALLS", "FAILED", "A MINUTE"),
        *(
            (
                row["office"] or "-",
                row["agent"] or "-",
                str(row["computers"]),
                str(row["calls"]),
                str(row["failed"]),
                f"{row['per_minute']:.1f}",
            )
            for row in rows
        ),
    ]


def tool_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    return [
        ("TOOL", "COMPUTER", "OFFICE", "CALLS", "FAILED", "TAKES", "SLOWEST"),
        *(
            (
                row["tool"],
                row["computer"],
                row["office"],
                str(row["calls"]),
                str(row["failed"]),
                f"{row['mean']:.3f} s",
                f"{row['slowest']:.3f} s",
            )
            for row in rows
        ),
    ]


def process_table(rows: Iterable[Mapping[str, Any]], now: float) -> Table:
    return [
        ("SERVER", "VERSION", "SINCE", "SESSIONS", "OFFICES", "PENDING", "WAITS", "LAG", "STATE", "PROCESS"),
        *(
            (
                row["host"],
                row["version"],
                age(row["since"], now),
                str(row["sessions"]),
                str(row["offices"]),
                str(row["pending"]),
                size(row["queued"]),
                f"{row['lag'] * 1000:.0f} ms",
                row["ready"],
                row["process"],
            )
            for row in rows
        ),
    ]


def key_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    return [
        ("NAME", "FINGERPRINT", "STATE", "SESSIONS", "ROLES", "OFFICES", "NAMES", "FROM"),
        *(
            (
                row["name"],
                row["fingerprint"],
                row["state"],
                str(row["sessions"]),
                ", ".join(row["roles"]),
                ", ".join(row["offices"]),
                ", ".join(row.get("names") or ["*"]),  # older processes do not say it
                row["source"],
            )
            for row in rows
        ),
    ]


def silent_lines(silent: Iterable[Mapping[str, str]]) -> list[str]:
    """What to say about processes that gave no answer."""
    return [f"server process {each['process']} gave no answer: {each['reason']}" for each in silent]
