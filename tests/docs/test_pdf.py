"""What of a PDF was split, doubled or lost in real files, each made again by a few operators."""

from collections.abc import Sequence

import pytest

from a2c_smcp.docs.formats.pdf_areas import Area, seen_edges
from a2c_smcp.docs.formats.pdf_tables import filled, grids
from a2c_smcp.docs.formats.pdf_text import Box, Glyph, lines_of
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Annotation, Form, Heading, Image, Link, Table, Text
from tests.docs.pdfs import drawn_pdf, opened, say


def page_of(*contents: str, **more: object) -> Page:
    return opened(drawn_pdf(*contents, **more)).page(0)  # type: ignore[arg-type]


def texts(page: Page) -> list[str]:
    return [element.text for element in page.elements if isinstance(element, Text)]


# --- words


def test_letters_that_are_moved_apart_a_little_stay_one_word() -> None:
    kerned = "BT /F1 10 Tf 1 0 0 1 72 700 Tm [(Ti) -90 (ka) -350 (-200,1) -80 (36,703.3) -70 (1)] TJ ET"
    assert texts(page_of(kerned)) == ["Tika -200,136,703.31"]


def test_words_in_objects_of_their_own_are_not_split() -> None:
    # Helvetica's "T" is 6.1 points wide here, so the second object starts where the first one ends.
    assert texts(page_of("\n".join([say(72, 700, "T"), say(78.1, 700, "ika")]))) == ["Tika"]


def test_letters_that_are_spaced_out_stay_one_word() -> None:
    spaced = "BT /F1 10 Tf 3 Tc 1 0 0 1 72 700 Tm (Singapor) Tj 0 Tc (e and Rome) Tj ET"
    assert texts(page_of(spaced)) == ["Singapore and Rome"]


def test_chinese_text_with_gaps_has_no_blanks() -> None:
    spread = f"BT /F2 10 Tf 4 Tc 1 0 0 1 72 700 Tm <{'租金每年支付'.encode('utf-16-be').hex()}> Tj ET"
    assert texts(page_of(spread)) == ["租金每年支付"]


def test_chinese_lines_are_joined_without_a_blank_and_latin_ones_with_one() -> None:
    page = page_of("\n".join([say(72, 700, "租金每年"), say(72, 688, "支付一次")]))
    assert texts(page) == ["租金每年支付一次"]
    assert texts(page_of("\n".join([say(72, 700, "one line"), say(72, 688, "and more")]))) == ["one line and more"]


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [("a simple exam-", "ple of it", "a simple example of it"), ("made in Baden-", "Baden", "made in Baden-Baden")],
)
def test_a_word_that_is_divided_at_the_end_of_a_line_is_joined(first: str, second: str, whole: str) -> None:
    assert texts(page_of("\n".join([say(72, 700, first), say(72, 688, second)]))) == [whole]


@pytest.mark.parametrize(("written", "read"), [("1\xad12 months", "1-12 months"), ("a gar\xadden", "a garden")])
def test_a_soft_hyphen_is_shown_between_figures(written: str, read: str) -> None:
    [line] = lines_of([Glyph(word, Box(index, 0, index + 1, 9), 9) for index, word in enumerate(written)])
    assert line.text == read


LONG = "\n".join(say(72, 800 - row, f"row {row} of many words on one page " * 4, 1) for row in range(700))


def test_a_sheet_with_very_much_text_becomes_several_pages() -> None:
    document = opened(drawn_pdf(LONG, say(72, 700, "the last page")))
    assert document.page_count == 3
    pages = [document.page(index) for index in range(3)]
    assert [page.title for page in pages] == ["Page 1", "Page 1 (2)", "Page 2"]
    assert max(len(text) for page in pages for text in texts(page)) <= 16_000
    assert sum(map(len, texts(pages[0]))) <= 60_000
    words = " ".join(text for page in pages for text in texts(page)).split()
    rows = [f"row {row} of many words on one page" for row in range(700) for _ in range(4)]
    assert words == " ".join([*rows, "the last page"]).split()
    assert texts(pages[1])[0].startswith("row ")  # no row is cut
    assert not any(isinstance(element, Annotation) for page in pages for element in page.elements)


