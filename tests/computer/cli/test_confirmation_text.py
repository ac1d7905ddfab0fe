"""A confirmation at a terminal: every argument has its place, and nothing in it is hidden or looks like ours."""

import itertools
import unicodedata
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.cli.confirmation_text import first_look, whole
from a2c_smcp.computer.decisions.book import Confirmation, ToolDefinition

WIDTH = 80
DEFINITION = ToolDefinition(
    "Write\x1b[2J",
    "Writes a note.\n\u202eetirW",
    {"destructiveHint": True, "readOnlyHint": False, "title": "Write"},
    is_dangerous=True,
)
PLAIN = ToolDefinition()
CALL = WatchedCall("c-1", "r", "max", "notes", "write", "notes.write", {}, 30, 0.0, "lab")

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.text(st.characters(categories=("Cf", "Cc", "Lo", "So"))),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def asked(arguments: dict[str, Any], definition: ToolDefinition = PLAIN, **more: Any) -> Confirmation:
    return Confirmation("d-1", 0.0, None, replace(CALL, arguments=arguments, **more), definition)


def test_who_asks_for_what_is_said_with_what_the_server_says_about_it() -> None:
    look = first_look(asked({"text": "hello", "to": ["Ada", "Bo"], "empty": ""}, DEFINITION), WIDTH)
    assert list(look.lines) == [
        "An agent says it is max in office lab.",
        "  It asks to run write of notes",
        "  Agents know it as notes.write.",
        "  ! It may destroy something: its server says so, or its config tags it as dangerous.",
        "  Its title: Write\\u001b[2J",
        "  Its hints: destructiveHint: yes, readOnlyHint: no",
        "  What its server says about it:",
        "  │ Writes a note.",
        "  │ \\u202eetirW",
        "  With these arguments:",
        "  text: hello",
        '  to: ["Ada", "Bo"]',
        '  empty: ""',
    ]
    assert not look.is_cut and not look.has_more


def test_a_name_that_a_key_is_bound_to_stands_there_alone_with_its_key() -> None:
    lines = first_look(asked({}, key="home", claimed=False, name="write"), WIDTH).lines
    assert list(lines[:2]) == ["max in office lab asks to run write of notes", "  Its key is home."]
    assert "says it is" not in "".join(lines)


def test_a_name_with_letters_of_several_alphabets_is_pointed_at() -> None:
    look = first_look(asked({}, agent="pl\u0430nner", office=None, name="write"), WIDTH)
    assert list(look.lines) == [
        "An agent says it is pl\u0430nner.",
        "  It asks to run write of notes",
        "  ! The name pl\u0430nner has letters of several alphabets: it may look like another one.",
        "  Without arguments.",
    ]


@pytest.mark.parametrize("padding", ["\n" * 5000, " " * 5000, "line\n" * 900, "\u200b" * 5000])
def test_padding_pushes_no_argument_out_of_sight(padding: str) -> None:
    decision = asked({"first": padding + "rm -rf ~", "last": "rm -rf /"})
    look = first_look(decision, WIDTH)
    assert len(look.lines) < 100
    assert "  last: rm -rf /" in look.lines
    [left_out] = [line for line in look.lines if "not shown" in line]
    assert "more characters are not shown" in left_out
    assert ("more lines" in left_out) == ("\n" in padding)
    assert look.is_cut and look.has_more
    assert any("rm -rf ~" in line for line in whole(decision, WIDTH))


def test_very_many_arguments_and_very_long_names_are_bounded_at_first() -> None:
    decision = asked({f"key{number}": "x\n" * 100 for number in range(1000)})
    look = first_look(decision, WIDTH)
    assert len(look.lines) < 200
    assert look.lines[-1] == "  … 161 more arguments are not shown"
    assert any('"key999"' in line for line in whole(decision, WIDTH))
    long = asked({"k" * 100_000: 1})
    look = first_look(long, WIDTH)
    assert sum(map(len, look.lines)) < 1000 and look.is_cut
    assert sum(line.count("k") for line in whole(long, WIDTH)) > 100_000


def test_a_long_description_is_cut_and_holds_nothing_up() -> None:
    decision = asked({"a": 1}, ToolDefinition(None, "word\n" * 100))
    look = first_look(decision, WIDTH)
    assert look.has_more and not look.is_cut
    assert "    … 471 more characters are not shown on 95 more lines" in look.lines
    assert sum("│ word" in line for line in whole(decision, WIDTH)) == 100


def test_what_is_very_long_is_made_line_by_line() -> None:
    lines = whole(asked({"a": "x" * 10_000_000}), WIDTH)
    assert len(list(itertools.islice(lines, 1000))) == 1000


@given(st.dictionaries(st.text(), _VALUES, max_size=4), st.integers(30, 100))
def test_no_line_is_wider_than_the_terminal_or_has_what_nobody_sees(arguments: dict[str, Any], width: int) -> None:
    decision = asked(arguments, agent="a", office=None, name="write")
    for lines in (first_look(decision, width).lines, list(whole(decision, width))):
        for line in lines[1:]:
            assert line.startswith("  ")
            assert get_cwidth(line) <= max(width, 55)  # our own words are as long as they are
            assert not [each for each in line if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def test_what_changed_in_a_tool_is_shown_whole_or_says_what_is_left_out() -> None:
    before = ToolDefinition(description="Lists files.", digest="1" * 64, schema_digest="a")
    now = ToolDefinition(
        description=f"Lists {'very ' * 900}files, and removes them.", digest="2" * 64, schema_digest="a"
    )
    decision = replace(asked({}, now), allowed_before=before)
    look = first_look(decision, WIDTH)
    assert look.is_cut and look.has_more
    assert any("more characters are not shown" in line for line in look.lines)
    assert "removes them" in "".join(whole(decision, WIDTH)).replace("  │ ", "")
    short = replace(asked({}, replace(now, description="Removes files.")), allowed_before=before)
    assert "  │ [-Lists-]{+Removes+} files." in first_look(short, WIDTH).lines and not first_look(short, WIDTH).is_cut


def test_passwords_are_hidden_at_the_first_look_and_shown_to_a_person_who_wants_them() -> None:
    decision = asked({"command": "deploy --password hunter22 prod", "pin": 4711})
    look = first_look(decision, WIDTH)
    assert look.has_secrets and not look.is_cut
    shown, revealed = "\n".join(whole(decision, WIDTH)), "\n".join(whole(decision, WIDTH, secrets=True))
    for text in ("\n".join(look.lines), shown):
        assert "hunter22" not in text and "4711" not in text and "deploy --password *** (8 characters" in text
    assert "deploy --password hunter22 prod" in revealed and "pin: 4711" in revealed
    assert not first_look(asked({"command": "ls"}), WIDTH).has_secrets
