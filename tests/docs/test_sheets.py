"""Workbooks: what a person sees in them, and that no part of a file costs the rest."""

import datetime
import io
from dataclasses import replace
from pathlib import Path

import pytest
from openpyxl import Workbook
from openpyxl.cell.rich_text import CellRichText
from openpyxl.comments import Comment

from a2c_smcp.docs.formats import workbooks
from a2c_smcp.docs.formats.number_formats import shown_number
from a2c_smcp.docs.formats.workbooks import column_name, column_of
from a2c_smcp.docs.limits import FORMATS
from a2c_smcp.mcp_server.elements import Annotation, Cell, Table, Text
from a2c_smcp.mcp_server.rendering import elements_text
from tests.docs.corrupt import with_part
from tests.docs.foreign_files import ods, xls, xlsb
from tests.docs.test_formats import opened, pages


def saved(book: Workbook) -> bytes:
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def tables(name: str, data: bytes) -> list[Table]:
    return [each for page in pages(opened(name, data)) for each in page.elements if isinstance(each, Table)]


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (0.25, "0%", "25%"),
        (0.07, "0.0%", "7.0%"),
        (1 / 3, "0%", "33.3333%"),
        (1234.5, "$#,##0.00", "$1,234.50"),
        (-1234.5, '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\)', "$(1,234.50)"),
        (0, '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\);_("$"* "-"??_)', 0),
        (1234.5, "[$€-407]\\ #,##0.00", "€ 1,234.50"),
        (7, "000", "007"),
        (7.25, '0" kg"', "7.25 kg"),
        (5_100_000, '0.0,,"M"', "5.1M"),
        (1, '[=1]"yes";"no"', "yes"),
        (0, '[=1]"yes";"no"', "no"),
        (3.14159, "0.00", 3.14159),
        (1_234_567.0, "#,##0", 1_234_567),
        (0.5, "# ?/?", 0.5),
        (12.0, "General", 12),
        (43831, "m/d/yyyy", "2020-01-01"),
        (43831.5, "m/d/yy h:mm", "2020-01-01 12:00"),
        (43831, "[$-F800]dddd\\,\\ mmmm\\ dd", "2020-01-01"),
        (0.75, "h:mm AM/PM", "18:00"),
        (1.5, "[h]:mm:ss", "36:00:00"),
        (1, "yyyy-mm-dd", "1900-01-01"),
        (60, "yyyy-mm-dd", "1900-02-29"),
        (61, "yyyy-mm-dd", "1900-03-01"),
        (-5, "yyyy-mm-dd", -5),
        (1e300, "yyyy-mm-dd", 1e300),
        (float("inf"), "0%", "inf"),
        (1, '"' * 999, 1),
    ],
)
def test_a_number_is_shown_with_what_its_format_adds(value: float, code: str, shown: Cell) -> None:
    assert shown_number(value, code) == shown


def test_dates_since_1904_are_four_years_later() -> None:
    assert shown_number(0, "yyyy-mm-dd", since_1904=True) == "1904-01-01"


def test_columns_have_letters() -> None:
    assert [column_name(each) for each in (0, 25, 26, 701, 16383)] == ["A", "Z", "AA", "ZZ", "XFD"]
    assert [column_of(each) for each in ("A1", "XFD1048576", "$B$2", "")] == [0, 16383, 1, -1]


def test_values_formulas_comments_and_hidden_sheets_of_a_workbook() -> None:
    book = Workbook()
    sheet = book.active
    sheet.title = "Costs"
    sheet.append(["item", None, "share", "day"])
    sheet.append(["soil", 3, 0.25, datetime.date(2020, 1, 2)])
    sheet.append([CellRichText("ri", "ch"), "=1+1", "#DIV/0!", True])
    sheet["C2"].number_format = "0%"
    sheet["C2"].comment = Comment("look at this " * 20, "Ada")
    sheet.merge_cells("A5:C5")
    sheet["A5"] = "merged"
    book.create_sheet("Old").append(["secret"])
    book["Old"].sheet_state = "hidden"
    first, second = pages(opened("a.xlsx", saved(book)))
    [table] = [each for each in first.elements if isinstance(each, Table)]
    assert table.headers == ["item", "", "share", "day"]
    assert table.rows == [["soil", 3, "25%", "2020-01-02"], ["rich", "=1+1", "#DIV/0!", True], [], ["merged"]]
    assert table.metadata == {"sheet": "Costs", "first_column": "A", "first_row": 2, "formulas": {"B3": "=1+1"}}
    [remark] = [each for each in first.elements if isinstance(each, Annotation)]
    assert (remark.text.split(":")[0], remark.author) == ("C2", "Ada")
    assert elements_text(first.elements).count("look at this") == 20
    assert second.title == "Old (hidden)"


def test_two_cells_far_apart_are_two_tables_and_cost_nothing_between() -> None:
    book = Workbook()
    book.active["A1"] = "near"
    book.active["XFD1048576"] = "far"
    book.active["XFD1"] = "right"
    [page] = pages(opened("a.xlsx", saved(book)))
    assert [each.text for each in page.elements if isinstance(each, Text)] == [
        "Columns A to A:",
        "The same rows, columns XFD to XFD:",
        "Rows 2 to 1048575 are empty.",
    ]
    found = [(each.rows, each.metadata["first_column"]) for each in page.elements if isinstance(each, Table)]
    assert found == [([["near"]], "A"), ([["right"]], "XFD"), ([["far"]], "XFD")]