def test_in_a_file_with_many_sheets_a_long_one_is_cut_and_says_so() -> None:
    document = opened(drawn_pdf(LONG, *[say(72, 700, "short")] * 8))
    assert document.page_count == 9
    [cut] = [element for element in document.page(0).elements if isinstance(element, Annotation)]
    assert cut.text.startswith("Left out here: what follows the first 5")
    assert cut.text.endswith(" characters.")


# --- the order of reading


LEFT = [f"Left line number {number} of the story" for number in "abcdef"]
RIGHT = [f"Right line number {number} of the story" for number in "abcdef"]


def test_two_columns_that_share_their_lines_are_read_one_after_the_other() -> None:
    heading = say(72, 760, "One heading that runs across both of the two columns", 10)
    rows = [
        f"{say(72, 700 - 12 * row, left)}\n{say(320, 700 - 12 * row, right)}"
        for row, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True))
    ]
    assert texts(page_of("\n".join([heading, *rows])))[1:] == [" ".join(LEFT), " ".join(RIGHT)]


def test_a_table_without_lines_is_read_row_by_row() -> None:
    rows = [f"{say(72, 700 - 12 * row, f'item {row}')}\n{say(320, 700 - 12 * row, f'{row}.50')}" for row in range(6)]
    assert texts(page_of("\n".join(rows))) == [" ".join(f"item {row} {row}.50" for row in range(6))]


# --- ruled tables


def ruled(xs: Sequence[float], ys: Sequence[float]) -> str:
    lines = [f"{x} {ys[0]} m {x} {ys[-1]} l S" for x in xs] + [f"{xs[0]} {y} m {xs[-1]} {y} l S" for y in ys]
    return "\n".join(lines)


def test_a_ruled_table_is_a_table_and_its_text_is_nowhere_else() -> None:
    cells = [["year", "rent"], ["2024", "1000"], ["2025", "1100"]]
    words = [say(75 + 100 * c, 685 - 20 * r, text) for r, row in enumerate(cells) for c, text in enumerate(row)]
    before, after = say(72, 740, "The rent of the garden"), say(72, 600, "is paid in spring")
    page = page_of("\n".join([before, ruled([72, 172, 272], [700, 680, 660, 640]), *words, after]))
    assert [element.category for element in page.elements] == ["text", "table", "text"]
    table = page.elements[1]
    assert isinstance(table, Table)
    assert (table.headers, table.rows) == (["year", "rent"], [["2024", "1000"], ["2025", "1100"]])
    assert table.bbox == pytest.approx([72, 142, 272, 202], abs=0.5)
    assert texts(page) == ["The rent of the garden", "is paid in spring"]


def test_a_merged_cell_has_its_text_once() -> None:
    frame = "72 640 200 60 re S 72 680 m 272 680 l S 72 660 m 272 660 l S 172 640 m 172 680 l S"
    words = [say(75, 685, "both"), say(75, 665, "a"), say(175, 665, "b"), say(75, 645, "c"), say(175, 645, "d")]
    [table] = page_of("\n".join([frame, *words])).elements
    assert isinstance(table, Table)
    assert (table.headers, table.rows) == (["both", ""], [["a", "b"], ["c", "d"]])


def test_the_lines_of_a_chart_and_a_frame_around_text_are_no_tables() -> None:
    chart = ruled([100, 200, 300], [400, 300, 200])
    axis = [say(90, 190, "0"), say(190, 190, "1"), say(290, 190, "2")]
    frame = "72 600 400 100 re S"
    page = page_of("\n".join([chart, *axis, frame, say(80, 650, "A framed remark")]))
    assert not any(isinstance(element, Table) for element in page.elements)
    assert "A framed remark" in texts(page)


def test_a_layout_with_long_texts_is_running_text() -> None:
    long = "word " * 400
    glyphs = [Glyph(letter, None if letter == " " else Box(10, 10, 11, 11), 1) for letter in long]
    [grid] = grids([Box(0, y, 100, y) for y in (0, 50, 100)] + [Box(x, 0, x, 100) for x in (0, 50, 100)])
    assert filled(grid, glyphs) is None


def test_thousands_of_lines_are_a_drawing_and_cost_nothing() -> None:
    assert (
        grids([Box(0, y * 4, 9000, y * 4) for y in range(2000)] + [Box(x * 4, 0, x * 4, 9000) for x in range(2000)])
        == []
    )


COSTS = ["salaries", "travel", "rent", "telephone"]


