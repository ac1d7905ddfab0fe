"""Where commands print: a terminal gets no power out of other people's words, a pipe gets the words."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

import a2c_smcp
from a2c_smcp.terminal.screen import aligned, cells

PACKAGE = Path(a2c_smcp.__file__).parent
EVIL = "a\x1b]52;c;aGk=\x07\x9b2J\u202eb\U000e0041\nc\r\nd"
SCRIPT = "import sys; from a2c_smcp.terminal.screen import say; say({text!r}, **{options})"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal(**options: bool) -> str:
    script = SCRIPT.format(text=EVIL, options=options)
    child = pexpect.spawn(sys.executable, ["-c", script], timeout=60, encoding="utf-8", dimensions=(24, 200))
    try:
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)
    return (child.before or "").replace("\r\n", "\n")


@pytest.mark.parametrize("err", [False, True])
def test_a_terminal_is_shown_escapes(err: bool) -> None:
    assert on_a_terminal(err=err) == "a\\u001b]52;c;aGk=\\u0007\\u009b2J\\u202eb\\udb40\\udc41\nc\nd\n"


def test_a_line_of_ours_stays_one_line() -> None:
    assert on_a_terminal(one_line=True) == "a\\u001b]52;c;aGk=\\u0007\\u009b2J\\u202eb\\udb40\\udc41\\nc\\r\\nd\n"


def test_a_terminal_gets_everything_where_the_person_asked_for_it() -> None:
    assert on_a_terminal(raw=True) == f"{EVIL}\n"


def test_a_pipe_gets_everything() -> None:
    script = SCRIPT.format(text=EVIL, options={"one_line": True})
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=True)
    assert done.stdout.decode() == f"{EVIL}\n"


def test_a_table_in_a_pipe_is_aligned_by_what_is_seen_and_never_wrapped() -> None:
    rows = [("name", "what"), ("桌面", "a\nb"), ("x" * 200, "")]
    assert list(aligned(rows)) == ["name" + " " * 198 + "what", "桌面" + " " * 198 + "a", " " * 202 + "b", "x" * 200]


def test_a_table_in_a_pipe_shows_control_characters_as_escapes() -> None:
    row = ("a\nb\x1b[2J", "c\nd\x1b")
    assert list(aligned([row])) == ["a\\nb\\u001b[2J  c", "               d\\u001b"]
    assert "".join(aligned([row], raw=True)).count("\x1b") == 2


def test_only_the_last_cell_of_a_row_has_several_lines() -> None:
    row = ("[bold]a\nb", "c\nd\x1b")
    assert [cell.plain for cell in cells(row, _Terminal())] == ["[bold]a\\nb", "c\nd\\u001b"]
    for as_it_is in (cells(row, io.StringIO()), cells(row, _Terminal(), raw=True)):
        assert tuple(cell.plain for cell in as_it_is) == row


def test_no_other_module_prints() -> None:
    """`rich` draws tables and bars elsewhere; what it is given passes `cells`, or is ours."""
    found = [
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if re.search(r"(?<![\w.])print\(|\becho\(|sys\.std(?:out|err)\.write", path.read_text())
    ]
    assert found == []
