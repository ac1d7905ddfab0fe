"""A record that an older release began is read, checked, and continued in the form of today."""

import sqlite3
from pathlib import Path

import pytest

from a2c_smcp.computer.console.recorded_calls import recorded_view
from a2c_smcp.record.printing import as_csv, as_json
from a2c_smcp.record.retention import Retention
from a2c_smcp.record.rows import FORM
from a2c_smcp.record.writer import RecordPace
from tests.record.files import changed, checked, head, rows_of, written

#: `make_old.py` has made it. Retention has removed the first 24 rows.
_OLD = Path(__file__).with_name("form-1.sql")
#: Its calls are of 2023.
ALL = Retention(days=0)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    file = tmp_path / "r.sqlite"
    connection = sqlite3.connect(file)
    connection.executescript(_OLD.read_text(encoding="utf-8"))
    connection.close()
    return file


def test_a_record_of_the_first_form_is_whole(record: Path) -> None:
    report = checked(record, head(record))
    assert (report.rows, report.base.number, report.head.number, report.problems) == (20, 24, 44, ())
    assert dict(report.removed) == {"size": 24}
    assert {row.form for row in rows_of(record)} == {1}


def test_rows_of_today_continue_its_chain(record: Path) -> None:
    kept = head(record)
    written(record, 5, ALL)
    report = checked(record, kept)
    assert (report.rows, report.problems) == (25, ())
    rows = rows_of(record)
    assert [row.form for row in rows] == [1] * 20 + [FORM] * 5
    old, new = as_json(rows[0]), as_json(rows[-1])
    assert (old["sha256"], "blake3" in old) == (bytes(range(32)).hex(), False)
    assert (new["blake3"], "sha256" in new) == (bytes(32).hex(), False)
    assert recorded_view(rows[0])["recorded"]["digest"].startswith("sha256 0001")
    assert recorded_view(rows[-1])["recorded"]["digest"].startswith("blake3 0000")
    lines = list(as_csv([rows[0], rows[-1]]))
    assert lines[1].endswith(f",{bytes(range(32)).hex()},") and lines[2].endswith(f",,{bytes(32).hex()}")


def test_words_and_conditions_find_rows_of_both_forms(record: Path) -> None:
    written(record, 50, ALL)
    assert [row.form for row in rows_of(record, words=("40.md",))] == [1, FORM]
    assert [row.number for row in rows_of(record, words=("äpfel",))] == [43]
    assert {row.form for row in rows_of(record, kind="call", outcome="succeeded")} == {1, FORM}


@pytest.mark.parametrize("number", [30, 43, 44, 45, 48])
@pytest.mark.parametrize("change", ["body = body || ' '", "agent = 'x'", "form = 3 - form", "form = 7", "at = at + 1"])
def test_what_was_changed_is_found_in_both(record: Path, number: int, change: str) -> None:
    written(record, 5, ALL)
    changed(record, f"UPDATE rows SET {change} WHERE number = {number}")
    assert str(number) in checked(record).problems[0]


def test_retention_removes_old_and_new_rows_and_the_rest_is_whole(record: Path) -> None:
    written(record, 100, ALL)
    kept = head(record)
    written(record, 50, Retention(days=0, bytes=20_000, spare=0), RecordPace(gather=0.001, look_rows=20))
    report = checked(record)
    assert report.problems == () and report.base.number >= 44
    assert dict(report.removed) == {"size": report.base.number}
    assert report.base.number > kept.number or checked(record, kept).problems == ()