def table_of(*contents: str) -> list[list[str]]:
    """The rows of the only table of a page, the header row first."""
    [table] = [element for element in page_of("\n".join(contents)).elements if isinstance(element, Table)]
    return [list(table.headers), *([str(cell) for cell in row] for row in table.rows)]


def test_rows_without_a_line_between_them_are_rows() -> None:
    frame = ruled([72, 172, 272], [700, 680, 620, 560])
    names = [say(75, 685, "year"), say(175, 685, "rent")]
    rows = [f"{say(75, 665 - 12 * row, f'year {row}')}\n{say(175, 665 - 12 * row, f'{row}00')}" for row in range(8)]
    assert table_of(frame, *names, *rows) == [["year", "rent"], *([f"year {row}", f"{row}00"] for row in range(8))]


def test_a_row_of_such_a_group_may_have_an_empty_cell() -> None:
    frame = ruled([72, 172, 272, 372], [700, 680, 640])
    names = [say(75 + 100 * column, 685, name) for column, name in enumerate(["year", "rent", "note"])]
    rows = [
        say(75, 665, "2024"),
        say(175, 665, "100"),
        say(275, 665, "paid"),
        say(75, 650, "2025"),
        say(175, 650, "200"),
    ]
    assert table_of(frame, *names, *rows)[1:] == [["2024", "100", "paid"], ["2025", "200", ""]]


def test_the_lines_of_a_long_text_in_a_cell_are_one_text() -> None:
    frame = ruled([72, 172, 272], [700, 680, 640])
    names = [say(75, 685, "who"), say(175, 685, "what")]
    cells = [
        say(75, 665, "the owner of"),
        say(175, 665, "brings the"),
        say(75, 650, "the garden"),
        say(175, 650, "best roses"),
    ]
    assert table_of(frame, *names, *cells)[1] == ["the owner of the garden", "brings the best roses"]


