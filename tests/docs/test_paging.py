"""What a page is, as properties."""

import io

from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.docs.paging import PAGE, blocks_of_lines, sections, split_table
from a2c_smcp.mcp_server.elements import Element, Heading, Table, Text

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
    parts = list(split_table(Table(["n"], [[number] for number in range(rows)])))
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
