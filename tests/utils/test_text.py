"""Words of others, for a terminal, a page and a log: no character of them rules, hides or turns anything."""

import json
import sys
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.utils.text import (
    MAX_QUOTED,
    first_invisible_character,
    harmless,
    has_control_characters,
    on_one_line,
    printable,
    visible,
    words,
)

_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
#: Texts with many of the characters that matter.
_TEXTS = st.text() | st.text(st.characters(categories=("Cc", "Cf", "Cs", "Zl", "Zp", "Mn", "So")))


def test_no_character_that_unicode_calls_invisible_is_shown_as_it_is() -> None:
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        if unicodedata.category(character) in _UNSEEN and character not in "\n\t":
            assert character not in visible(character), hex(number)


@pytest.mark.parametrize("shown", [visible, harmless, printable])
@given(text=_TEXTS)
def test_what_a_terminal_is_given_has_no_power_over_it(shown: Callable[[str], str], text: str) -> None:
    given = shown(text)
    assert not [each for each in given if unicodedata.category(each) in _UNSEEN and each not in "\n\t"]
    assert shown(given) == given
    if shown is printable:
        assert "\n" not in given


@given(_TEXTS)
def test_parts_of_a_text_are_the_text_and_its_escapes(text: str) -> None:
    assert "".join(words(text)) == visible(text)
    assert "".join(words(text)[::2]) in text or len(words(text)) > 1
    assert all(part.startswith("\\") for part in words(text)[1::2])


@given(_TEXTS)
def test_json_without_its_hidden_characters_is_the_same_json(text: str) -> None:
    assert json.loads(visible(json.dumps([text], ensure_ascii=False))) == [text]


def test_a_backslash_that_was_typed_is_told_from_an_escape() -> None:
    assert words("a\u202eb") == ["a", "\\u202e", "b"]
    assert words("a\\u202eb") == ["a\\u202eb"]


def test_a_sign_that_is_drawn_as_an_emoji_stays_and_a_selector_elsewhere_is_shown() -> None:
    assert visible("⚠\ufe0f ❤\ufe0f") == "⚠\ufe0f ❤\ufe0f"
    assert visible("\ufe0fa\ufe0f1\ufe0f⚠\ufe0f\ufe0f") == "\\ufe0fa\\ufe0f1\\ufe0f⚠\ufe0f\\ufe0f"
    assert first_invisible_character("⚠\ufe0f") == "\ufe0f"  # not in a name


def test_line_breaks_of_other_systems_are_line_breaks() -> None:
    assert harmless("a\r\nb\rc") == "a\nb\\rc"
    assert printable("a\nb") == "a\\nb"


def test_a_log_line_stays_short_when_all_of_it_is_escapes() -> None:
    assert len(on_one_line("\U000e0041" * 1_000_000)) <= MAX_QUOTED + 1


@pytest.mark.parametrize(
    ("text", "control", "invisible"),
    [
        ("plain ü 漢", False, None),
        ("a\nb", True, None),
        ("a\u2028b", True, None),
        ("\x9b", True, None),
        ("a\u202eb", False, "\u202e"),
        ("a\u200db", False, None),
        ("a\u200d", False, "\u200d"),
        ("\u3164", False, "\u3164"),
    ],
)
def test_a_name_with_what_nobody_sees_is_noticed(text: str, control: bool, invisible: str | None) -> None:
    assert has_control_characters(text) is control
    assert first_invisible_character(text) == invisible
