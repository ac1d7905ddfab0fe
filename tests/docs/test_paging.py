"""What a page is, as properties."""

import io

from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.docs.paging import PAGE, blocks_of_lines, element_size, pieces_of, sections, split_table
from a2c_smcp.mcp_server.elements import Code, Element, Heading, List, Table, Text
from a2c_smcp.mcp_server.rendering import plain

ELEMENTS = st.lists(
    st.one_of(st.just(Text("words")), st.integers(1, 6).map(lambda level: Heading(f"level {level}", level))),
    max_size=200,
)


@given(ELEMENTS)
def test_sections_lose_nothing_start_at_headings_and_are_not_too_long(elements: list[Element]) -> None:
    pages = sections(elements)
    assert [element for page in pages for element in page.elements] == elements
    assert all(0 < len(page.elements) <= PAGE.elements for page in pages)
    for page in pages:
        assert not any(isinstance(each, Heading) and each.level <= 2 for each in page.elements[1:])
        assert page.title


def test_a_section_that_is_too_long_goes_on_under_the_same_title() -> None:
    pages = sections([Heading("Beds", 2), *[Text("x")] * 100])
    assert [page.title for page in pages] == ["Beds", "Beds (2)"]


@given(st.integers(0, 1000))
def test_a_long_table_is_several_under_the_same_headers(rows: int) -> None:
    parts = [
        each for each in split_table(Table(["n"], [[number] for number in range(rows)])) if isinstance(each, Table)
    ]
    assert [row[0] for part in parts for row in part.rows] == list(range(rows))
    assert all(part.headers == ["n"] and len(part.rows) <= PAGE.rows for part in parts)


@given(
    st.lists(
        st.sampled_from([b"x\n", b"\n", "好的\n".encode(), b"y" * 700 + b"\n", "长".encode() * 30_000]), max_size=900
    )
)
def test_pages_of_lines_cover_the_file_and_cut_no_character(lines: list[bytes]) -> None:
    data = b"".join(lines)
    starts = [start for start, _ in blocks_of_lines(io.BytesIO(data))]
    ends = [*starts[1:], len(data)]
    pages = [data[start:end] for start, end in zip(starts, ends, strict=False)]
    assert b"".join(pages) == data
    for page in pages:
        assert page.decode("utf-8")
        assert page.count(b"\n") <= PAGE.lines
        assert len(page) <= PAGE.line_bytes


@given(
    st.lists(
        st.one_of(
            st.integers(0, 90_000).map(lambda size: Text("word " * (size // 5))),
            st.integers(0, 90_000).map(lambda size: Code("line\n" * (size // 5))),
            st.integers(0, 900).map(lambda size: List(["item " * 40] * size)),
            st.integers(0, 900).map(lambda size: Table(["n"], [["cell " * 40]] * size)),
        ),
        max_size=6,
    )
)
def test_no_page_has_more_characters_than_fit_and_no_word_is_lost_or_cut(elements: list[Element]) -> None:
    pages = sections(elements)
    assert all(sum(map(element_size, page.elements)) <= PAGE.characters for page in pages)
    found = [plain(element).split() for page in pages for element in page.elements]
    headers = sum(isinstance(element, Table) for page in pages for element in page.elements)
    given_headers = sum(isinstance(element, Table) for element in elements)
    assert sum(map(len, found)) - headers == sum(len(plain(element).split()) for element in elements) - given_headers
    assert {word for words in found for word in words} <= {"word", "line", "item", "cell", "n"}


def test_a_text_is_cut_between_lines_else_between_words_else_anywhere() -> None:
    assert list(pieces_of("aaa bbb\nccc", 9)) == ["aaa bbb", "ccc"]
    assert list(pieces_of("aaaa bbbb cccc", 10)) == ["aaaa bbbb", "cccc"]
    assert list(pieces_of("a" * 25, 10)) == ["a" * 10, "a" * 10, "a" * 5]


def test_what_is_cut_of_a_table_is_said_behind_it() -> None:
    *tables, columns, cells = split_table(Table([], [["x" * 40_000, *["1"] * 17_000]]))
    assert sum(len(each.rows[0]) for each in tables if isinstance(each, Table)) == PAGE.most_columns
    assert plain(columns) == "Left out here: columns 16385 to 17001."
    assert plain(cells) == "Left out here: the ends of 1 cells with more than 32767 characters."
