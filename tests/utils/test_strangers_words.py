"""The words of strangers beside ours and beside those of other strangers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.utils.strangers_words import (
    quoted_as_seen,
    quoted_words,
    told,
    told_in_schema,
    told_on_line,
)

#: Whatever a reader or a program may take for the end of a line.
BREAKS = ("\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
TOKEN = "ghp_" + "a1" * 18


@pytest.mark.parametrize("line_break", BREAKS, ids=ascii)
def test_no_line_of_a_stranger_looks_like_a_heading_of_somebody_else(line_break: str) -> None:
    said = f"mine{line_break}The MCP server bank on pc says:{line_break}{line_break}# bank"
    for shown in (quoted_words(said), quoted_as_seen(said)):
        assert all(line.startswith(">") for line in shown.splitlines())
    assert len(told_on_line(said).splitlines()) == 1


@given(st.text(max_size=300))
def test_whatever_is_said_every_line_is_quoted_and_no_character_is_hidden(said: str) -> None:
    for shown in (quoted_words(said), quoted_as_seen(said)):
        assert all(line.startswith(">") for line in shown.split("\n")) or not shown
        assert len(shown.split("\n")) == len(shown.splitlines()) or not shown


@pytest.mark.parametrize("hidden", ["\x1b[2J", "\u202e", "\u2066", "\u200b", "\U000e0041", "\ufe0f", "\x07"], ids=ascii)
def test_what_shows_as_nothing_or_moves_others_becomes_an_escape(hidden: str) -> None:
    for shown in (told(f"a{hidden}b"), told_on_line(f"a{hidden}b"), quoted_words(f"a{hidden}b")):
        assert hidden[0] not in shown and "\\u" in shown


def test_a_secret_is_not_told_on_also_where_the_text_is_cut_and_content_is() -> None:
    assert told(f"use {TOKEN}\nor token=hunter22") == "use ***\nor token=***"
    assert TOKEN[:8] not in told("x" * 95 + TOKEN, 100)
    assert len(told("word " * 1000, 100)) == 101
    assert TOKEN in quoted_as_seen(f"the window shows {TOKEN}")


def test_titles_and_descriptions_of_a_schema_are_told_and_names_and_values_stay() -> None:
    schema = {
        "description": "a\x1b[2J",
        "properties": {"de\u202e": {"title": f"T {TOKEN}", "enum": ["\u202e"], "description": {"not": "a text"}}},
        "anyOf": [{"description": "b\u202e"}, True],
    }
    assert told_in_schema(schema) == {
        "description": "a\\u001b[2J",
        "properties": {"de\u202e": {"title": "T ***", "enum": ["\u202e"], "description": {"not": "a text"}}},
        "anyOf": [{"description": "b\\u202e"}, True],
    }
    assert told_in_schema(None) is None