def test_a_label_beside_a_group_of_rows_is_in_the_first_row() -> None:
    frame = ruled([72, 172, 272, 372], [700, 680, 640])
    names = [say(75 + 100 * column, 685, name) for column, name in enumerate(["trade", "people", "sales"])]
    rows = [say(175 + 100 * (n % 2), 668 - 16 * (n // 2), f"{n}00") for n in range(4)]
    assert table_of(frame, *names, say(75, 660, "farms"), *rows)[1:] == [["farms", "000", "100"], ["", "200", "300"]]


def test_a_column_without_lines_beside_ruled_rows_has_its_lines_in_the_rows() -> None:
    frame = "72 600 200 100 re S 172 600 m 172 700 l S 72 680 m 272 680 l S"
    rules = [f"172 {y} m 272 {y} l S" for y in (660, 640, 620)]
    names = [say(75, 685, "what"), say(175, 685, "costs")]
    rows = [f"{say(75, 665 - 20 * n, name)} {say(175, 665 - 20 * n, f'{n}00')}" for n, name in enumerate(COSTS)]
    assert table_of(frame, *rules, *names, *rows)[1:] == [[name, f"{n}00"] for n, name in enumerate(COSTS)]


def test_labels_that_stand_far_apart_in_a_tall_cell_are_in_their_rows() -> None:
    frame = "72 560 200 120 re S 172 560 m 172 680 l S"
    rules = [f"172 {y} m 272 {y} l S" for y in (660, 640, 620, 600, 580)]
    figures = [say(175, 665 - 20 * n, f"{n}00") for n in range(6)]
    labels = [say(75, 665 - 20 * n, name) for n, name in {0: "gross", 3: "costs", 5: "net"}.items()]
    names = ["gross", "", "", "costs", "", "net"]
    assert table_of(frame, *rules, *figures, *labels) == [[name, f"{n}00"] for n, name in enumerate(names)]
    tight = [say(75, 665 - 12 * n, name) for n, name in enumerate(("all that", "is in this", "one text"))]
    assert table_of(frame, *rules, *figures, *tight)[0] == ["all that is in this one text", "000"]


def test_boxes_with_lines_between_them_are_a_drawing() -> None:
    boxes = "72 600 100 60 re S 172 630 m 250 630 l S 250 560 100 120 re S 300 560 m 300 520 l S 72 480 278 40 re S"
    words = [say(80, 640, "Start"), say(180, 640, "goes to"), say(255, 640, "Work"), say(80, 490, "End")]
    page = page_of("\n".join([boxes, *words]))
    assert not any(isinstance(element, Table) for element in page.elements)
    [grid] = grids(
        [Box(0, y, 90, y) for y in (0, 90)]
        + [Box(x, 0, x, 90) for x in (0, 90)]
        + [Box(30, 0, 30, 30), Box(30, 30, 90, 30)]
    )
    assert len(grid.odd_cells) == 1


def test_a_hyphen_at_the_end_of_a_cell_is_kept() -> None:
    cells = [["-code-", "-rent-"], ["-one-", "-two-"]]
    words = [say(75 + 100 * c, 685 - 20 * r, text) for r, row in enumerate(cells) for c, text in enumerate(row)]
    assert table_of(ruled([72, 172, 272], [700, 680, 660]), *words) == cells


# --- coloured areas


def area(x: float, y: float, width: float, height: float, grey: float) -> str:
    return f"{grey} g {x} {y} {width} {height} re f 0 g"


def test_areas_in_the_colour_of_what_is_behind_them_are_no_cells() -> None:
    block = "0.9 g 72 640 300 60 re B 0 g"
    words = [(80, 680, "1 to be"), (80, 665, "2 or not"), (80, 650, "3 to be")]
    marks = [area(x + 40 * part, y - 2, 38, 12, 0.9) for x, y, _ in words for part in range(3)]
    page = page_of("\n".join([block, *marks, *(say(x, y, word) for x, y, word in words)]))
    assert texts(page) == ["1 to be 2 or not 3 to be"]


def test_areas_in_two_colours_are_the_rows_of_a_table() -> None:
    rows = [area(72 + 100 * c, 680 - 20 * r, 100, 20, (0.8, 0.6)[(r + c) % 2]) for r in range(3) for c in range(2)]
    words = [say(75 + 100 * (n % 2), 685 - 20 * (n // 2), f"{n}{n}") for n in range(6)]
    assert table_of(*rows, *words) == [["00", "11"], ["22", "33"], ["44", "55"]]


def test_an_edge_between_areas_of_one_colour_is_not_seen() -> None:
    grey, red = (200, 200, 200), (200, 0, 0)
    upper, lower, other = Area(Box(0, 0, 50, 10), grey), Area(Box(0, 10, 50, 20), grey), Area(Box(0, 20, 50, 30), red)
    level = sorted(edge.y0 for edge in seen_edges([upper, lower, other]) if edge.y0 == edge.y1)
    assert level == [0, 20, 20, 30]
    assert seen_edges([Area(Box(0, 0, 50, 10), (255, 255, 255))]) == []
    assert len(seen_edges([Area(Box(0, 0, 50, 10), (255, 255, 255), is_lined=True)])) == 4


def test_pieces_of_one_line_in_a_cell_are_no_rows() -> None:
    frame = ruled([72, 272, 472], [700, 680, 660])
    names = [say(75, 685, "first"), say(275, 685, "second")]
    pieces = [say(x, 665, f"{x}") for x in (215, 145, 75, 415, 345, 275)]  # from right to left: pdfium ends the line
    assert len(table_of(frame, *names, *pieces)) == 2


def test_figures_in_brackets_below_others_are_in_their_row() -> None:
    frame = ruled([72, 172, 272], [700, 680, 640])
    names = [say(75, 685, "reach"), say(175, 685, "load")]
    rows = [say(75, 665, "13 ft"), say(175, 665, "2,170 lb"), say(75, 650, "(4.0 m)"), say(175, 650, "(990 kg)")]
    assert table_of(frame, *names, *rows)[1:] == [["13 ft (4.0 m)", "2,170 lb (990 kg)"]]


def test_a_word_on_a_line_of_the_grid_is_not_cut() -> None:
    frame = "\n".join([ruled([72, 132, 192], [640, 620, 600]), "72 640 120 40 re S 132 600 m 132 680 l S"])
    over = say(75, 665, "Returned/Disposition")  # it ends behind the line at 132
    cells = [say(75 + 60 * (n % 2), 645 - 20 * (n // 2), f"{n}{n}") for n in range(6)]
    assert table_of(frame, over, *cells) == [["Returned/Disposition 00", "11"], ["22", "33"], ["44", "55"]]


def test_cells_that_stand_close_together_are_two_words() -> None:
    # Helvetica's "W" is 9.4 points wide here: the first cell ends at 129.8, and the second one starts at 131.5.
    frame = ruled([72, 130.6, 200], [700, 680, 660])
    cells = [say(120.4, 685, "W"), say(131.5, 685, "B"), say(75, 665, "1"), say(135, 665, "2")]
    assert table_of(frame, *cells) == [["W", "B"], ["1", "2"]]


def test_a_grid_whose_text_is_turned_is_read_as_running_text() -> None:
    def turned(x: int, y: int, text: str) -> str:
        return f"BT /F1 10 Tf 0 1 -1 0 {x} {y} Tm ({text}) Tj ET"

    cells = [["year", "rent"], ["2024", "1000"], ["2025", "1100"]]
    words = [turned(85 + 20 * r, 605 + 50 * c, text) for r, row in enumerate(cells) for c, text in enumerate(row)]
    page = page_of("\n".join([ruled([72, 92, 112, 132], [700, 650, 600]), *words]))
    assert not any(isinstance(element, Table) for element in page.elements)
    assert " ".join(texts(page)).split() == ["year", "rent", "2024", "1000", "2025", "1100"]


def test_a_grid_with_long_columns_only_is_read_line_by_line() -> None:
    frame = ruled([72, 172, 272], [700, 680, 560])
    names = [say(75, 685, "who"), say(175, 685, "what")]
    rows = [
        f"{say(75, 665 - 12 * row, f'owner {letter}')}\n{say(175, 665 - 12 * row, f'rose {letter}')}"
        for row, letter in enumerate("abcdefgh")
    ]
    page = page_of("\n".join([frame, *names, *rows]))
    assert not any(isinstance(element, Table) for element in page.elements)
    assert "owner a rose a owner b rose b" in " ".join(texts(page))


# --- what stands on the page


def test_what_is_filled_into_a_form_is_read() -> None:
    fields = [
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ada Lovelace) /Rect [72 700 200 720] >>",
        "<< /Type /Annot /Subtype /Widget /FT /Btn /T (paid) /V /Yes /AS /Yes /Rect [72 660 90 680] "
        "/AP << /N << /Yes << >> /Off << >> >> >> >>",
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (remark) /Rect [72 600 200 620] >>",
    ]
    page = page_of(say(72, 760, "A form"), fields=fields)
    [form] = [element for element in page.elements if isinstance(element, Form)]
    assert form.values == {"name": "Ada Lovelace", "paid": True, "remark": None}


def test_a_note_on_the_page_is_an_annotation_with_its_author() -> None:
    note = "<< /Type /Annot /Subtype /Text /Contents (Ask the owner) /T (Ada) /Rect [100 100 120 120] >>"
    page = page_of(say(72, 760, "A page"), annotations=[note])
    [found] = [element for element in page.elements if isinstance(element, Annotation)]
    assert (found.text, found.author, found.bbox) == ("Ask the owner", "Ada", [100, 722, 120, 742])


def test_elements_carry_their_box_and_a_turned_page_has_boxes_as_it_is_shown() -> None:
    link = "<< /Type /Annot /Subtype /Link /Rect [70 690 200 710] /A << /S /URI /URI (http://x.example) >> >>"
    content = (
        say(72, 700, "Words", 20)
        + f" q 100 0 0 50 200 300 cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q {say(72, 650, 'text ' * 9)}"
    )
    page = page_of(content, annotations=[link])
    boxes = {type(element): element.bbox for element in page.elements}
    assert boxes[Heading] == pytest.approx([72, 122, 130, 147], abs=8)
    assert boxes[Image] == [200, 492, 300, 542]
    assert boxes[Link] == [70, 132, 200, 152]
    turned = page_of(content, annotations=[link], page="/Rotate 90")
    assert {type(element): element.bbox for element in turned.elements}[Image] == [300, 200, 350, 300]


def test_a_page_that_cannot_be_read_costs_that_page_only() -> None:
    data = drawn_pdf(say(72, 700, "the first"), say(72, 700, "the second"), say(72, 700, "the third"))
    document = opened(data.replace(b"/Kids [4 0 R 6 0 R", b"/Kids [4 0 R 1 0 R"))
    assert [texts(document.page(index)) for index in range(3)] == [
        ["the first"],
        ["This page cannot be read: Failed to load page."],
        ["the third"],
    ]
