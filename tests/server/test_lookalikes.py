"""Names that look alike have one skeleton, and plain names stay apart."""

import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.server.lookalikes import _table, skeleton

CYRILLIC_LAPTOP = "l\u0430\u0440t\u043e\u0440"


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("laptop", CYRILLIC_LAPTOP),
        ("laptop", "\uff4c\uff41\uff50\uff54\uff4f\uff50"),  # fullwidth
        ("laptop", "\U0001d425\U0001d41a\U0001d429\U0001d42d\U0001d428\U0001d429"),  # mathematical bold
        ("laptop", "LapTop"),
        ("iris", "\u0131r\u0131s"),  # without dots
        ("Iris", "\u0130ris"),  # with one
        ("iris", "i\u0307ris"),  # with a second one
        ("BOB", "\u0412\u041e\u0412"),  # Cyrillic capitals whose small letters look like others
        ("bob", "\u0412\u041e\u0412"),
        ("HOST", "\u0397\u039f\u0405\u0422"),  # Greek and Cyrillic
        ("NEO", "\u039d\u0395\u039f"),
        ("Ivan", "\u0406van"),
        ("\u0412\u043e\u0432\u0430", "\u0432\u043e\u0432\u0430"),  # two cases of a Cyrillic name
        ("caf\u00e9", "cafe\u0301"),
        ("caf\u00e9", "caf\u0435\u0301"),
        ("file", "\ufb01le"),
        ("lap\u200dtop", "laptop"),
        ("\u2699", "\u2699\ufe0f"),
        ("my laptop", "my\u00a0laptop"),
        ("pc-1", "pc\u20131"),
        ("mac", "\U000118e3ac"),
    ],
)
def test_names_that_look_alike_have_one_skeleton(name: str, other: str) -> None:
    assert skeleton(name) == skeleton(other)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("caf\u00e9", "cafe"),
        ("\u90e8\u95e8", "\u90e8\u5c4b"),
        ("M\u00fcller", "Mueller"),
        ("pc-1", "pc-2"),
        ("a", "\u044f"),
    ],
)
def test_names_that_do_not_look_alike_stay_apart(name: str, other: str) -> None:
    assert skeleton(name) != skeleton(other)


def test_plain_characters_stay_apart_except_for_their_case() -> None:
    plain = string.digits + string.ascii_letters + string.punctuation + " "
    assert len({skeleton(each) for each in plain}) == len({each.casefold() for each in plain})


def test_what_stands_for_a_character_stands_for_itself() -> None:
    for code, shown in _table().items():
        # Behind a letter, where a mark may stand, too.
        assert skeleton(f"\u0436{shown}") == skeleton(f"\u0436{chr(code)}"), hex(code)


@given(st.text(st.characters(max_codepoint=127), max_size=64), st.text(st.characters(max_codepoint=127), max_size=64))
def test_plain_names_differ_as_they_did_but_for_case(name: str, other: str) -> None:
    assert (skeleton(name) == skeleton(other)) == (name.casefold() == other.casefold())


@given(st.text(max_size=16))
def test_a_skeleton_is_its_own_skeleton_and_neither_case_nor_width_matters(name: str) -> None:
    assert skeleton(skeleton(name)) == skeleton(name)
    assert skeleton(unicodedata.normalize("NFKC", name)) == skeleton(name)
