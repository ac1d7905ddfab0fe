"""A record is written in the background: by several processes, on a full disk, and until the process is killed."""

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from mcp_types import CallToolResult, TextContent

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.calls.log import LoggedCall
from a2c_smcp.computer.recording.call_rows import call_row as row_of_call
from a2c_smcp.computer.recording.call_rows import running_row
from a2c_smcp.record.checking import removed_in_all
from a2c_smcp.record.queries import RecordQuery
from a2c_smcp.record.reading import reading
from a2c_smcp.record.retention import FileState, Removal, Retention, to_remove
from a2c_smcp.record.rows import RecordRow, StoredRow, body_text
from a2c_smcp.record.schema import MIGRATIONS, RecordFileError, migrate, open_for_writing
from a2c_smcp.record.writer import RecordPace, RecordWriter
from tests.record.files import QUICK, call_row, changed, checked, rows_of, written

UNIX = pytest.mark.skipif(sys.platform == "win32", reason="needs the limits and signals of a Unix")


@UNIX
def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "state" / "record" / "r.sqlite"
    old = os.umask(0)
    try:
        writer = RecordWriter(file, pace=QUICK)
        writer.add(call_row, 1)
        _eventually(lambda: file.with_name("r.sqlite-wal").exists() and file.stat().st_size > 0)
        modes = {each.name: each.stat().st_mode & 0o777 for each in file.parent.iterdir()}
        writer.close()
    finally:
        os.umask(old)
    assert set(modes.values()) == {0o600} and len(modes) >= 2
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_row_is_in_the_file_soon_and_a_closed_writer_writes_again(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "r.sqlite")
    writer.add(call_row, 1)
    _eventually(lambda: (tmp_path / "r.sqlite").exists() and len(_safe(tmp_path / "r.sqlite")) == 2)
    writer.close()
    writer.add(call_row, 2)
    writer.close()
    writer.close()
    report = checked(tmp_path / "r.sqlite")
    assert (report.rows, report.problems) == (3, ())


def test_what_cannot_be_put_into_a_row_is_counted_and_characters_of_no_text_are_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(at: int) -> RecordRow:
        raise ValueError("no row")

    writer = RecordWriter(tmp_path / "r.sqlite", pace=QUICK)
    writer.add(broken)
    writer.add(lambda at: None)
    writer.add(lambda at: RecordRow(at, "call", agent="\ud800", body='{"a":"\x00\u202e"}'))
    writer.close()
    kinds = [(row.row.kind, row.row.agent, row.body) for row in rows_of(tmp_path / "r.sqlite")][1:]
    assert kinds == [("call", "\ufffd", {}), ("lost", "", {"rows": 1})]
    assert checked(tmp_path / "r.sqlite").problems == ()
    assert "could not be put into the record" in caplog.text


@pytest.mark.parametrize("code", [2**70, 2**63, "\ud800" * 2, object()])
def test_a_row_that_no_file_can_hold_is_given_up_and_the_others_are_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, code: object
) -> None:
    writer = RecordWriter(tmp_path / "r.sqlite", pace=QUICK)
    writer.add(call_row, 1)
    writer.add(lambda at: RecordRow(at, "call", code=code))  # type: ignore[arg-type]
    writer.add(lambda at: RecordRow(at, "call", agent=None))  # type: ignore[arg-type]
    writer.add(call_row, 2)
    writer.close()
    writer.add(call_row, 3)
    writer.close()
    rows = rows_of(tmp_path / "r.sqlite")
    assert [row.row.about for row in rows if row.row.kind == "call" and row.row.about] == [
        "abcd1234-1",
        "abcd1234-2",
        "abcd1234-3",
    ]
    assert sum(row.body["rows"] for row in rows if row.row.kind == "lost") in (1, 2)
    assert checked(tmp_path / "r.sqlite").problems == ()
    assert "cannot be written into a record" in caplog.text


