"""The chain finds what was changed, removed, cut off or rewritten."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.record.checking import check_chain
from a2c_smcp.record.retention import Retention
from a2c_smcp.record.rows import NO_HASH, ChainHead, RecordRow, StoredRow, chained
from a2c_smcp.record.schema import SELECTED, open_for_writing, stored
from tests.record.files import QUICK, changed, checked, head, rows_of, written


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a record of 50 calls, which nobody has open."""
    return written(tmp_path_factory.mktemp("record") / "r.sqlite", 50).read_bytes()


@pytest.fixture
def record(whole: bytes, tmp_path: Path) -> Path:
    file = tmp_path / "r.sqlite"
    file.write_bytes(whole)
    return file


def test_a_record_that_nobody_touched_is_whole(record: Path) -> None:
    report = checked(record, head(record))
    assert (report.rows, report.head.number, report.problems) == (51, 51, ())
    assert [row.row.kind for row in rows_of(record)][:2] == ["begun", "call"]


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        *((f"UPDATE rows SET {column} = 'x' WHERE number = 20", 20) for column in ("agent", "tool", "how", "body")),
        ("UPDATE rows SET at = at + 1 WHERE number = 20", 20),
        ("UPDATE rows SET code = 4005 WHERE number = 20", 20),
        ("UPDATE rows SET digest = NULL WHERE number = 20", 20),
        ("UPDATE rows SET digest = 'text' WHERE number = 20", 20),
        ("UPDATE rows SET form = 1 WHERE number = 20", 20),
        ("UPDATE rows SET form = 3 WHERE number = 20", 20),
        ("UPDATE rows SET agent = CAST(agent AS BLOB) WHERE number = 20", 20),
        ("UPDATE rows SET at = at + 0.5 WHERE number = 20", 20),
        ("UPDATE rows SET hash = zeroblob(32) WHERE number = 20", 20),
        ("DELETE FROM rows WHERE number = 20", 20),
        ("DELETE FROM rows WHERE number BETWEEN 20 AND 30", 20),
        ("DELETE FROM rows WHERE number = 1", 1),
    ],
)
def test_a_row_that_was_changed_or_removed_is_found(record: Path, statement: str, number: int) -> None:
    changed(record, statement)
    report = checked(record)
    assert report.problems and str(number) in report.problems[0]


def test_two_rows_that_changed_places_are_found(record: Path) -> None:
    changed(
        record,
        "UPDATE rows SET number = 1000 WHERE number = 20",
        "UPDATE rows SET number = 20 WHERE number = 21",
        "UPDATE rows SET number = 21 WHERE number = 1000",
    )
    assert checked(record).problems


def test_the_beginning_cannot_be_passed_off_as_removed_by_retention(record: Path) -> None:
    removed = rows_of(record)[9]
    assert removed.number == 10
    changed(
        record, f"UPDATE base SET number = 10, hash = x'{removed.hash.hex()}'", "DELETE FROM rows WHERE number <= 10"
    )
    assert checked(record).problems == ("rows 1 to 10 are gone, but no row says that retention has removed them",)


def test_a_cut_end_is_found_with_a_head_that_is_held_elsewhere(record: Path) -> None:
    kept = head(record)
    changed(record, "DELETE FROM rows WHERE number > 40")
    assert checked(record).problems == ()  # nothing inside the file can show it
    assert checked(record, kept).problems == ("the end was cut off: the known head is row 51, and the last row is 40",)


def test_a_file_that_was_written_anew_is_found_with_a_head_that_is_held_elsewhere(record: Path) -> None:
    kept = head(record)
    record.unlink()
    written(record, 60)
    assert checked(record).problems == ()
    assert "rewritten" in checked(record, kept).problems[0]


def test_a_head_stays_good_while_rows_are_added_and_says_so_when_retention_removed_it(record: Path) -> None:
    kept = head(record)
    written(record, 5)
    assert checked(record, kept).problems == ()
    written(record, 1, Retention(bytes=1), QUICK.__class__(gather=0.001, look_rows=1))
    report = checked(record, kept)
    assert report.base.number > 0
    assert report.problems == () or "cannot be compared" in report.problems[0]


@pytest.mark.parametrize("text", ["", "5", "5:xyz", "5:00", f"-1:{NO_HASH.hex()}", f"x:{NO_HASH.hex()}"])
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        ChainHead.parse(text)


def test_a_head_is_read_as_it_is_printed() -> None:
    here = ChainHead(7, bytes(range(32)))
    assert ChainHead.parse(f" {here}\n") == here


@given(
    st.lists(st.tuples(st.integers(0, 2**53), st.text(max_size=5), st.text(max_size=5)), min_size=2, max_size=8),
    st.data(),
)
def test_any_row_that_is_left_out_or_changed_breaks_the_chain(
    said: list[tuple[int, str, str]], data: st.DataObject
) -> None:
    before, rows = ChainHead(), []
    for at, agent, body in said:
        row = RecordRow(at, "call", agent=agent, body=body).well_formed()
        before = chained(before, row)
        rows.append(StoredRow(before.number, row, before.hash))
    assert check_chain(rows, ChainHead()).problems == ()
    place = data.draw(st.integers(0, len(rows) - 1))
    assert check_chain([*rows[:place], *rows[place + 1 :]], ChainHead(), before).problems
    other = rows[place]._replace(row=rows[place].row._replace(tool="another"))
    assert check_chain([*rows[:place], other, *rows[place + 1 :]], ChainHead()).problems


def test_a_program_cannot_change_or_delete_a_row_by_mistake(record: Path) -> None:
    connection = open_for_writing(record)
    for statement in ("UPDATE rows SET agent = 'x'", "DELETE FROM rows"):
        with pytest.raises(sqlite3.IntegrityError, match="only appended to"):
            connection.execute(statement)
    assert stored(connection.execute(f"SELECT {SELECTED} FROM rows WHERE number = 2").fetchone()).row.kind == "call"
    connection.close()