def test_a_sheet_with_many_columns_loses_none() -> None:
    book = Workbook()
    for _ in range(3):
        book.active.append([f"v{number}" for number in range(600)])
    found = tables("a.xlsx", saved(book))
    assert [each.metadata["first_column"] for each in found] == ["A", "IW", "SS"]
    assert [cell for each in found for cell in each.rows[0]] == [f"v{number}" for number in range(600)]


def test_a_page_of_long_cells_is_several() -> None:
    book = Workbook()
    for _ in range(10):
        book.active.append(["long " * 5000])
    document = opened("a.xlsx", saved(book))
    assert document.page_count == 5
    assert sum(len(each.rows) for each in tables("a.xlsx", saved(book))) == 10


def test_a_workbook_with_too_many_cells_says_which_rows_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbooks, "FORMATS", replace(FORMATS, sheet_cells=1000))
    cell = '<table:table-cell office:value-type="float" office:value="1"/>'
    document = opened("a.ods", ods(f'<table:table-row table:number-rows-repeated="9999999">{cell}</table:table-row>'))
    last = document.page(document.page_count - 1)
    assert "Rows from 1001 on are not read" in elements_text(last.elements)


def test_a_broken_part_costs_what_stands_in_it(tmp_path: Path) -> None:
    book = Workbook()
    book.active.append(["whole", 1.5])
    (tmp_path / "a.xlsx").write_bytes(saved(book))
    for part in ("xl/styles.xml", "xl/theme/theme1.xml", "docProps/core.xml"):
        [table] = tables("a.xlsx", with_part(tmp_path / "a.xlsx", part, "<broken"))
        assert table.rows == [["whole", 1.5]]
    text = '<worksheet><sheetData><row r="1"><c><v>7</v></c></row><row r="2"><c><v>8</v></c></row><row'
    [page] = pages(opened("a.xlsx", with_part(tmp_path / "a.xlsx", "xl/worksheets/sheet1.xml", text)))
    assert "7\n8" in elements_text(page.elements) and "cannot be read" in elements_text(page.elements)


def test_a_formula_without_a_result_is_shown_and_one_that_gives_nothing_is_not(tmp_path: Path) -> None:
    book = Workbook()
    book.active["A1"] = 1
    (tmp_path / "a.xlsx").write_bytes(saved(book))
    cells = (
        '<c r="A1"><f t="shared" si="0" ref="A1:A2">B1*2</f><v>4</v></c><c r="B1" t="str"><f>""</f><v></v></c>',
        '<c r="A2"><f t="shared" si="0"/><v>6</v></c><c r="B2"><f>C1</f></c>'
        '<c r="C2" t="d"><v>1850-03-01T00:00:00</v></c>',
    )
    rows = "".join(f'<row r="{number}">{each}</row>' for number, each in enumerate(cells, 1))
    text = f"<x:worksheet xmlns:x='n'><x:sheetData>{rows}</x:sheetData></x:worksheet>"
    [table] = tables("a.xlsx", with_part(tmp_path / "a.xlsx", "xl/worksheets/sheet1.xml", text))
    assert table.rows == [[4], [6, "=C1", "1850-03-01"]]
    assert table.metadata["formulas"] == {"A1": "=B1*2", "B1": '=""', "A2": "as in A1, moved", "B2": "=C1"}


def test_old_workbooks_are_shown_as_new_ones() -> None:
    first, second = pages(opened("a.xls", xls()))
    [table] = [each for each in first.elements if isinstance(each, Table)]
    assert (table.headers, table.rows) == (["share", "xy年"], [["25.0%", "2020-01-01"], ["#DIV/0!", 12.5]])
    assert [(each.text, each.author) for each in first.elements if isinstance(each, Annotation)] == [
        ("A2: check", "Ada")
    ]
    assert second.title == "Old (hidden)" and "secret" in elements_text(second.elements)


def test_binary_workbooks_are_shown_as_others() -> None:
    first, second = pages(opened("a.xlsb", xlsb()))
    [table] = [each for each in first.elements if isinstance(each, Table)]
    assert [table.headers, *table.rows] == [["share", ""], ["25%", "#N/A"]]
    assert second.title == "Old (hidden)"


def test_cells_of_opendocument_are_what_the_file_says_they_show() -> None:
    row = """<table:table-row><table:table-cell office:value-type="percentage" office:value="0.25"><text:p>25 %</text:p>
        </table:table-cell><table:table-cell office:value-type="float" office:value="3.14159"><text:p>3.14</text:p>
        </table:table-cell><table:table-cell office:value-type="date" office:date-value="1850-03-01T00:00:00"/>
        <table:table-cell office:value-type="string"><office:annotation><dc:creator>Ada</dc:creator>
        <text:p>why?</text:p></office:annotation><text:p>two<text:s text:c="2"/>blanks</text:p><text:p>lines</text:p>
        </table:table-cell>
        <table:table-cell table:number-columns-repeated="16000"/></table:table-row>
        <table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row>"""
    [page] = pages(opened("a.ods", ods(row, style="ta1")))
    assert page.title == "Costs (hidden), rows 1 to 1"
    [table] = [each for each in page.elements if isinstance(each, Table)]
    assert table.rows == [["25 %", 3.14159, "1850-03-01", "two  blanks\nlines"]]
    assert [each.text for each in page.elements if isinstance(each, Annotation)] == ["D1: why?"]


def test_a_workbook_that_is_html_or_text_is_read_as_that() -> None:
    [page] = pages(opened("a.xls", b"<html><table><tr><th>a<th>b<tr><td>1<td>2</table>"))
    assert elements_text(page.elements) == "a\tb\n1\t2"
    [page] = pages(opened("a.xls", b"a\tb\n1\t2\n"))
    assert elements_text(page.elements) == "a\tb\n1\t2"
