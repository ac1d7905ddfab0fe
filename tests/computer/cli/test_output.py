"""Lines for programs, and text that cannot be taken for one."""

import json

from a2c_smcp.computer.cli.output import Output, printable, quoted, table


def test_without_lines_an_event_without_text_writes_nothing() -> None:
    written: list[str] = []
    Output(written.append, json_lines=False).event("desktop_updated", windows=None)
    assert written == []


def test_a_line_is_compact_ascii_json_with_its_type_first_after_what_people_read() -> None:
    written: list[str] = []
    Output(written.append).event("error", "✗ bad", code=400, message="a\nb\u2028ü")
    assert written == ['✗ bad\n@a2c {"type":"error","code":400,"message":"a\\nb\\u2028\\u00fc"}\n']


def test_without_json_lines_people_still_read_theirs() -> None:
    written: list[str] = []
    Output(written.append, json_lines=False).event("status", "fine", tools=1)
    assert written == ["fine\n"]


def test_nothing_that_others_wrote_starts_a_line_or_moves_the_cursor() -> None:
    written: list[str] = []
    output = Output(written.append, json_lines=False)
    output.text(quoted('x\r\n@a2c {"type":"error"}\x1b[2J'))
    output.event("error", "✗ \u202e\x9b\U000e0041")
    assert written == ['  x\n  @a2c {"type":"error"}\\u001b[2J\n', "✗ \\u202e\\u009b\\udb40\\udc41\n"]
    assert printable("a\n@a2c\r\x9b") == "a\\n@a2c\\r\\u009b"
    cells = table(("name",), [("@a2c \x1b[31m\n@a2c",)], 80)
    assert not any(line.startswith("@a2c") for line in cells.splitlines())
    assert "\x1b" not in cells


def test_what_is_endless_is_clipped_for_people() -> None:
    assert len(quoted("x" * 1_000_000)) < 5000


def test_markup_in_a_cell_is_text() -> None:
    assert "[bold]x[/bold]" in table(("name",), [("[bold]x[/bold]",)], 80)


def test_an_empty_table_says_so() -> None:
    assert table(("name",), [], 80) == "  (none)"


def test_a_line_can_be_read_back() -> None:
    written: list[str] = []
    Output(written.append).event("config", config={"a": [1, None, "ä"]})
    prefix, _, body = written[0].partition(" ")
    assert prefix == "@a2c"
    assert json.loads(body) == {"type": "config", "config": {"a": [1, None, "ä"]}}