def test_what_waits_is_bounded_in_bytes(tmp_path: Path) -> None:
    file = written(tmp_path / "r.sqlite", 1)
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    pace = RecordPace(gather=0.001, retry=0.02, waiting_bytes=200_000, look_rows=1_000_000)
    writer = RecordWriter(file, pace=pace)
    for number in range(100):
        writer.add(lambda at, number: RecordRow(at, "call", body=f'{{"n":{number},"x":"{"x" * 20_000}"}}'), number)
    for number in range(100):  # what rows are made of may be larger than the rows
        writer.add(lambda at, number: RecordRow(at, "small", body=f'{{"n":{number}}}'), number, size=20_000)
    holder.execute("ROLLBACK")
    holder.close()
    writer.close(20)
    rows = rows_of(file)
    kept = sum(row.row.kind in ("call", "small") for row in rows) - 1
    lost = sum(row.body["rows"] for row in rows if row.row.kind == "lost")
    assert kept + lost == 200 and lost >= 180
    assert rows[-2].body == {"n": 99}


def test_threads_that_add_at_once_lose_no_row_and_no_count(tmp_path: Path) -> None:
    file = written(tmp_path / "r.sqlite", 1)
    writer = RecordWriter(file, pace=RecordPace(gather=0.001, waiting=50))

    def add() -> None:
        for number in range(2000):
            writer.add(call_row, number)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    writer.add(call_row, 0)
    writer.close(60)
    rows = rows_of(file)
    kept = sum(row.row.kind == "call" for row in rows) - 1
    assert kept + sum(row.body["rows"] for row in rows if row.row.kind == "lost") == 8001


def test_two_writers_of_one_file_make_one_chain(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    code = (
        "import sys; from pathlib import Path; from tests.record.files import written; written(Path(sys.argv[1]), 400)"
    )
    children = [subprocess.Popen([sys.executable, "-c", code, str(file)]) for _ in range(2)]
    written(file, 400)
    assert [child.wait(60) for child in children] == [0, 0]
    report = checked(file)
    assert (report.rows, report.problems) == (1201, ())


@UNIX
def test_a_killed_process_leaves_a_whole_record_without_the_last_moment(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    code = """
import sys, time
from pathlib import Path
from a2c_smcp.record.writer import RecordWriter
from tests.record.files import call_row
writer = RecordWriter(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    writer.add(call_row, number)
    sys.stdout.write(f"{number} {time.time()}\\n")
    sys.stdout.flush()
    time.sleep(0.002)
"""
    child = subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    said = {}
    for line in child.stdout:
        number, at = line.split()
        said[int(number)] = float(at)
        if len(said) == 200:
            child.send_signal(signal.SIGKILL)
    child.wait(20)
    child.stdout.close()
    report = checked(file)
    assert report.problems == ()
    kept = report.rows - 1
    lost = max(said.values()) - said[kept]
    assert kept > 20
    # 0.05 s of gathering and one write. A busy machine may let the thread wait longer.
    assert lost < 2


@UNIX
def test_a_full_disk_is_told_loudly_and_what_waits_is_written_when_there_is_room(tmp_path: Path) -> None:
    """A limit on the size of files is a full disk for one process."""
    code = """
import logging, resource, sys, time
from pathlib import Path
from a2c_smcp.record.retention import Retention
from a2c_smcp.record.writer import RecordPace, RecordWriter
from tests.record.files import call_row
logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(message)s")
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
pace = RecordPace(gather=0.001, retry=0.02, waiting=500, look_rows=1_000_000, warn_seconds=0.5)
writer = RecordWriter(Path(sys.argv[1]), Retention(days=0, bytes=0, spare=0), pace)
slowest = 0
for number in range(3000):
    began = time.perf_counter()
    writer.add(call_row, number)
    slowest = max(slowest, time.perf_counter() - began)
    if number % 100 == 0:
        time.sleep(0.01)
time.sleep(0.2)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
writer.add(call_row, 3000)
writer.close()
print(slowest)
"""
    file = tmp_path / "r.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, timeout=60, check=True
    )
    assert "ERROR the record" in done.stderr and "cannot be written" in done.stderr and "calls go on" in done.stderr
    assert "is written again" in done.stderr
    assert float(done.stdout) < 2
    rows = rows_of(file)
    assert checked(file).problems == ()
    lost = sum(row.body["rows"] for row in rows if row.row.kind == "lost")
    calls = sum(row.row.kind == "call" for row in rows)
    assert lost > 0 and calls + lost == 3001
    # The writer may find room before the last row is added.
    assert "lost" in {row.row.kind for row in rows[-2:]} and "abcd1234-3000" in {row.row.about for row in rows[-2:]}


@UNIX
def test_on_a_full_disk_the_oldest_rows_make_room_for_new_ones(tmp_path: Path) -> None:
    """The limit on the size of files stays: only what retention removes makes room. To this process the disk is always
    nearly full.
    """
    code = """
import resource, sys, time
from pathlib import Path
from a2c_smcp.record.retention import Retention
from a2c_smcp.record.writer import RecordPace, RecordWriter
from tests.record.files import call_row, rows_of
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
pace = RecordPace(gather=0.001, retry=0.02, look_rows=1_000_000, look_seconds=10**9, removed_when_full=20)
file = Path(sys.argv[1])
writer = RecordWriter(file, Retention(days=0, bytes=0, spare=10**18), pace)
until = time.monotonic() + 30
for number in range(1, 801):
    writer.add(call_row, number)
    if number % 50 == 0:
        while time.monotonic() < until and not any(
            row.row.about == f"abcd1234-{number}" for row in rows_of(file, about=f"abcd1234-{number}")
        ):
            time.sleep(0.01)
writer.close()
"""
    file = tmp_path / "r.sqlite"
    written(file, 1)
    subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, timeout=60, check=True)
    rows = rows_of(file)
    report = checked(file)
    assert report.problems == () and report.base.number > 50
    assert rows[-1].row.about == "abcd1234-800"
    assert [row.body["why"] for row in rows if row.row.kind == "removed"][-1] == "disk"


