"""What the golden answers do not show: paging of tables, formulas, encodings, and what a file is taken for."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.docs.describing import describe, own_title, page_from_json, page_to_json
from a2c_smcp.docs.formats import OpenDocument, open_document
from a2c_smcp.docs.limits import DocumentLimits, Unreadable
from a2c_smcp.docs.page_cache import page_cache
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Text
from a2c_smcp.mcp_server.rendering import elements_text

CELLS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('\n,"'), max_size=8)


def opened(name: str, data: bytes) -> OpenDocument:
    document = open_document(io.BytesIO(data), name, DocumentLimits())
    assert document is not None
    return document


def pages(document: OpenDocument) -> list[Page]:
    return [document.page(index) for index in range(document.page_count)]


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=450))
def test_pages_of_a_csv_file_hold_every_row_once_also_where_cells_have_lines(rows: list[tuple[str, str]]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([("first name", "second name"), *rows])
    document = opened("a.csv", out.getvalue().encode())
    tables = [page.elements[0].content for page in pages(document)]
    assert all(table["headers"] == ["first name", "second name"] and len(table["rows"]) <= 200 for table in tables)
    assert [tuple(row) for table in tables for row in table["rows"]] == rows


@pytest.mark.parametrize(
    ("name", "text"), [("a.csv", "a;b\n1;2\n"), ("a.tsv", "a\tb\n1\t2\n"), ("a.csv", "a|b\n1|2\n")]
)
def test_other_delimiters_are_found(name: str, text: str) -> None:
    [page] = pages(opened(name, text.encode()))
    assert page.elements[0].content == {"headers": ["a", "b"], "rows": [["1", "2"]]}


def test_formulas_of_a_small_workbook_are_in_the_metadata_of_their_page(samples: Path) -> None:
    first, second, *_ = pages(opened("budget.xlsx", (samples / "budget.xlsx").read_bytes()))
    assert first.elements[1].metadata["formulas"]["D2"] == "=B2*C2"
    assert "D202" in second.elements[1].metadata["formulas"]
    assert "D2" not in second.elements[1].metadata["formulas"]


def test_rows_are_numbered_as_in_the_sheet_also_below_empty_ones() -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row, column, value in ((5, 2, "name"), (5, 3, "count"), (6, 2, "=1+1"), (6, 3, 7)):
        book.active.cell(row, column).value = value
    out = io.BytesIO()
    book.save(out)
    [page] = pages(opened("a.xlsx", out.getvalue()))
    assert page.title == "Sheet, rows 6 to 6"
    assert page.elements[1].metadata["formulas"] == {"B6": "=1+1"}


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8-sig", "Grüße und 年度报告"),
        ("utf-16", "Grüße und 年度报告"),
        ("utf-32", "Grüße und 年度报告"),
        ("gb18030", "年度报告显示财务状况很好，收入增长了百分之二十。"),
        ("big5", "繁體中文的報告，財務狀況良好。今年的收入增加了。"),
        ("shift_jis", "これは日本語の文書です。売上は増えました。"),
        ("cp1251", "Привет, это отчёт о продажах за год."),
        ("latin-1", "Müller hat größere Äpfel für das Café gekauft."),
    ],
)
def test_a_text_is_read_in_the_encoding_it_is_written_in(encoding: str, text: str) -> None:
    [page] = pages(opened("a.txt", f"{text}\n".encode(encoding)))
    assert elements_text(page.elements) == text


def test_a_file_without_a_known_ending_is_what_it_holds(samples: Path) -> None:
    assert open_document(io.BytesIO(b"\x7fELF\0\0"), "program", DocumentLimits()) is None
    assert open_document(io.BytesIO(b""), "nothing", DocumentLimits()) is None
    assert opened("Makefile", b"all:\n\techo\n").page_count == 1
    assert opened("report", (samples / "short.pdf").read_bytes()).page_count == 2


def test_a_document_with_too_many_pages_is_refused_with_its_code() -> None:
    with pytest.raises(Unreadable) as caught:
        open_document(io.BytesIO(b"x\n" * 500), "a.txt", DocumentLimits(page_count=2))
    assert caught.value.code == caught.value.as_error().code == 413


def test_pages_cross_the_pipe_unchanged(samples: Path) -> None:
    for name in ("budget.xlsx", "handbook.md", "pump.html", "short.pdf", "talk.pptx", "合同.docx", "plan.png"):
        for page in pages(opened(name, (samples / name).read_bytes())):
            assert page_from_json(page_to_json(page)) == page


def test_the_title_is_the_files_own_else_its_first_heading_else_its_name() -> None:
    assert describe(opened("a.md", b"---\ntitle: Own\n---\n# Heading\n"), "in/a.md").title == "Own"
    assert describe(opened("a.md", b"# Heading\n"), "in/a.md").title == "Heading"
    assert describe(opened("a.md", b"words\n"), "in/a.md").title == "a.md"


def test_the_page_cache_stays_within_its_bound_and_forgets_what_was_read_longest_ago() -> None:
    cache = page_cache(10_000)
    for number in range(10):
        cache.put((number,), Page("p", [Text("x" * 1000)]))
        cache.use((0,))
    assert cache.weight <= 10_000
    assert cache.get((0,)) is not None and cache.get((9,)) is not None
    assert cache.get((1,)) is None
    cache.put((99,), Page("p", [Text("x" * 100_000)]))
    assert cache.get((99,)) is None and cache.weight <= 10_000


@pytest.mark.parametrize(
    "title",
    [
        *("", "  ", "untitled", "Untitled-1", "(anonymous)", "PowerPoint Presentation"),
        *("Microsoft Word - report.doc", "Microsoft PowerPoint - talk", "Document1", "Slide 1", "无标题", "-"),
    ],
)
def test_what_a_program_writes_where_nobody_gave_a_title_is_none(title: str) -> None:
    assert own_title(title) == ""


@pytest.mark.parametrize("title", ["Untitled poems", "The anonymous donor", "Presentation skills", "Word 2016 manual"])
def test_a_title_that_only_starts_like_one_of_those_is_kept(title: str) -> None:
    assert own_title(f" {title}\n") == title
