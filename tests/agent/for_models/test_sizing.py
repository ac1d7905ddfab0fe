"""Texts in pieces."""

from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.agent.for_models.sizing import text_piece


@given(st.text(alphabet="ab \n", max_size=300), st.integers(1, 50))
def test_the_pieces_of_a_text_are_the_text(text: str, most: int) -> None:
    parts, offset = list[str](), 0
    while True:
        piece = text_piece(text, offset, most)
        assert len(piece.text) <= most
        assert piece.total == len(text)
        parts.append(piece.text)
        if piece.next is None:
            break
        assert piece.next > offset
        assert piece.note("more").startswith(f"[{len(text) - piece.next} characters more: ")
        offset = piece.next
    assert "".join(parts) == text


def test_a_cut_is_at_the_end_of_a_line_or_a_word_if_one_is_near() -> None:
    assert text_piece("one two\nthree four", 0, 10).text == "one two\n"
    assert text_piece("one two three", 0, 9).text == "one two "
    assert text_piece("abcdefghijkl", 0, 5).text == "abcde"


def test_beyond_the_end_there_is_nothing() -> None:
    assert text_piece("abc", 10).text == ""
    assert text_piece("abc", 10).next is None


def test_a_note_says_how_to_read_on_and_the_last_piece_has_none() -> None:
    first = text_piece("one two three", 0, 9)
    assert first.with_note("read it with page=1") == (
        "one two \n\n[5 characters more: read it with page=1 and offset=8]"
    )
    last = text_piece("one two three", 8)
    assert (last.note("read it"), last.with_note("read it")) == ("", "three")