def test_a_disk_that_something_else_fills_does_not_cost_the_whole_record(tmp_path: Path) -> None:
    """To this process the disk is always nearly full: what the record gives back, something else takes."""
    file = written(tmp_path / "r.sqlite", 1000)
    pace = RecordPace(gather=0.001, look_rows=1)
    for _ in range(30):  # each look removed a tenth of what was left
        written(file, 3, Retention(days=0, bytes=0, spare=10**18), pace)
    report = checked(file)
    assert report.problems == () and 0 < report.base.number < 250
    assert dict(report.removed) == {"disk": report.base.number}


def test_every_removal_says_why_and_how_many_there_were_in_all(tmp_path: Path) -> None:
    file = written(tmp_path / "r.sqlite", 300)
    written(file, 1, Retention(days=0, bytes=0, spare=10**18), RecordPace(gather=0.001, look_rows=1))
    first = checked(file).base.number
    written(file, 1, Retention(days=0, bytes=1, spare=0), RecordPace(gather=0.001, look_rows=1))
    report = checked(file)
    assert report.problems == ()
    assert dict(report.removed) == {"disk": first, "size": report.base.number - first}
    # What an earlier version wrote counts only itself.
    said = RecordRow(1, "removed", body=body_text({"through": 5, "rows": 5, "why": "age"}))
    assert removed_in_all(StoredRow(6, said, b"")) == {"age": 5}


def test_who_waits_hears_when_the_file_has_the_rows_or_why_it_has_not(tmp_path: Path) -> None:
    told: list[str] = []
    heard = threading.Event()

    def tell(problem: str) -> None:
        told.append(problem)
        heard.set()

    writer = RecordWriter(tmp_path / "r.sqlite", pace=RecordPace(gather=60.0))
    writer.add(call_row, 1)
    writer.when_written(tell)
    assert heard.wait(20) and told == [""]  # long before rows are gathered
    assert [row.row.kind for row in rows_of(writer.file)] == ["begun", "call"]
    writer.close()
    heard.clear()
    (tmp_path / "folder").mkdir()
    broken = RecordWriter(tmp_path / "folder", pace=QUICK)
    broken.add(call_row, 1)
    broken.when_written(tell)
    assert heard.wait(20) and told[1] == "Is a directory" == broken.problem
    heard.clear()
    crowded = RecordWriter(tmp_path / "folder", pace=replace(QUICK, waiting=1))
    crowded._is_awake = True  # its thread does not start
    crowded.when_written(tell)
    for number in range(3):
        crowded.add(call_row, number)
    assert heard.wait(20) and "too many rows" in told[2]
    broken.close(0.1)


