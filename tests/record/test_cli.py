"""`a2c computer record`: the file is found by the computer's name, and words of others act on nothing."""

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from a2c_smcp.computer.cli.main import app
from a2c_smcp.record.places import record_of
from a2c_smcp.record.queries import RecordQuery, moment, where
from a2c_smcp.record.rows import RecordRow, body_text
from a2c_smcp.record.writer import RecordWriter
from tests.record.files import QUICK, changed, written

EVIL = '=HYPERLINK("http://x")\x1b[2J\u202e\nnext'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with the record of the computer `laptop`."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def record(home: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(home))
        file = record_of("my laptop/1")
    assert file.is_relative_to(home) and file.name.startswith("my-laptop-1-")
    written(file, 30)
    writer = RecordWriter(file, pace=QUICK)
    said = {"arguments": {"text": EVIL, "of": "50%_done", "quote": 'say "hi"'}, "place": "terminal", "seconds": 1.5}
    names = ("lab", EVIL, "mail", "send", "refused", "person", 4005)
    writer.add(lambda at: RecordRow(at, "asked", "evil-1", "lab", EVIL, "mail", "send"))
    writer.add(lambda at: RecordRow(at, "call", "evil-1", *names, body=body_text(said)))
    writer.close()
    return file


@pytest.fixture
def run(home: Path, record: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("XDG_STATE_HOME", str(home))

    def run(command: str, *words: str, status: int = 0) -> str:
        done = CliRunner().invoke(app, ["record", command, "--name", "my laptop/1", *words])
        assert done.exit_code == status, done.output
        return done.output

    return run


def test_list_shows_the_newest_rows_and_takes_conditions(run: Any) -> None:
    lines = run("list", "--limit", "3").splitlines()
    assert lines[0].split() == ["NUMBER", "TIME", "WHAT", "AGENT", "OUTCOME", "DECIDED", "ID"]
    assert len(lines) == 5 and "more than 3" in lines[-1]
    assert "mail/send" in lines[3] and "refused 4005 1.500 s" in lines[3] and "person terminal" in lines[3]

    def count(*words: str) -> int:
        return len(run("list", "--json", *words).splitlines())

    assert (count("--agent", "agent-3"), count("--tool", "read_*", "--limit", "100")) == (4, 30)
    assert (count("--outcome", "refused"), count("--since", "1h", "--kind", "call", "--limit", "99")) == (1, 31)
    assert (count("--until", "yesterday"), count("--office", "lab", "--agent", "nobody")) == (0, 0)


def test_no_word_of_others_acts_on_a_terminal(run: Any) -> None:
    for command in (["list"], ["show", "evil-1"], ["list", "--json"], ["show", "--json", "evil-1"], ["export"]):
        assert not {"\x1b", "\u202e"} & set(run(*command)), command
    assert "\nnext" not in run("list")


def test_search_finds_words_everywhere_and_takes_them_as_they_are(run: Any) -> None:
    def count(*words: str) -> int:
        return len(run("search", "--json", *words).splitlines())

    assert (count("FILE-7.md"), count("file-7.md", "agent-0"), count("file-7.md", "agent-1")) == (1, 1, 0)
    assert (count("0%_d"), count("%"), count('say "hi"'), count("x' OR 1=1 --")) == (1, 1, 1, 0)
    assert count("HYPERLINK") == 2


def test_show_tells_the_story_of_a_call_and_one_row_by_its_number(run: Any) -> None:
    story = run("show", "evil-1")
    assert story.index("asked mail/send") < story.index("call mail/send")
    assert 'arguments: {"text":' in story and "how: person" in story
    assert "begun" in run("show", "1")
    assert "no row with the id" in run("show", "none", status=1)


def test_csv_has_no_cell_that_a_program_for_tables_would_run(run: Any) -> None:
    table = list(csv.DictReader(io.StringIO(run("export", "--format", "csv"))))
    assert len(table) == 33
    last = table[-1]
    assert last["agent"].startswith("'=HYPERLINK") and last["outcome"] == "refused" and last["code"] == "4005"
    assert json.loads(last["arguments"])["of"] == "50%_done"
    assert all(not cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in table for cell in row.values())


def test_export_is_json_lines_oldest_first(run: Any) -> None:
    rows = [json.loads(line) for line in run("export", "--kind", "call").splitlines()]
    assert [row["number"] for row in rows[:2]] == [2, 3] and len(rows) == 31
    assert rows[0]["arguments"]["head"] == 100 and len(rows[0]["blake3"]) == 64 and "sha256" not in rows[0]
    assert datetime.fromisoformat(rows[0]["time"]).tzinfo is not None


def test_verify_says_whether_the_record_is_whole(run: Any, record: Path, tmp_path: Path) -> None:
    head = run("head").strip()
    assert run("verify", "--head", head).startswith("33 rows, whole; head 33:")
    assert json.loads(run("verify", "--json"))["whole"] is True
    run("verify", "--head", "rubbish", status=2)
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(record.read_bytes())
    changed(copy, "UPDATE rows SET outcome = 'succeeded' WHERE number = 33")
    said = run("verify", "--file", str(copy), "--head", head, status=1)
    assert "row 33 was changed" in said and "NOT whole" in said


def test_what_cannot_be_read_is_said(run: Any, tmp_path: Path) -> None:
    assert "there is no record" in run("list", "--file", str(tmp_path / "none"), status=1)
    assert "is no moment" in run("list", "--since", "tuesday", status=2)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("90m", "2026-03-05T10:30:00+00:00"),
        ("2d", "2026-03-03T12:00:00+00:00"),
        ("today", "2026-03-05T00:00:00+00:00"),
        ("yesterday", "2026-03-04T00:00:00+00:00"),
        ("2026-03-01", "2026-03-01T00:00:00+00:00"),
        ("2026-03-01T14:00+02:00", "2026-03-01T12:00:00+00:00"),
    ],
)
def test_a_moment_is_read_as_people_write_it(text: str, meant: str) -> None:
    now = datetime(2026, 3, 5, 12, tzinfo=UTC)
    assert moment(text, now) == int(datetime.fromisoformat(meant).timestamp() * 1e6)


def test_an_empty_query_finds_everything() -> None:
    assert where(RecordQuery()) == ("1", [])
