"""Rows as people read them."""

from typing import Any

import pytest

from a2c_smcp.server.admin.tables import (
    age,
    key_table,
    member_table,
    office_table,
    process_table,
    silent_lines,
    size,
    tool_table,
)
from a2c_smcp.terminal.screen import aligned

MEMBER: dict[str, Any] = {
    "session": "s1", "office": "", "role": "", "name": "", "key": "ci", "fingerprint": "f", "address": "10.0.0.1",
    "version": "", "process": "p", "host": "h:1", "since": 40.0, "calls": 2, "received": 10, "sent": 2048, "queued": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0s"), (59, "59s"), (61, "1m1s"), (3600, "1h0m"), (90_000, "1d1h"), (-5, "0s")]
)
def test_an_age(seconds: float, shown: str) -> None:
    assert age(0, seconds) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (20 * 1024**2, "20 MiB"), (1024**5, "1048576 GiB")],
)
def test_a_size(count: int, shown: str) -> None:
    assert size(count) == shown


def test_every_row_of_a_table_has_the_columns_of_its_head() -> None:
    office = {"office": "o", "agent": "", "computers": 1, "calls": 0, "failed": 0, "per_minute": 0.5}
    tool = {"tool": "t", "computer": "c", "office": "o", "calls": 1, "failed": 0, "mean": 0.1, "slowest": 1.0}
    process = {
        "host": "h:1", "version": "1", "since": 0, "sessions": 1, "offices": 1, "pending": 0, "queued": 5, "lag": 0.002,
        "ready": "ready", "process": "p",
    }  # fmt: skip
    key = {
        "name": "n",
        "fingerprint": "f",
        "state": "valid",
        "sessions": 1,
        "roles": ["agent"],
        "offices": ["*"],
        "source": "x",
    }
    tables = [member_table([MEMBER], 100.0), office_table([office]), tool_table([tool]), key_table([key])]
    for table in (*tables, process_table([process], 9.0)):
        head, row = table
        assert len(head) == len(row)
        assert list(aligned(table))


def test_a_name_cannot_add_a_row_or_act_on_the_terminal() -> None:
    rows = list(aligned(member_table([{**MEMBER, "name": "a\nADMIN\x1b[2J\u202e", "session": "s"}], 100.0)))
    assert len(rows) == 2
    assert "\x1b" not in rows[1] and "\u202e" not in rows[1]


def test_a_process_without_an_answer_is_named() -> None:
    [line] = silent_lines([{"process": "p1", "reason": "it did not answer within 3 s"}])
    assert "p1" in line and "3 s" in line