def test_readers_and_a_writer_that_hold_the_file_lose_nothing(tmp_path: Path) -> None:
    file = written(tmp_path / "r.sqlite", 10)
    reader = sqlite3.connect(file, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM rows").fetchone() == (11,)
    written(file, 10)
    assert reader.execute("SELECT count(*) FROM rows").fetchone() == (11,)
    reader.execute("ROLLBACK")
    reader.execute("BEGIN IMMEDIATE")
    writer = RecordWriter(file, pace=QUICK)
    writer.add(call_row, 1)
    time.sleep(0.05)
    assert len(rows_of(file)) == 21
    reader.execute("ROLLBACK")
    reader.close()
    _eventually(lambda: len(rows_of(file)) == 22)
    writer.close()
    assert checked(file).problems == ()


def test_a_clock_that_jumps_back_changes_times_and_not_the_order(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "r.sqlite", Retention(days=1), RecordPace(gather=0.001, look_rows=1))
    now = int(time.time() * 1e6)
    for at in (now, now - 10**15, now - 10**9):
        writer.add(lambda _, at: RecordRow(at, "call"), at)
    writer.close()
    rows = rows_of(tmp_path / "r.sqlite", kind="call")
    assert [row.row.at for row in rows] == [now, now - 10**15, now - 10**9]  # the old one stands behind a young one
    assert len(rows_of(tmp_path / "r.sqlite", since=now - 10**10, kind="call")) == 2
    assert checked(tmp_path / "r.sqlite").problems == ()


def test_a_hundred_thousand_calls_take_forty_megabytes_at_most(tmp_path: Path) -> None:
    file = written(tmp_path / "r.sqlite", 3000)
    assert file.stat().st_size / 3000 <= 400


# --- retention


def test_the_default_keeps_a_million_small_calls_even_if_each_has_a_row_for_its_beginning(tmp_path: Path) -> None:
    asker, now = Asker("planner", "home", True, "office-1"), time.time()
    call = LoggedCall(f"{7:032x}", asker, "files.read", {}, 30, now, 5.0, lambda: None)
    call.id, call.server, call.tool, call.arguments = "abcd1234-100000", "files", "read", {"text": "x" * 100}
    writer = RecordWriter(tmp_path / "r.sqlite", pace=RecordPace(gather=1.0))
    for _ in range(2000):
        writer.add(running_row, call, str)
    told = threading.Event()
    writer.when_written(lambda problem: told.set())
    assert told.wait(60)
    call.end(result := CallToolResult(content=[TextContent(text="x" * 100)]), 5.0123, 2**20)
    for _ in range(2000):
        writer.add(row_of_call, call, result, None, str)
    writer.close(60)
    rows = rows_of(tmp_path / "r.sqlite")
    assert [sum(row.row.kind == kind for row in rows) for kind in ("running", "call")] == [2000, 2000]
    assert 0.9 * Retention().bytes / ((tmp_path / "r.sqlite").stat().st_size / 2000) > 1_000_000


@pytest.mark.parametrize(
    ("state", "removal"),
    [
        (FileState(0, 0, 0, 0, 0), None),
        (FileState(1000, 10_000, 0, 10**9, 0), None),
        (FileState(1000, 10_000, 0, 10**9, 100), Removal(100, "age")),
        (FileState(100_000, 10_000, 0, 10**9, 99_999), Removal(10_000, "age")),
        (FileState(1000, 40_000, 0, 10**9, 0), Removal(550, "size")),
        (FileState(1000, 10_000, 0, 999, 0), Removal(100, "disk")),
        (FileState(1000, 10_000, 5000, 999, 0), None),
    ],
)
def test_what_retention_removes(state: FileState, removal: Removal | None) -> None:
    assert to_remove(Retention(days=1, bytes=20_000, spare=1000), state) == removal


def test_retention_keeps_the_file_small_and_the_chain_whole(tmp_path: Path) -> None:
    pace = RecordPace(gather=0.001, look_rows=200, removed_at_once=100)
    file = tmp_path / "r.sqlite"
    for _ in range(6):
        written(file, 500, Retention(bytes=300_000), pace)
    report = checked(file)
    assert report.problems == () and report.base.number > 1000
    assert file.stat().st_size < 600_000
    removed = [row.body for row in rows_of(file, kind="removed")][-1]
    assert removed["through"] == report.base.number and removed["hash"] == report.base.hash.hex()
    changed(
        file,
        f"UPDATE base SET number = number + 1, hash = (SELECT hash FROM rows WHERE number = {report.base.number + 1})",
    )
    changed(file, f"DELETE FROM rows WHERE number = {report.base.number + 1}")
    assert "no row says that retention" in checked(file).problems[0]


def test_old_rows_are_removed_by_age(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    writer = RecordWriter(file, Retention(days=1), RecordPace(gather=0.001, look_rows=1))
    for day in (10, 5, 0):
        at = int((time.time() - day * 86400) * 1e6)
        writer.add(lambda _, at: RecordRow(at, "call"), at)
    writer.close()
    # The look at the first row, `begun`, which is as old as the first call, and the two old calls.
    assert [row.row.kind for row in rows_of(file)] == ["call", "removed"]
    assert checked(file).problems == ()


# --- versions


def test_an_older_file_is_brought_to_the_newest_version_and_keeps_its_rows(tmp_path: Path) -> None:
    file = written(tmp_path / "r.sqlite", 3)
    connection = sqlite3.connect(file, isolation_level=None)
    later = (*MIGRATIONS, "ALTER TABLE rows ADD COLUMN later TEXT; CREATE INDEX of_tools ON rows (tool);")
    migrate(connection, later)
    migrate(connection, later)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(later),)
    assert connection.execute("SELECT count(later), count(*) FROM rows").fetchone() == (0, 4)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, (*later, "CREATE TABLE half (a); CREATE TABLE rows (a);"))
    assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    connection.close()


def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = written(tmp_path / "r.sqlite", 1)
    changed(file, "PRAGMA user_version = 99")
    with pytest.raises(RecordFileError, match="later version"):
        open_for_writing(file)
    with pytest.raises(RecordFileError, match="later version"), reading(file):
        pass
    with caplog.at_level(logging.ERROR):
        written(file, 1)
    assert "later version" in caplog.text


@pytest.mark.parametrize("content", [b"", b"not a database" * 100])
def test_what_is_no_record_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "r.sqlite"
    file.write_bytes(content)
    with pytest.raises(RecordFileError, match="no record"), reading(file):
        pass
    with pytest.raises(RecordFileError, match="there is no record"), reading(tmp_path / "none.sqlite"):
        pass


def _safe(file: Path) -> list[object]:
    try:
        return list(rows_of(file))
    except RecordFileError:
        return []


def _eventually(holds: object, seconds: float = 20) -> None:
    assert callable(holds)
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


# --- reading


def test_words_are_found_in_upper_and_lower_case_also_beyond_ascii(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    writer = RecordWriter(file, pace=QUICK)
    bodies = ['{"a":"zwei Äpfel"}', '{"a":"die Straße"}', '{"a":"DIE STRASSE"}', '{"a":"APPLES"}', "{}"]
    for number, body in enumerate(bodies):
        agent = "ÄRGER" if number == 4 else "max"
        writer.add(
            lambda at, number, body, agent: RecordRow(at, f"k{number}", agent=agent, body=body), number, body, agent
        )
    writer.close()
    found = {
        word: [row.row.kind for row in rows_of(file, words=(word,))]
        for word in ("äpfel", "ÄPFEL", "Straße", "apples", "ärger", "zebra", "Ω")
    }
    assert found == {
        "äpfel": ["k0"],
        "ÄPFEL": ["k0"],
        "Straße": ["k1", "k2"],
        "apples": ["k3"],
        "ärger": ["k4"],
        "zebra": [],
        "Ω": [],
    }


def test_somebody_who_reads_slowly_does_not_make_the_file_grow(tmp_path: Path) -> None:
    """The WAL can only be emptied while no reader holds an old state of the file."""
    file = written(tmp_path / "r.sqlite", 2000)
    with reading(file) as reader:
        rows = reader.all(RecordQuery(kind="call"))
        next(rows)
        for _ in range(5):
            written(file, 1000)
        writer = sqlite3.connect(file, isolation_level=None)
        busy, _, _ = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        writer.close()
        assert busy == 0
        assert len(list(rows)) == 6999
